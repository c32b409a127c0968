"""Fit as values: selectors and taints, claimed devices, MIG layouts."""
