"""Commands that look and change nothing: status, pools, why, budgets, alerts, queues, advice beside what was done.

They read the cluster and the state once and print what is there now and why. Figures come from ``tools/glance`` and
``decide/``, lines from ``tools/report/texts``. ``alerts`` alone writes: that a
person sees to an alert, or that it goes out again.
"""
