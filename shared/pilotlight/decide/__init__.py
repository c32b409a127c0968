"""Decisions: pure functions over facts, without I/O, clock, randomness, environment or logging.

``plan`` is one decision over one look, a table of steps that pass a ``Work`` on; each room holds the judgements of one
subject. Equal facts give equal decisions: a decision is replayed from its record, and tested without a cluster. Time
comes in with the look. A decision names its reason in words, and calls nobody: ``flow`` looks, decides here, and acts.
"""
