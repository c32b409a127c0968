"""Hard budgets around midnights at which a zone changes its clocks, and in a zone that is half an hour off."""

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from stage import START, Stage

from pilotlight.facts.money.money_policy import Budget, Prices
from pilotlight.facts.policy import ClassPolicy
from pilotlight.units import HOUR

STOP = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=72 * HOUR, may_move=("hard-cap",))


def _cost_by_date(on: Stage, zone: str) -> dict[date, Decimal]:
    """What the nodes cost on each date of a zone, second by second, by the world's log alone."""
    ends = {record["node"]: record["t"] for record in on.events("terminate")}
    out: dict[date, Decimal] = defaultdict(Decimal)
    for record in on.events("launch"):
        price = on.catalog.instance_types[record["type"]].prices["on-demand"].usd_per_hour
        for second in range(int(record["t"]), int(ends.get(record["node"], on.world.now_s))):
            out[(START + timedelta(seconds=second)).astimezone(ZoneInfo(zone)).date()] += price / 3600
    return out


@pytest.mark.parametrize(
    ("zone", "eve"),
    [
        pytest.param("America/New_York", datetime(2027, 3, 14, 1, tzinfo=UTC), id="the day that has 23 hours"),
        pytest.param("America/New_York", datetime(2027, 11, 7, 1, tzinfo=UTC), id="the day that has 25 hours"),
        pytest.param("Asia/Kolkata", datetime(2027, 3, 14, 15, tzinfo=UTC), id="a zone that is half an hour off"),
    ],
)
def test_no_date_is_passed(zone: str, eve: datetime) -> None:
    """A pod that begins hours before such a midnight and goes on for days costs at most the cap of each date."""
    budget = Budget(name="all", usd=Decimal(6), period="day", timezone=zone)
    on = Stage(budgets=(budget,), classes={"batch": STOP}, prices=Prices(max_age_days=3650))
    on.wait((eve - START).total_seconds())
    on.event(on.submit("a", run_s=48 * HOUR))
    on.minutes(28 * 60)
    spent = _cost_by_date(on, zone)
    assert len(spent) >= 2
    assert max(spent.values()) <= Decimal("6.005")
    assert sum(spent.values()) > 6
