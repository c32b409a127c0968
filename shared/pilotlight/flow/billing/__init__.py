"""billing_tick: the meter of nodes, the costs of each node and its owner, bills and prices of a cloud, odd spending.

Every look counts each microsecond once, by compare-and-set; what cannot be read now is told and stops nothing else.
Nothing here buys or gives back. ``doorway`` calls ``billing_tick`` once a minute, and with a bill or a cloud's notice;
the tools read what it keeps.
"""
