"""What becomes of advice that nobody acted on, and what of it would have hurt."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pilotlight.decide.alerts.advice_outcomes import MOST_OPEN, follow_advice
from pilotlight.facts.alerts.advice import Advised, OpenAdvice
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.decisions import Buy, Held, NodeVerdict
from pilotlight.facts.money.bill import CostLine, MeterDay
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.tools.advice.beside_advice import compare_with_advice

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
BOOTS = {"t4": 180.0}


def node(name: str, *uids: str) -> Node:
    """A node of one GPU, with these pods on it."""
    pods = tuple(BoundPod(uid=uid, namespace="ml", name=uid, gpu=GpuRequest(count=1)) for uid in uids)
    what: dict[str, Any] = {"instance_type": "g4dn.xlarge", "capacity_type": "on-demand", "ready": True}
    return Node(name=name, pool="t4", created_at=NOW, devices=(1000,), pods=pods, **what)


def waiting(uid: str) -> PodDemand:
    """A pod that waits."""
    made = shape(gpu=GpuRequest(count=1))
    return PodDemand(uid=uid, namespace="ml", name=uid, shape=made, created_at=NOW)


def release(name: str, code: Any = "mode") -> Held:
    """A node that would be given back."""
    made = NodeVerdict(node=name, pool="t4", instance=f"i-{name}", verdict="keep", why="idle", usd_per_hour=Decimal(1))
    return Held(code=code, why="the mode is advise", count=1, node=made)


def grow(*uids: str) -> Held:
    """A node that would be bought for these pods."""
    made = Buy(
        pool="t4", offering="t4/g4dn.xlarge/on-demand", zone="", count=1, usd_per_hour=Decimal(1), boot_s=180.0,
        demands=uids, shapes=("s",), why="waits",
    )  # fmt: skip
    return Held(code="mode", why="the mode is advise", count=1, buy=made)


def view(*nodes: Node, pending: tuple[str, ...] = ()) -> ClusterView:
    """A cluster."""
    return ClusterView(nodes=nodes, pending=tuple(map(waiting, pending)))


def after(seconds: float, *steps: tuple[tuple[Held, ...], ClusterView]) -> tuple[OpenAdvice, list[Advised]]:
    """What is open and what has ended after looks so many seconds apart."""
    was, ended = OpenAdvice(), list[Advised]()
    for n, (held, seen) in enumerate(steps):
        was, more = follow_advice(was, held, seen, BOOTS, NOW + timedelta(seconds=n * seconds))
        ended += more
    return was, ended


@pytest.mark.parametrize(
    ("held", "then", "end"),
    [
        pytest.param(release("a"), view(), "gone", id="another hand gave the node back"),
        pytest.param(release("a"), view(node("a", "u")), "used", id="work came back to the node"),
        pytest.param(release("a"), view(node("a")), "", id="the node is idle still"),
        pytest.param(grow("u"), view(node("b", "u")), "bound", id="the pod got a node by another hand"),
        pytest.param(grow("u"), view(node("b")), "left", id="the pod went before it ran"),
        pytest.param(grow("u", "v"), view(node("b", "u"), pending=("v",)), "", id="one of its pods waits still"),
    ],
)
def test_advice_ends_by_what_is_seen(held: Held, then: ClusterView, end: str) -> None:
    """Each piece is followed from the look that advised it to the one that tells what became of it."""
    first = view(node("a"), pending=held.buy.demands if held.buy else ())
    open_, ended = after(60, ((held,), first), ((), then))
    assert [one.end for one in ended] == ([end] if end else [])
    assert len(open_.open) == (0 if end else 1)


def test_the_same_advice_is_followed_once_from_when_it_began() -> None:
    """Each look advises it again; only what holds a pool's mode is advice."""
    steps = ((release("a"), grow("u"), release("b", "limit")), view(node("a"), node("b"), pending=("u",)))
    open_, ended = after(60, steps, steps, steps)
    assert sorted((one.call, one.at) for one in open_.open.values()) == [("grow", NOW), ("release", NOW)]
    assert ended == []


def test_what_is_followed_stays_bounded() -> None:
    """A fleet that is all idle does not outgrow the record."""
    names = [f"n{n}" for n in range(MOST_OPEN + 50)]
    open_, _ = after(60, (tuple(map(release, names)), view(*map(node, names))))
    assert len(open_.open) == MOST_OPEN


def advice(call: Any, end: Any, lasted_s: float, **more: Any) -> Advised:
    """Advice on a node of $36 an hour that boots in 100 s: a cent a second."""
    ends = {"end": end, "ended_at": NOW + timedelta(seconds=lasted_s)} if end else {}
    return Advised(
        call=call, pool="t4", target="n", at=NOW, boot_s=100, **{"usd_per_hour": Decimal(36), **ends, **more}
    )


@pytest.mark.parametrize(
    ("one", "saved", "hurts"),
    [
        pytest.param(advice("release", "gone", 1000), "10", None, id="it went 1000 s later"),
        pytest.param(advice("release", "", 0), "36", None, id="it is there still, an hour later"),
        pytest.param(advice("release", "used", 1000), "9", None, id="work came back late: lit again for $1"),
        pytest.param(advice("release", "used", 10), "-0.9", "2.9", id="work came back at once, and waits for $2"),
        pytest.param(advice("grow", "bound", 10), "0", "1", id="the pod ran before the node would have been there"),
        pytest.param(advice("grow", "left", 10), "0", "1", id="the pod was gone before"),
        pytest.param(advice("grow", "bound", 500), "0", None, id="the pod waited longer than it would have"),
    ],
)
def test_dollars_saved_and_advice_that_hurts(one: Advised, saved: str, hurts: str | None) -> None:
    """By what the node cost meanwhile, what lighting another costs, and what waiting is worth ($72 an hour)."""
    [row] = compare_with_advice([one], [], Decimal(72), NOW + timedelta(hours=1))
    assert row.saved_usd == Decimal(saved)
    assert [hurt.usd for hurt in row.hurt] == ([Decimal(hurts)] if hurts else [])


def test_a_pool_is_set_beside_what_it_cost() -> None:
    """The meter's dollars, the idle part of them, the nodes; waits as they were and as they would have been."""
    where: dict[str, Any] = {"pool": "t4", "instance_type": "g4dn.xlarge", "capacity_type": "on-demand"}
    lines = (
        CostLine(kind="used", node="a", usd=Decimal(5), **where),
        CostLine(kind="idle", node="a", usd=Decimal(3), **where),
        CostLine(kind="used", node="b", usd=Decimal(1), **{**where, "pool": "other"}),
    )
    day = MeterDay(day=date(2026, 11, 20), until=NOW, lines=lines)
    given = [advice("grow", "bound", 400, count=2), advice("release", "used", 9000), advice("grow", "", 0)]
    other, row = compare_with_advice(given, [day], Decimal(0), NOW + timedelta(hours=3))
    assert (other.pool, other.usd, other.buys) == ("other", Decimal(1), 0)
    assert (row.usd, row.idle_usd, row.nodes, row.buys, row.releases) == (Decimal(8), Decimal(3), 1, 3, 1)
    assert (row.served, row.waited_s, row.would_s, row.added_s) == (1, 400, 100, 100)


def test_an_unknown_price_is_in_no_sum_and_is_counted() -> None:
    """It is never $0 in silence."""
    [row] = compare_with_advice([advice("release", "gone", 1000, usd_per_hour=None)], [], Decimal(0), NOW)
    assert (row.saved_usd, row.unpriced, row.usd) == (Decimal(0), 1, None)
