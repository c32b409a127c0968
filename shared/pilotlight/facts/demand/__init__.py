"""Demand as values: queues of workers, and claims of pods, settled.

A pod's labels are its tenant's to write, so a claim counts only as the policy and the namespace permit it: whose money
is spent, which class the pod is of, and its priority. Whoever reads pods settles their claims here first; those that
are refused become findings.
"""
