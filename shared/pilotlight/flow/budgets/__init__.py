"""Budgets in the state: accounts, the holds on them, the pass that moves the holds on, and the interruptions it begins.

Dollars are held before they are spent. A hold ends once and is settled in every account that lists it; any step may be
done twice by anybody, and a worker that comes late changes nothing. The cycle calls ``budget_holds`` before a purchase
and after a decision, and ``renew_holds`` at every look. Without budgets nothing here reads or writes holds.
"""
