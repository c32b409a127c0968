"""Kubernetes objects, as ``kubectl get ... -o json`` prints them, to facts.

``lists`` reads files, ``view.view_of`` makes the ClusterView; the rest is one file a concern.
"""
