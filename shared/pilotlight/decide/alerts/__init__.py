"""Alerts: which channel is told of one and when, advice that nobody acted on, and the proof of an audit chain.

Nothing here sends or stores: functions say where an alert goes, which of a burst are told as one, and whether records
are as they were written. ``flow/alerts`` and ``flow/delivery`` send by them; ``flow/records`` and commands that people
run (``tools/cli``, ``tools/checkup``) ask for the proof and for the advice beside its cost.
"""
