"""Frozen values: what was seen, what is wanted, what was decided. They know nothing of I/O."""
