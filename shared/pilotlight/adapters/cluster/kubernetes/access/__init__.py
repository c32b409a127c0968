"""Access to an API server: its address, its trust and one credential that renews.

``server_access`` says how a server is reached; ``kubeconfig``, ``in_cluster``, ``gke`` and ``eks`` find that out, and
``addresses`` chooses among them. ``logins`` runs the exec plugin of a person's kubeconfig, and imports the official
client for OIDC alone: its import costs more than the rest of a cold start. No secret is in any error or ``repr``.
"""
