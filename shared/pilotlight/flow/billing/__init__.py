"""billing_tick: what nodes cost and whose it was, where budgets stand, what is odd."""
