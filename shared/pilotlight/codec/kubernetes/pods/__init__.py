"""Pods to facts: requests, volumes, placement, groups, deadlines, neighbours, and bounds on all of it."""
