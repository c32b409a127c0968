"""Place: pods and gangs given room, nodes chosen for those without, and nodes kept for the pods that they are given.

Free room comes before room on its way before new nodes; nothing in flight is bought for again, a gang is placed whole
or not at all, and no plan goes over a cap. Every pod gets a verdict with its reason. The ``Provisioner`` is the state
of one plan: ``room`` makes it, ``new_nodes`` and ``belonging`` work on it. Steps of the plan call this room.
"""
