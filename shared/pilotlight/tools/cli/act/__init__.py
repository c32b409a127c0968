"""Commands that change what Pilotlight does now: brakes, one look by hand, idle owners, a drill.

The engine's own flow does the work (``flow/cycle``, ``flow/reclaim``, ``flow/records``) and writes its records as for
any event; nothing here decides. A brake keeps the name of the person who set it.
"""
