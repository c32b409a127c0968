"""Scheduler of the world: the place where a pod binds, by filters of its own.

``filters`` and ``nearby`` judge a node, ``scheduler`` chooses among those that will do, ``waiting_jobs`` is the queue.
Its rules are written apart from the planner's on purpose, so that each checks the other; a contract holds that. Only
the world calls it.
"""
