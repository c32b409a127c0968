"""What is paid for already is filled first, at no price and up to what is paid for, and its unused rest is told."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from small_fleet import NOW, SAME_SPEED, T4, bought, node, offering, plan, pod, pods, policy

from pilotlight.decide.offers.reserved_capacity import count_unused
from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.offers.paid_capacity import Paid, PaidIdle, UnusedPool
from pilotlight.facts.policy import ClassPolicy, PaidPolicy, PoolPolicy
from pilotlight.facts.workload import PodDemand

PAID = offering("paid", "T4", 1, "0", capacity_type="reserved", on_demand_usd_per_hour=Decimal(1))
BOTH = (PAID, T4)
SPOT_ONLY = {"batch": ClassPolicy(gpu_models="any", capacity_types=("spot",))}


def reserved(count: int, free: int | None = None, **fields: Any) -> Paid:
    """A reservation, unused unless said otherwise."""
    return Paid(name="cr-1", count=count, free=count if free is None else free, **fields)


def planned(
    pending: Sequence[PodDemand],
    *told: Paid,
    size: int = 0,
    nodes: Sequence[Node] = (),
    now: datetime = NOW,
    committed: str | None = None,
    **rules: Any,
) -> Plan:
    """A plan where the pool ``paid`` has such capacity and as many nodes, and an equal one costs $1 an hour."""
    states = [PoolState(name="paid", desired=size, paid=told), PoolState(name="t4", desired=0)]
    view = ClusterView(pending=tuple(pending), nodes=tuple(nodes))
    seen = Memory(idle_since={each.name: each.idle_since for each in nodes if each.idle_since})
    sold = (replace(PAID, committed_usd_per_hour=Decimal(committed)), T4) if committed else BOTH
    return plan_cluster(Look(view, states, sold, policy(sold, **rules), seen, now, throughput=SAME_SPEED))


FILLED: dict[str, tuple[Plan, dict[str, int]]] = {
    "paid capacity first, the rest for dollars": (planned(pods(5), reserved(3)), {"paid": 3, "t4": 2}),
    "only what others left of it": (planned(pods(5), reserved(3, 1)), {"paid": 1, "t4": 4}),
    "no more than is paid for, though the cloud still counts it free": (
        planned(pods(2), reserved(3, 3), size=3, nodes=[node(f"n{n}", PAID, used=1) for n in range(3)]),
        {"t4": 2},
    ),
    "none that has not begun": (planned(pods(1), reserved(3, starts=NOW + timedelta(hours=1))), {"t4": 1}),
    "none that is over": (planned(pods(1), reserved(3, ends=NOW)), {"t4": 1}),
    "none that ends before the work": (
        planned([pod("p", max_run_s=7200)], reserved(3, ends=NOW + timedelta(hours=2))),
        {"t4": 1},
    ),
    "some that ends before the work, which saves as it goes": (
        planned([pod("p", max_run_s=7200, checkpoint_s=600)], reserved(3, ends=NOW + timedelta(hours=2))),
        {"paid": 1},
    ),
    "several at once": (planned(pods(5), reserved(1), reserved(2)), {"paid": 3, "t4": 2}),
    "none where its cloud tells none": (planned(pods(1)), {"t4": 1}),
    "nothing for a class that may use spot alone": (planned(pods(1), reserved(3), classes=SPOT_ONLY), {}),
    "a whole cap in dollars an hour": (
        planned(pods(5), reserved(3), caps=Caps(usd_per_hour=Decimal(1))),
        {"paid": 3, "t4": 1},
    ),
}


@pytest.mark.parametrize(("made", "nodes"), FILLED.values(), ids=FILLED.keys())
def test_what_is_paid_for_is_filled_first(made: Plan, nodes: dict[str, int]) -> None:
    """A reserved pool costs nothing more until it is full or over; then the next-best offering is bought."""
    assert bought(made) == nodes
    assert made.usd_per_hour_after == nodes.get("t4", 0)


def test_commitments_are_what_the_policy_says() -> None:
    """Where a cloud tells no reservation, the policy's number of paid nodes counts, up to its last moment."""
    pool = PoolPolicy(instance_type="T4x1", capacity_type="reserved", max=20, paid=PaidPolicy(nodes=2))
    assert bought(planned(pods(3), pools={"paid": pool})) == {"paid": 2, "t4": 1}
    over = PoolPolicy(instance_type="T4x1", capacity_type="reserved", max=20, paid=PaidPolicy(nodes=2, until=NOW))
    assert bought(planned(pods(3), pools={"paid": over})) == {"t4": 3}


