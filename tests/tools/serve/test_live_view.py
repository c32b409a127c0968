"""What the live page shows, worked out of a look, a plan and metered days; and what is sent when it changes."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from pilotlight.facts.capacity import BoundPod, ClusterView, Node, Offering
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.money.bill import CostLine, MeterDay
from pilotlight.facts.nodes.pool_state import Booting, PoolState
from pilotlight.facts.workload import GpuRequest
from pilotlight.tools.serve.live.live_changes import changes, spending, tiles
from pilotlight.tools.serve.live.live_view import Live, Tile

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
A100 = Offering(
    pool="a", instance_type="p4d", capacity_type="spot", gpu_model="A100", gpus=8, usd_per_hour=Decimal(9), zone="z"
)


def node(**traits: Any) -> Node:
    """A node of eight GPUs, six of them free."""
    plain: dict[str, Any] = {
        "name": "n", "pool": "a", "instance_type": "p4d", "capacity_type": "spot", "created_at": NOW, "ready": True,
        "devices": (0, 0, *[1000] * 6),
    }  # fmt: skip
    return Node(**plain | traits)


def pod(n: int, count: int = 2) -> BoundPod:
    """A pod with GPUs."""
    return BoundPod(uid=f"u{n}", namespace="ml", name=f"p{n}", gpu=GpuRequest(count=count))


def tile(one: Node, *verdicts: NodeVerdict) -> Tile:
    """How a node is shown."""
    return tiles(ClusterView(nodes=(one,)), (), verdicts, (A100,))["n"]


def goes(verdict: Any = "release") -> NodeVerdict:
    """What the plan says of it."""
    return NodeVerdict(node="n", pool="a", instance="i", verdict=verdict, why="idle for long", usd_per_hour=Decimal(9))


@pytest.mark.parametrize(
    ("one", "verdicts", "state"),
    [
        pytest.param(node(pods=(pod(1),)), (goes("keep"),), "working", id="a pod holds a GPU"),
        pytest.param(node(), (goes("keep"),), "idle", id="none does"),
        pytest.param(node(ready=False), (), "not-ready", id="it takes no pod yet"),
        pytest.param(node(schedulable=False, pods=(pod(1),)), (), "closed", id="somebody cordoned it"),
        pytest.param(node(pods=(pod(1),)), (goes(),), "going", id="the plan releases it"),
        pytest.param(node(marked=True, schedulable=False), (), "going", id="it carries our mark"),
    ],
)
def test_a_node_is_shown_by_what_is_on_it(one: Node, verdicts: tuple[NodeVerdict, ...], state: str) -> None:
    """Its state, its GPUs, and its price from the plan or the pool."""
    shown = tile(one, *verdicts)
    assert (shown.state, shown.gpus, shown.used, shown.usd) == (state, 8, 2.0, Decimal(9))


def test_of_many_pods_the_first_are_named() -> None:
    """Forty pods on a node are twelve names and a number."""
    shown = tile(node(pods=tuple(pod(n, 1) for n in range(40))))
    assert (shown.pods[0], len(shown.pods), shown.more) == ("ml/p0, 1 GPU", 12, 28)


def test_what_boots_is_paid_for_and_shown() -> None:
    """By its instance, with what its pool sells; of a pool without an offering by its name alone."""
    boots = (Booting(instance="i-1", requested_at=NOW),)
    pools = [PoolState(name=name, desired=1, booting=boots) for name in ("a",)]
    shown = tiles(ClusterView(), pools, (), (A100,))["i-1"]
    assert (shown.state, shown.gpus, shown.usd, shown.zone) == ("booting", 8, Decimal(9), "z")
    other = tiles(ClusterView(), pools, (), ())["i-1"]
    assert (other.state, other.gpus, other.usd) == ("booting", 0, None)


def day(of: date, *lines: tuple[str, int, int]) -> MeterDay:
    """A metered day of so many GPU-hours and dollars by kind."""
    made = tuple(
        CostLine(
            kind=kind,  # type: ignore[arg-type]
            pool="a", node="n", instance_type="p4d", capacity_type="spot", gpu_hours=Decimal(hours), usd=Decimal(usd),
        )
        for kind, hours, usd in lines
    )  # fmt: skip
    return MeterDay(day=of, until=NOW, lines=made)


def test_a_week_over_the_end_of_a_month_is_seven_days_and_the_month_its_own() -> None:
    """Days of the month before are in the week and not in the month's dollars; a day that nobody metered is empty."""
    days = [
        day(date(2026, 11, 30), ("used", 10, 100), ("idle", 6, 60)),
        day(date(2026, 12, 2), ("used", 3, 30), ("shared", 1, 10)),
    ]
    found = spending(days, datetime(2026, 12, 2, 12, tzinfo=UTC))
    assert (found.today, found.month) == (Decimal(40), Decimal(40))
    assert [one.day.day for one in found.week] == [26, 27, 28, 29, 30, 1, 2]
    assert [(one.paid, one.used) for one in found.week[4:]] == [(16, 10), (0, 0), (4, 3)]


def test_what_is_sent_makes_of_the_old_view_the_new_one() -> None:
    """Nodes that came, changed and went: a view with the changes taken in is the new view."""
    idle, works = (Tile(pool="a", state=state) for state in ("idle", "working"))
    was = Live(cluster="c", at=NOW, nodes={"stays": idle, "goes": idle, "begins": idle}, paid=3)
    now = msgspec.structs.replace(was, nodes={"stays": idle, "begins": works, "comes": idle}, used=1)
    new = changes(was, now)
    assert new == {"used": 1, "nodes": {"goes": None, "begins": works, "comes": idle}}
    assert changes(now, now) == {}
