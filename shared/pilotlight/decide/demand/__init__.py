"""Demand: what waits, what it is for, how long it runs, and what queues ask for."""
