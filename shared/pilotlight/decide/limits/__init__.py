"""Limits: brakes, rules and schedules of the policy, canaries, requests, and objects that are set apart."""
