"""Why a node without work does not do: said by code and in words beside what is bought, refused or waits."""

from datetime import timedelta
from typing import Any

import pytest
from small_fleet import A100, NOW, T4, node, plan, pod, pods, policy

from pilotlight.decide.nodes.idle_nodes import NAMED
from pilotlight.facts.capacity import Node, Resources, Taint
from pilotlight.facts.labels import GPU_MODEL, POOL, ZONE
from pilotlight.facts.memory import FitMismatch, Memory
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.workload import Requirement

MINE = (Taint(key="mine", value="yes", effect="NoSchedule"),)
IN_A = ((Requirement(key=ZONE, operator="In", values=("a",)), Requirement(key=POOL, operator="In", values=("t4",))),)


def elsewhere(**labels: str) -> dict[str, str]:
    """A node's labels with some changed."""
    return {**T4.labels, **labels}


CASES: dict[str, tuple[Node, dict[str, Any], str, str]] = {
    "a taint": (node("n", taints=MINE), {}, "toleration", "does not tolerate mine=yes:NoSchedule"),
    "a label": (
        node("n", labels=elsewhere(**{POOL: "other"})),
        {"terms": ((Requirement(key=POOL, operator="In", values=("t4",)),),)},
        "selector",
        "does not match its labels",
    ),
    "its zone": (node("n", labels=elsewhere(**{ZONE: "b"})), {"terms": IN_A}, "zone", "in zone b, the pod asks for a"),
    "a volume": (
        node("n", labels=elsewhere(**{ZONE: "b"})),
        {"terms": IN_A, "reach": (IN_A,)},
        "volume",
        "a volume of the pod",
    ),
    "its model": (
        node("n", labels=elsewhere(**{GPU_MODEL: "P4"})),
        {"gpu_models": ("T4",)},
        "model",
        "P4 is not one of T4",
    ),
    "its memory": (node("n", free=Resources(memory=2**30)), {"memory": 2**31}, "room", "needs 2.0 GiB of memory"),
    "its CPU": (node("n", free=Resources(cpu_milli=500)), {"cpu_milli": 1000}, "room", "needs 1 CPU, it has 0.5 free"),
    "a cordon": (node("n", schedulable=False), {}, "cordon", "somebody cordoned it"),
    "our mark": (node("n", schedulable=False, marked=True), {}, "mark", "carries our mark"),
    "it is not ready": (node("n", ready=False, created_at=NOW - timedelta(hours=2)), {}, "not-ready", "not ready"),
}


@pytest.mark.parametrize(("lit", "traits", "code", "words"), CASES.values(), ids=CASES.keys())
def test_an_idle_node_of_the_type_says_why_not(lit: Node, traits: dict[str, Any], code: str, words: str) -> None:
    """A pod that no idle node of its type helps is told of that node, whether another is bought for it or not."""
    made = plan([pod("p", **traits)], [lit], offerings=[T4], rules=policy([T4], caps=Caps(nodes=9)))
    (group,) = made.pods
    assert [(i.node, i.code) for i in group.idle] == [("n", code)]
    assert words in group.idle[0].why


def test_a_node_that_the_scheduler_refuses_is_told_with_its_words() -> None:
    """What the scheduler does not use is no mystery beside the purchase."""
    wanted = pod("p")
    refused = FitMismatch(
        shape=wanted.shape.key, node="n", pool="t4", until=NOW + timedelta(hours=1), why="does not fit there: spread"
    )
    (group,) = plan([wanted], [node("n")], offerings=[T4], memory=Memory(misfits=(refused,))).pods
    assert [(i.code, "spread" in i.why) for i in group.idle] == [("misfit", True)]


def test_a_node_that_other_pods_take_is_told() -> None:
    """Of two pods one takes the idle node; the other hears that its room is taken."""
    made = plan(pods(2), [node("n")], offerings=[T4])
    assert {g.verdict: [i.code for i in g.idle] for g in made.pods} == {"fits": [], "bought": ["planned"]}


def test_only_a_few_nodes_of_the_bought_type_are_named() -> None:
    """Of many that say the same a few are named, and none of another type than the one that is bought."""
    lit = [*(node(f"n{i}", schedulable=False) for i in range(9)), node("a", A100, schedulable=False)]
    (group,) = plan([pod("p")], lit).pods
    assert [i.node for i in group.idle] == [f"n{i}" for i in range(NAMED)]


def test_a_refused_pod_hears_of_idle_nodes_of_any_type() -> None:
    """Where nothing is bought every idle node is asked."""
    rules = policy(caps=Caps(nodes=1))
    (group,) = plan([pod("p")], [node("a", A100, taints=MINE)], rules=rules).pods
    assert (group.verdict, [(i.node, i.code) for i in group.idle]) == ("refused", [("a", "toleration")])


def test_a_busy_node_is_not_called_idle() -> None:
    """A node at work is no answer to why one is bought."""
    assert plan([pod("p")], [node("n", used=1)], offerings=[T4]).pods[0].idle == ()
