"""Limits: what a policy, a person, a route or an isolated object rules out."""
