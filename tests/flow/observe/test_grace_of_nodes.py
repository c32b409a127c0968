"""A purchase whose nodes come one after the other: each has its own grace."""

from datetime import UTC, datetime, timedelta

import pytest

from pilotlight.facts.capacity import Node
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.flow.observe.snapshot import ready_for_s

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
ASKED = NOW - timedelta(seconds=400)


def came(name: str, born_s: float, *, ready: bool = True) -> Node:
    """A node of pool "eight" that was born so many seconds after the purchase."""
    return Node(
        name=name,
        pool="eight",
        instance_type="p4d",
        capacity_type="on-demand",
        created_at=ASKED + timedelta(seconds=born_s),
        ready=ready,
    )


def entry(count: int) -> InFlight:
    """A purchase of so many nodes."""
    return InFlight(decision="d", offering="eight", pool="eight", count=count, requested_at=ASKED, ready_by=NOW)


IDLE = Memory(idle_since={"first": NOW - timedelta(seconds=200), "second": NOW - timedelta(seconds=5)})


@pytest.mark.parametrize(
    ("count", "nodes", "seconds"),
    [
        (2, (came("first", 20), came("second", 200)), 5.0),
        (1, (came("first", 20), came("second", 200)), 200.0),
        (2, (came("first", 20), came("second", 200, ready=False)), 200.0),
        (2, (), None),
    ],
    ids=[
        "the last that came counts",
        "a later node is another purchase's",
        "one that boots is not ready",
        "none came",
    ],
)
def test_each_node_of_a_purchase_has_its_grace(count: int, nodes: tuple[Node, ...], seconds: float | None) -> None:
    """What a purchase came to is judged by its node that is ready for the shortest time."""
    assert ready_for_s(entry(count), nodes, IDLE, NOW) == seconds
