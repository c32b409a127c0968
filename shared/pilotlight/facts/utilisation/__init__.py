"""Utilisation as values: telemetry of GPUs, and owners of idle pods on their way to rest.

What was not measured is nan or missing, and never 0: it is neither idle nor busy. An owner's record says how far it has
come, so that any look can go on from it. ``decide.utilisation`` judges by these, and ``flow.reclaim`` acts.
"""
