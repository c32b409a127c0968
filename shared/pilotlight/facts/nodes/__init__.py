"""Nodes as values: names of the groups they stand in, and faults of their GPUs."""
