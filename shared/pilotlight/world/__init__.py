"""World: a working cluster and cloud with a clock - the embedded default, the replay's world, and the tests' one fake.

``simulation.World`` is asked, ``world_events`` happen by themselves; ``fleet`` is the cloud and its money,
``world_jobs`` the pods, ``world_cluster`` and ``world_pools`` the ports over both. The same seed and calls give the
same run, to the byte. Nothing of ``decide`` is known here. The wiring, replays, the demo and tests call it.
"""
