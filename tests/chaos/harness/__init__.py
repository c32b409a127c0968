"""Finds what breaks when things die: deliveries under faults, on a schedule that a seed decides, then a count.

The world, the real SQLite store and the whole of a function are driven; only who goes next, who dies and what fails
is drawn. The same seed gives the same run.
"""
