"""What a life of a node came to, and whose purchase it was."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
import pytest

from pilotlight.decide.money.node_cost import Bought, bought_by, metered_usd
from pilotlight.facts.money.bill import MeteredNode

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
WITHIN = timedelta(minutes=30)


def at(minutes: float) -> datetime:
    """So many minutes after noon."""
    return NOON + timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("begun", "calls", "expected"),
    [
        pytest.param([0.1], [("d1", 1, 0)], ["d1"], id="a node is of the call before it"),
        pytest.param([0.1, 1.1], [("d1", 1, 0), ("d2", 1, 1)], ["d1", "d2"], id="each call has its own node"),
        pytest.param([5, 6], [("d1", 1, 0), ("d2", 1, 1)], ["d1", "d2"], id="also where both were sent before either"),
        pytest.param([1.1], [("d1", 1, 0), ("d2", 1, 1)], ["d2"], id="a call that nothing came of takes nobody's"),
        pytest.param([0.1, 0.2, 0.3], [("d1", 2, 0)], ["", "d1", "d1"], id="no call has more nodes than it bought"),
        pytest.param([-1], [("d1", 1, 0), ("d2", 1, 0.5)], ["d1"], id="a cloud's clock may be behind"),
        pytest.param([-10], [("d1", 1, 0)], [""], id="what began long before a call is not its own"),
        pytest.param([45], [("d1", 1, 0)], [""], id="nor what began long after it"),
    ],
)
def test_a_node_is_of_the_call_that_bought_it(
    begun: list[float], calls: list[tuple[str, int, float]], expected: list[str]
) -> None:
    """By pool and time, and by how many nodes each call bought."""
    lives = {(f"i{n}", at(minutes)): "one" for n, minutes in enumerate(begun)}
    made = [Bought(id, "one", count, at(minutes)) for id, count, minutes in calls]
    other = Bought("other", "two", 9, at(0))
    found = bought_by(lives, [other, *made], WITHIN)
    assert [found[life].decision if life in found else "" for life in lives] == expected
    assert bought_by(dict(reversed(lives.items())), [*reversed(made), other], WITHIN) == found


@pytest.mark.parametrize(
    ("minimum_s", "hours", "known", "usd"),
    [
        pytest.param(60, 30, "2", "96", id="twelve hours at $2 and eighteen at $4"),
        pytest.param(60, 30, None, "120", id="a day that is not kept has the price of the next"),
        pytest.param(3600, 0.5, "2", "2", id="a minimum is paid to its end"),
    ],
)
def test_a_life_costs_what_the_meter_counted(minimum_s: float, hours: float, known: str | None, usd: str) -> None:
    """Each UTC day at its own price, up to the end of what is paid for."""
    node = MeteredNode(
        name="n",
        pool="one",
        instance_type="one",
        capacity_type="on-demand",
        usd_per_hour=Decimal(4),
        minimum_s=minimum_s,
        since=NOON,
        until=NOON,
        gone_at=at(60 * hours),
    )
    first = {NOON.date(): msgspec.structs.replace(node, usd_per_hour=Decimal(known))} if known else {}
    assert metered_usd(node, first) == Decimal(usd)
