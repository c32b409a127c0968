"""Adapters of the Cluster port: a real cluster (``kubernetes/``), or the served world (``world``).

A cluster tells its nodes, pods and other objects at one moment, and takes our taint, evictions and Events. Reads see
all that was written before them. The cycle and the use cases of interruption call it.
"""
