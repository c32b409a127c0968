"""Commands that put Pilotlight on a cluster and take it off again: account, pools, queues, manifests, agents.

Each prints the objects it would make, and changes them only when it is told to; what it set it can take back. Objects
are made in ``tools/manifests``; steps, their order and their records are those of ``tools/install``.
"""
