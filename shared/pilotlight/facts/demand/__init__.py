"""Demand as values: queues of workers, and claims of pods, settled."""
