"""Every order of two workers' calls: a world, a store and a worker's life as values, and the search through them.

Nothing is drawn here: where `harness` tries seeds, this takes each schedule within its bounds and judges by the world's
own log. `interleavings.py` runs it, and plays again what it printed of a schedule that breaks something.
"""
