"""Budgets in the state: accounts, the holds on them, and the pass that moves the holds on at every look."""
