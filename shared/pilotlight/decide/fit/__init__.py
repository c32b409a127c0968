"""Fit: what holds what, by the rules of the Kubernetes scheduler, devices by claim and pods near by among them.

A plan may believe no fit that the scheduler would refuse: what cannot be told is a finding, never a guess, and a belief
that the scheduler contradicts is given up (``fit_mismatch``). ``fit`` is the room of one node as pods use it up. Steps
of the plan, ``offers``, ``place`` and ``nodes`` call it; the world's own scheduler must not, for it is the check.
"""
