"""Interruptions by seed: nodes are taken from under their work, with notice, without, or perhaps."""
