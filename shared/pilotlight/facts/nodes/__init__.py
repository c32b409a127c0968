"""Nodes as values: pools as their cloud tells them, names of the groups they stand in, and faults of their GPUs.

Adapters of clouds fill in a pool's state; what a cloud does not tell is None or empty and never guessed. Names are read
strictly: one that could be two pools is none. ``decide.nodes`` and the cycle in ``flow`` read these.
"""
