"""Old nodes are replaced while idle, one of a pool at a time, within the windows that name the pool."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import NOW, SAME_SPEED, T4, bought, fate, node, pod, policy

from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.limits.rule_policy import Rule, RuleTime, RuleWhen
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import PoolPolicy, RenewPolicy, SparePolicy
from pilotlight.facts.workload import PodDemand

NIGHT = Rule(name="night", when=RuleWhen(time=RuleTime(start="02:00", end="04:00")))
NOON = Rule(name="noon", when=RuleWhen(time=RuleTime(start="11:00", end="13:00")))
BLOCKED = BoundPod(uid="d", namespace="ml", name="d", blocks="PodDisruptionBudget d")


def aged(name: str, days: float, **fields: Any) -> Node:
    """A T4 node of an age, idle for a moment unless it is used."""
    return node(name, T4, **{"idle_s": 5, "created_at": NOW - timedelta(days=days), **fields})


def planned(
    nodes: Sequence[Node],
    pending: Sequence[PodDemand] = (),
    *,
    drifted: tuple[str, ...] = (),
    more: int = 0,
    **given_: Any,
) -> Plan:
    """A plan for a pool that keeps two warm, whose nodes may be a week old."""
    windows = given_.pop("rules", ())
    renew = {"max_age": 7 * 86_400.0, "during": tuple(rule.name for rule in windows), **given_.pop("renew", {})}
    pool = PoolPolicy(instance_type="T4x1", spares=SparePolicy(warm=given_.pop("warm", 2)), renew=RenewPolicy(**renew))
    rules = policy([T4], pools={"t4": pool}, rules=windows)
    states = [PoolState(name="t4", desired=len(nodes) + more, drifted=drifted)]
    view = ClusterView(pending=tuple(pending), nodes=tuple(nodes))
    return plan_cluster(Look(view, states, [T4], rules, Memory(), NOW, throughput=SAME_SPEED, **given_))


OLD = (aged("old", 8), aged("older", 9))
CASES: dict[str, tuple[Plan, list[str]]] = {
    "the oldest of two": (planned(OLD), ["older"]),
    "none that is young enough": (planned([aged("a", 6), aged("b", 1)]), []),
    "none that works": (planned([aged("a", 9, used=1)]), []),
    "none that waiting pods will take": (planned([aged("a", 9)], [pod("p")]), []),
    "none whose drain is stopped": (planned([aged("a", 9, pods=(BLOCKED,))]), []),
    "none while another boots": (planned([*OLD, aged("new", 0, ready=False)]), []),
    "none while another is asked for": (planned(OLD, more=1), []),
    "none outside of its window": (planned(OLD, rules=(NIGHT,)), []),
    "one within one of its windows": (planned(OLD, rules=(NIGHT, NOON)), ["older"]),
    "one by age alone, where the pool says nothing of drift": (planned(OLD, drifted=("i-old",)), ["older"]),
    "one that an older template made": (
        planned([aged("a", 1), aged("b", 1)], drifted=("i-b",), renew={"drifted": True, "max_age": None}), ["b"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("made", "gone"), CASES.values(), ids=CASES)
def test_an_idle_node_is_replaced_when_it_is_old(made: Plan, gone: list[str]) -> None:
    """One at a time, and never one that is needed."""
    assert [verdict.node for verdict in made.releases] == gone


def test_its_reason_names_the_rule_and_what_stays_lit_is_bought_again() -> None:
    """The release says its age; with that node gone, the pool's warm minimum asks for a new one."""
    assert fate(planned(OLD), "older") == ("release", "idle, and 216.0 h old, over pools.t4.renew.max_age 168.0 h")
    drift = planned([aged("a", 1)], drifted=("i-a",), renew={"drifted": True})
    assert fate(drift, "a")[1] == "idle, and its pool's launch template has changed since it was made"
    assert bought(planned([OLD[0]])) == {"t4": 1}


def test_the_next_look_is_when_a_node_comes_of_age() -> None:
    """Nothing else has to happen for it."""
    assert planned([aged("a", 6.5), aged("b", 1)]).look_again_at == NOW + timedelta(hours=12)


@given(st.lists(st.tuples(st.floats(0, 20), st.booleans()), max_size=6))
def test_at_most_one_goes_and_none_that_works(nodes: list[tuple[float, bool]]) -> None:
    """Whatever the ages: one release at most, of an idle node that is over age."""
    lit = [aged(f"n{n}", days, used=int(busy)) for n, (days, busy) in enumerate(nodes)]
    gone = [v.node for v in planned(lit, warm=6).releases]
    assert len(gone) <= 1
    assert all(not busy and days >= 7 for n, (days, busy) in enumerate(nodes) if f"n{n}" in gone)
    assert bool(gone) == any(not busy and days >= 7 for days, busy in nodes)
