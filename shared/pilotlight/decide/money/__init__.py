"""Dollars before and after they are spent: budgets, holds, the meter, forecasts and the month.

Money is ``Decimal``. Dollars are held before a purchase and settled once; the meter counts
each microsecond of a node's paid time once, and the bill, where there is one, overrules it by whole days. ``economics``
has the one objective that all other rooms weigh by. ``flow/budgets`` and ``flow/billing`` keep accounts by these
functions, the plan asks for headroom and prices, and reports read the figures.
"""
