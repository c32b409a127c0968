"""spot_interruption: a notice that a node goes, the rescue that it begins, and the moves that we begin ourselves.

Work is saved with the cluster alone, without lease or store; buying and giving back go through the cycle. A notice is
obeyed once node or cloud confirm it. ``doorway`` calls ``interrupt`` with a notice and ``drain_all`` with a tick;
``reconcile`` carries rescues on beside its own look.
"""
