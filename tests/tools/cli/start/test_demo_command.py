"""The last lines of `pilotlight demo`."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pilotlight.decide.money.budget_limits import meters
from pilotlight.facts.money.budgets import Forecast, Spent
from pilotlight.facts.money.money_policy import Budget
from pilotlight.tools.cli.start.demo_command import _beyond
from pilotlight.tools.report.tables.budget_table import BudgetRow

BUDGET = Budget(name="research", scope="all", usd=Decimal("1.20"), period="day", hard=False)


@pytest.mark.parametrize(
    ("metered", "said"), [("1.30", "Why more than $1.20: the budget has hard: false"), ("1.20", "")]
)
def test_a_budget_that_was_passed_is_explained(metered: str, said: str) -> None:
    """Above the limit a sentence says why; at the limit there is nothing to say."""
    [meter] = meters((BUDGET,), datetime(2026, 11, 20, 10, tzinfo=UTC))
    spent = Spent(meter=meter, billed=Decimal(0), metered=Decimal(metered), forecast=Forecast(likely=Decimal(3)))
    told = _beyond(BudgetRow(cluster="local", meter=meter, held=Decimal("1.36"), spent=spent))
    assert told.startswith(said)
    assert bool(told) == bool(said)
