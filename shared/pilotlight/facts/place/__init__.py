"""Placement as values: which nodes are closed, and for whom they are open."""
