"""Kubernetes clusters."""
