"""Utilisation as values: what GPUs did, and how far owners of idle ones have come."""
