"""A real cluster over its API server's HTTP: small typed reads, a few careful writes, credentials that renew.

``access`` says how a server is reached; ``kubeconfig``, ``incluster`` and ``clouds`` find that out, and ``addresses``
chooses among them. ``transport`` makes one call with its errors, ``reads`` and ``writes`` are what is asked, and
``cluster`` is the port. The official client is imported only for a kubeconfig that names an exec plugin: its import
costs more than the rest of a cold start.
"""
