"""Demand: the class of each pod and why, how long it will run, and the workers that queues ask for.

What a pod says of itself comes first, what was learnt of its like second; the reason goes with every answer. Queued
work is let in only where all of its pods have room. Readers of the cluster class pods by it as they read them;
``flow/observe`` and ``flow/cycle`` ask for workers and admissions, ``place`` and ``nodes/spares`` for runs.
"""
