"""Idle owners: told, put to rest and woken, each step on record."""
