"""Alerts as values: deliveries, advice, audit lines, channels of the policy, and our own figures.

A delivery's record says how far an alert has come on one channel, so that any worker can go on from it. The figures
are one description for the page, the dashboards and the alert rules. ``flow.delivery`` and ``decide.alerts`` work on
these.
"""
