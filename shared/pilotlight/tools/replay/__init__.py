"""Recorded traces through the front door: the time machine, its peers and its bounds.

``driver`` sends a trace's jobs into a world and events to the same functions that a deployment runs, at the world's own
time; ``peers`` play other autoscalers in the same world, and ``lower_bounds`` says what no one can undercut. The same
trace and seed give the same log to the byte. Called by ``cli/lab`` and by bench/replays.
"""
