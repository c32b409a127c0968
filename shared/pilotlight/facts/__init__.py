"""Frozen values: what was seen, what is wanted, what was decided. They know nothing of I/O.

The rooms are those of ``decide``; values that every room speaks of stand at the root: offerings and nodes in
``capacity``, demand in ``workload``, the ``policy``, ``decisions``, a cluster's ``memory``, the ``messages``. A value
may work out what follows from its own fields and nothing more. Facts import only each other, ``units`` and ``errors``.
A function's start pays for each of them that it imports: what few need stands by itself.
"""
