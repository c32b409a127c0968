"""Interruptions as values: what a notice is, and what was done about it."""
