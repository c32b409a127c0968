"""Fit: what holds what, by the rules of the Kubernetes scheduler, devices by claim and pods near by among them."""
