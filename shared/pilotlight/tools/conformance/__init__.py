"""Promises of a cloud, tried on the cloud itself with one node."""
