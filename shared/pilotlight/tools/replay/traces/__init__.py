"""Traces of jobs and of spot: read, drawn, measured, converted, taken from a cluster's past.

``trace_job`` has the facts, ``trace_file`` the format; the others make traces of what is public, of statistics, or of a
Prometheus. A file is believed only as far as it is checked, and every fault names its line.
"""
