"""Placement as values: homes of nodes and pods, and verdicts on pods that wait.

A verdict names the rule that keeps pods from a node by a stable code, beside the words for people. ``decide.place``
writes these, and records, ``why`` and the pages read them.
"""
