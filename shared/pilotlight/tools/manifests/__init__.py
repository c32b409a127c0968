"""Kubernetes objects made from a policy and its prices, for `pilotlight manifests`: only commands use them.

Each module makes the objects of one purpose as plain mappings: admission, affinity, quotas, Karpenter's NodePools,
scaling, sharing of devices. Nothing is read from a cluster or sent to one; a person applies what is printed.
"""
