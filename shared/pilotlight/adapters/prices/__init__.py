"""Prices of instance types, read from catalogue files.

A price has its date and its source; one that is missing is an error, never a guess. The wiring makes them, and the
catalog of offers is asked through it.
"""
