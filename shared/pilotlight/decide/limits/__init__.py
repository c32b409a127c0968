"""Limits: brakes, rules of the policy, canaries, requests, and objects that are set apart.

Doubt stops calls and never makes one: a brake leaves out of the plan the calls that it holds and says so, a rule whose
figures are not known does not hold, and what could not be judged counts as used and is kept. Steps at both ends of the
plan call it, ``flow`` before its calls, and the ``doorway`` before a request is read (``request_routes``).
"""
