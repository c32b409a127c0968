"""One look at a cluster, and what it settles."""
