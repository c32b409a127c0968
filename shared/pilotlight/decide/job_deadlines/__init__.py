"""Job deadlines: what is bought, kept or moved so that a job ends in time at the least expected cost.

Estimates of spot decide what a job costs and never whether it is in time: on-demand is asked for while it can still
boot, restore and do all work that no checkpoint keeps. The plan narrows by ``job_deadlines`` what pods may be bought;
``flow/observe`` reads progress by ``job_progress``, ``flow/budgets`` moves a job back to spot where that pays.
"""
