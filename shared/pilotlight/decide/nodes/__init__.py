"""Nodes: which are put out, too old, unhealthy, failed, or another autoscaler's.

A node goes because its keeping costs more than relighting it, never because nothing is pending, and not while a GPU pod
is on it, but where the pod's class lets it be moved. Where another scaler keeps a pool, nothing is given back there.
Steps of the plan judge nodes here after its purchases, whose room is theirs; ``flow`` asks which pods it may move.
"""
