"""Pods to facts: requests, volumes, placement, groups, deadlines, neighbours, and bounds on all of it.

``pods`` makes a demand, a finding, a pod on a node, or nothing; each other file reads one part of a pod's spec. The
scheduler's own rules hold, with their source named. A pod that asks for more than can be judged is told why, and
bought nothing for. ``view`` and the cluster's reads call it.
"""
