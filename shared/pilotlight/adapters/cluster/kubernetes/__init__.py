"""Adapter of a real cluster over its API server's HTTP: small typed reads, few careful writes, credentials that renew.

``kubernetes_cluster`` is the port that use cases call. ``transport`` makes one call with its errors, ``listing`` pages
through lists, ``reads`` and ``device_reads`` are one look at the cluster, ``writes`` and the files beside it are each
change that we make. ``access`` says how a server is reached. A function's path imports no client library here.
"""
