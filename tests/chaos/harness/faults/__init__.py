"""Faults of a run: calls that wait, fail or never return, workers that die between calls, notices that are not true."""
