"""A canary beside its control: figures of both, and the bounds."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pilotlight.decide.limits.canary import Side, passed_bound, side
from pilotlight.facts.memory import Backoff
from pilotlight.facts.money.bill import CostLine, MeterDay
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.facts.policy import CanaryPolicy

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
BOUNDS = CanaryPolicy(control="old", max_wait=900, max_usd_ratio=1.5)


def figures(usd: str = "10", hours: str = "10", **more: Any) -> Side:
    """A pool that costs a dollar a used GPU-hour."""
    given = {"pool": "new", "usd": Decimal(usd), "idle_usd": Decimal(0), "used_gpu_hours": Decimal(hours)}
    return Side(**{**given, "wait_s": 0.0, "refusals": 0, **more})


@pytest.mark.parametrize(
    ("canary", "said"),
    [
        pytest.param(figures(), "", id="as good as its control"),
        pytest.param(figures(usd="15"), "", id="at the bound of dollars"),
        pytest.param(figures(usd="16"), "a GPU-hour that was used cost $1.60, and $1.00 in old", id="dearer"),
        pytest.param(figures(usd="16", hours="0.5"), "", id="too little was used to tell"),
        pytest.param(figures(wait_s=901), "a purchase is on its way for 15 min, more than max_wait 15 min", id="slow"),
        pytest.param(figures(refusals=3), "its cloud refused 3 purchases in a row", id="refused"),
        pytest.param(figures(refusals=2), "", id="refused less often"),
    ],
)
def test_a_bound_that_is_passed_is_told_with_its_figures(canary: Side, said: str) -> None:
    """Waits, refusals, dollars; nothing where all are within."""
    found = passed_bound(canary, figures(pool="old"), BOUNDS)
    assert (found == "") if said == "" else found.startswith(said)


def test_a_control_without_work_is_no_measure() -> None:
    """Dollars are compared where both were used."""
    assert passed_bound(figures(usd="1000"), figures(pool="old", hours="0"), BOUNDS) == ""


def test_the_figures_are_the_pools_own() -> None:
    """Lines, purchases on their way and refusals of others are not counted."""
    where: dict[str, Any] = {"node": "n", "instance_type": "x", "capacity_type": "on-demand"}
    lines = (
        CostLine(kind="used", pool="new", usd=Decimal(4), gpu_hours=Decimal(2), **where),
        CostLine(kind="idle", pool="new", usd=Decimal(1), gpu_hours=Decimal(1), **where),
        CostLine(kind="used", pool="old", usd=Decimal(9), gpu_hours=Decimal(3), **where),
    )
    flights = [
        InFlight(
            decision="d",
            offering=f"{pool}/x",
            pool=pool,
            count=1,
            ready_by=NOW,
            requested_at=NOW - timedelta(seconds=s),
        )
        for pool, s in (("new", 60), ("new", 20), ("old", 600))
    ]
    backoffs = [
        Backoff(offering="new/x", until=NOW + timedelta(minutes=1), why="no", tries=2),
        Backoff(offering="new/y", until=NOW - timedelta(minutes=1), why="no", tries=9),
        Backoff(offering="newer/x", until=NOW + timedelta(minutes=1), why="no", tries=8),
    ]
    found = side("new", [MeterDay(day=date(2026, 11, 20), until=NOW, lines=lines)], flights, backoffs, NOW)
    assert found == Side("new", Decimal(5), Decimal(1), Decimal(2), 60.0, 2)
    assert found.usd_per_used_hour == Decimal("2.5")
