"""Adapters of the GpuTelemetry port: samples of GPUs' use, from where they are kept.

``prometheus`` reads a Prometheus API, ``world`` the served world. Without any series a pod
is absent, which is not the same as idle. The looks at utilisation, and commands on waste and targets, call it.
"""
