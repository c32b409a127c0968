"""A soft budget tells and keeps new work off; what runs is stopped by hard ones alone."""

from decimal import Decimal

import pytest
from stage import Stage

from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy
from pilotlight.flow.budgets import interruption_records
from pilotlight.units import HOUR

STOP = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=24 * HOUR, may_move=("hard-cap",))


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
def test_only_a_hard_budget_stops_what_runs(hard: bool) -> None:
    """Two dollars a day, and a pod of a day on a node at a dollar, of a class that may be stopped."""
    budget = Budget(name="all", usd=Decimal(2), period="day", hard=hard)
    on = Stage(budgets=(budget,), classes={"batch": STOP})
    on.event(on.submit("a", run_s=20 * HOUR))
    on.minutes(4 * 60)
    assert bool(list(interruption_records.every(on.deps.state, "c"))) is hard
    assert (on.world.interruptions > 0) is hard
    assert ("uid-a" in on.world.running) is not hard