def test_what_is_paid_for_and_unused_is_told() -> None:
    """Its nodes, GPUs and what they cost on demand, without those that the plan lights."""
    (idle,) = planned(pods(1), reserved(3), reserved(1, 0)).paid_idle
    assert (idle.pool, idle.nodes, idle.count, idle.gpus, idle.worth) == ("paid", 2, 4, 2, Decimal(2))
    assert str(idle) == "2 of 4 x T4x1 in pool paid: 2 GPUs, $2.00/h on demand"
    assert planned(pods(3), reserved(3)).paid_idle == ()


def test_what_a_bill_tells_of_a_commitment_is_what_it_is_worth_and_moves_nothing() -> None:
    """Unused nodes cost what the bill spreads over them, not what they would on demand; the plan buys the same."""
    found = planned(pods(1), reserved(3), committed="0.6")
    (idle,) = found.paid_idle
    assert (idle.worth, idle.effective) == (Decimal("1.2"), True)
    assert str(idle) == "2 of 3 x T4x1 in pool paid: 2 GPUs, $1.20/h effective"
    without = planned(pods(1), reserved(3))
    assert (found.usd_per_hour_after, bought(found)) == (without.usd_per_hour_after, bought(without))


def test_a_paid_node_idles_as_long_as_its_class_allows() -> None:
    """Keeping it costs nothing: only the longest idle time of its class ends that."""
    lit = [node("n", PAID, idle_s=3000)]
    (kept,) = planned((), reserved(1, 0), size=1, nodes=lit).nodes
    assert (kept.verdict, "paid for either way" in kept.why) == ("keep", True)
    (gone,) = planned((), reserved(1, 0), size=1, nodes=lit, now=NOW + timedelta(minutes=11)).nodes
    assert gone.verdict == "release"


def test_a_full_pool_says_so() -> None:
    """A pod that only reserved capacity would hold waits, and is told what is in use."""
    rules = policy([PAID])
    made = plan([pod("p")], offerings=[PAID], rules=rules)
    ((verdict, code),) = {(group.verdict, group.code) for group in made.pods}
    assert (verdict, code) == ("refused", "paid")


@given(
    wanted=st.integers(0, 12),
    told=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=3),
    size=st.integers(0, 6),
)
def test_no_more_is_lit_than_is_paid_for(wanted: int, told: list[tuple[int, int]], size: int) -> None:
    """Whatever a cloud says is free, a reserved pool never grows over what is paid for, and the rest costs dollars."""
    paid = [reserved(count, min(free, count)) for count, free in told]
    lit = [node(f"n{n}", PAID, used=1) for n in range(size)]
    made = bought(planned(pods(wanted), *paid, size=size, nodes=lit))
    new = made.get("paid", 0)
    assert new == 0 or size + new <= sum(p.count for p in paid)
    assert new <= sum(p.free for p in paid)
    assert sum(made.values()) == wanted


def test_what_runs_beyond_what_is_paid_for_is_said_with_its_price() -> None:
    """Nodes that outlive a reservation cost dollars that no budget counts; within it there is nothing to say."""
    here = [node(f"n{n}", PAID, used=1) for n in range(3)]
    (said,) = planned((), reserved(2, 0), size=3, nodes=here).findings
    assert (said.code, said.subject) == ("not-paid", "pool paid")
    assert "$1.00/h on demand" in said.message
    (over,) = planned((), reserved(3, 0, ends=NOW), size=3, nodes=here).findings
    assert "$3.00/h on demand" in over.message
    assert planned((), reserved(3, 0), size=3, nodes=here).findings == ()


def test_what_was_unused_is_counted_each_hour_once() -> None:
    """What a look finds goes on until the next; the same look twice adds nothing, and an unknown price is no $0."""
    idle = PaidIdle(pool="paid", instance_type="T4x1", nodes=2, count=4, gpus=2, worth=Decimal(3))
    first = count_unused(None, (idle,), NOW)
    later = count_unused(first, (), NOW + timedelta(hours=2))
    assert count_unused(later, (), NOW + timedelta(hours=2)) == later
    end = count_unused(later, (replace(idle, worth=None),), NOW + timedelta(hours=3))
    assert end.pools["paid"] == UnusedPool(gpus=2, worth=None, gpu_hours=Decimal(4), usd=Decimal(6), priced=True)
    assert not count_unused(end, (), NOW + timedelta(hours=4)).pools["paid"].priced


def test_of_unused_dollars_those_by_a_bill_are_known() -> None:
    """An hour at a bill's price after two hours on demand."""
    idle = PaidIdle(pool="paid", instance_type="T4x1", nodes=2, count=4, gpus=2, worth=Decimal(3))
    first = count_unused(None, (idle,), NOW)
    told = count_unused(first, (replace(idle, worth=Decimal(2), effective=True),), NOW + timedelta(hours=2))
    found = count_unused(told, (), NOW + timedelta(hours=3)).pools["paid"]
    assert (found.usd, found.effective, found.priced) == (Decimal(8), Decimal(2), True)
