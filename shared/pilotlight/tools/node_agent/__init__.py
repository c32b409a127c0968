"""Agents of a node: its metadata server relayed as notices, its GPUs as figures."""
