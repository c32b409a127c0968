"""Kubernetes objects made from a policy and its prices, for `pilotlight manifests`: only commands use them."""
