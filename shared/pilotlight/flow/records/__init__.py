"""Records in the state between looks: the lease, decisions and their steps, memory, marks of nodes, brakes.

Each is changed by compare-and-set over the version that was read, so that a worker that stood still fails instead of
overwriting. Nothing here decides, calls a cloud or tells people. All rooms of ``flow/`` use it, and the tools that
pause, approve or show decisions.
"""
