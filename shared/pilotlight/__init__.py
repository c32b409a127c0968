"""Pilotlight: pay for GPUs on Kubernetes only while they work."""
