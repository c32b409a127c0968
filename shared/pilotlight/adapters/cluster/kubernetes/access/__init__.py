"""Access to an API server: its address, its trust and one credential that renews.

``server_access`` says how a server is reached; ``kubeconfig``, ``in_cluster``, ``gke`` and ``eks`` find that out, and
``addresses`` chooses among them. ``logins`` imports the official client, only for a person's kubeconfig that names an
exec plugin or OIDC: its import costs more than the rest of a cold start. No secret is in any error or ``repr``.
"""
