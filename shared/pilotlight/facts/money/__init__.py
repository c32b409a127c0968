"""Money as values: what was metered and billed, what budgets hold, and the policy's caps, budgets and prices.

Sums are ``Decimal`` US dollars, never floats, and a price that is not known is None, never 0. An account changes by
compare-and-set only, and an id moves one way in it. ``decide.money`` reckons with these; ``flow.budgets`` and
``flow.billing`` keep their records.
"""
