"""Owners of idle GPUs: told, put to rest and woken, each step on record.

Nobody is put to rest unannounced: the telling goes before the record, and the record before the call to the cluster.
Only where telemetry is set up and a class of the policy asks for it. ``billing_tick`` calls ``reclaim_owners.watch``;
``pilotlight reclaim`` writes the same records.
"""
