"""Money as values: what was metered and billed, and what budgets hold."""
