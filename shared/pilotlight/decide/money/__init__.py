"""Dollars before and after they are spent: budgets, holds, the meter, forecasts and the month."""
