"""The check-up of a cluster: faults and warnings, judged from a survey that was read of it, each with its fix.

``survey`` alone reads the cluster, into ``survey_facts``; every other module is pure and yields ``Check`` lines on one
subject: rights, pools, quotas, autoscalers, taints, placement. ``deployment`` puts them in order. ``pilotlight doctor``
and ``pilotlight connect`` call it; it changes nothing.
"""
