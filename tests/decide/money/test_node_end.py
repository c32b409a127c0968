"""How a node ends in time: what was promised to its pods is kept, and what is held is not passed."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from small_fleet import policy

from pilotlight.decide.money.budget_limits import open_hold
from pilotlight.decide.money.economics import stop_s
from pilotlight.decide.money.node_end import ending
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.money.budgets import Terms
from pilotlight.units import HOUR

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def terms(**fields: object) -> Terms:
    """A $1 node that is held for in stretches of four hours."""
    known: dict[str, object] = {
        "pool": "t4",
        "usd_per_hour": Decimal(1),
        "gpus": 1,
        "boot_s": 180,
        "idle_s": 300,
        "run_s": 8 * HOUR,
        "run_source": "",
        "typical_s": HOUR,
        "stretch_s": 4 * HOUR,
    }
    return Terms(**{**known, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("spare_s", [-600, -10, 0, 10, 200])
def test_a_run_that_may_not_be_stopped_has_all_that_it_was_promised(spare_s: float) -> None:
    """Whether its promise ends shortly before what is held or after: a stop begins when it is over."""
    hold = open_hold("h", "d", terms(), NOON)
    started = hold.until - timedelta(seconds=HOUR + spare_s)
    pod = BoundPod(uid="u", namespace="ml", name="a", workload_class="serving", max_run_s=HOUR, started_at=started)
    found = ending(hold, [pod], policy(), started)
    assert found.at - timedelta(seconds=stop_s([pod])) >= started + timedelta(seconds=HOUR)


def test_a_promise_that_ends_in_time_moves_nothing() -> None:
    """What is held covers the run and its stop: the node ends with that."""
    hold = open_hold("h", "d", terms(), NOON)
    pod = BoundPod(uid="u", namespace="ml", name="a", workload_class="serving", max_run_s=HOUR, started_at=NOON)
    assert ending(hold, [pod], policy(), NOON).at == hold.until
