"""A real cluster over its API server's HTTP: small typed reads, a few careful writes, credentials that renew.

``access`` says how a server is reached; ``kubeconfig``, ``incluster``, ``gke`` and ``eks`` find that out, and
``addresses`` chooses among them. ``transport`` makes one call with its errors, ``reads`` and ``writes`` are what is
asked, ``cluster`` is the port; ``survey`` and ``connecting`` are what ``pilotlight doctor`` and ``connect`` ask beside.
``logins`` imports the official client, only for a person's kubeconfig that names an exec plugin or OIDC: its import
costs more than the rest of a cold start. ``tunnels`` reaches a server by such a kubeconfig's proxy.
"""
