"""Traces of jobs and of spot: read, drawn, measured, converted, taken from a cluster's past."""
