"""Telemetry of GPUs, from where it is kept."""
