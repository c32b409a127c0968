"""Fit as values: selectors and taints, claimed devices, MIG layouts.

These are the rules of the Kubernetes scheduler on single values: does a selector choose, does a toleration bear. The
codec fills them in from objects, ``decide.fit`` puts them together, and the world judges by rules of its own.
"""
