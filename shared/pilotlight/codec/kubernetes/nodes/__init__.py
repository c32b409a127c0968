"""Nodes to facts: what is free on each, its devices and models, and evidence of other autoscalers."""
