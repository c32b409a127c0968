"""Nodes: which are put out, too old, unhealthy, failed, or another autoscaler's."""
