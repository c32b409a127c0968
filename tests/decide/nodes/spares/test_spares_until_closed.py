"""Spares that keep pods off dear nodes until those are closed."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from small_fleet import A100, FLEET, NOW, T4, bought, fate, node, offering, plan, pod, policy, verdict

from pilotlight.decide.nodes.spares.demand_rates import add_demand, lead_s
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.labels import GPU_MODEL
from pilotlight.facts.limits.brakes import Brakes
from pilotlight.facts.memory import Hits, Memory
from pilotlight.facts.money.money_policy import ApproveOver, Caps, Limits
from pilotlight.facts.workload import PodDemand, PodShape, Requirement
from pilotlight.units import HOUR, clock_seconds

WORTH: dict[str, Any] = {"placement": "taint", "value_of_wait": Decimal("0.5")}
"""Waits are worth too little for any other spare."""
STEERED = policy(**WORTH)
ACTS = Brakes(modes=dict.fromkeys(STEERED.pools, "act"))
A100_ONLY = ((Requirement(key=GPU_MODEL, operator="In", values=("A100",)),),)
DEAR = pod("dear", terms=A100_ONLY)


def history(every_s: float) -> Hits:
    """T4 nodes were asked for regularly, one at a time, for two days."""
    hits: Hits | None = None
    for step in range(int(48 * HOUR / every_s), 0, -1):
        hits = add_demand(hits, 1, 1, clock_seconds(NOW) - step * every_s, lead_s(T4))
    assert hits is not None
    return hits


def small_work(shape: PodShape) -> Node:
    """A T4 node at work for a pod that may use any GPU."""
    running = BoundPod(uid="u", namespace="ml", name="small", gpu=shape.gpu, shape=shape)
    return node("busy", T4, used=1, pods=(running,))


BUSY = Memory(strays={"v100x4": NOW, "a100": NOW}, hits={"t4": history(900)})


def steered(pending: PodDemand | None, *nodes: Node, **options: Any) -> Plan:
    """A plan where small work runs and the dear nodes are closed to it."""
    waiting = (pending,) if pending is not None else ()
    given = {"rules": STEERED, "memory": BUSY, "brakes": ACTS, **options}
    small = given.pop("small", pod("small").shape)
    return plan(waiting, (small_work(small), *nodes), **given)


SLOW_T4 = offering("t4", "T4", 1, "1", boot_s=400.0)
WHOLE = pod("whole", gpus=8, terms=A100_ONLY)
GUARDED: dict[str, tuple[PodDemand, dict[str, Any], dict[str, int]]] = {
    "a dear node for one pod has seven GPUs left": (DEAR, {}, {"t4": 1, "a100": 1}),
    "not where the pod takes all of it": (WHOLE, {}, {"a100": 1}),
    "not where small work is asked for once in two hours": (
        DEAR,
        {"memory": msgspec.structs.replace(BUSY, hits={"t4": history(7200)})},
        {"a100": 1},
    ),
    "not where no small work strays": (DEAR, {"memory": msgspec.structs.replace(BUSY, strays={})}, {"a100": 1}),
    "not where nothing is closed": (DEAR, {"rules": policy(value_of_wait=Decimal(1))}, {"a100": 1}),
    "not where nothing is bought ahead": (DEAR, {"rules": policy(placement="taint")}, {"a100": 1}),
    "not where small work was asked for twice": (
        DEAR,
        {"memory": msgspec.structs.replace(BUSY, hits={"t4": msgspec.structs.replace(history(900), count=2)})},
        {"a100": 1},
    ),
    "not where the spare would come later than the dear node": (
        DEAR,
        {"offerings": (SLOW_T4, *FLEET[1:])},
        {"a100": 1},
    ),
    "not for a pod that would not fit beside": (
        pod("seven", gpus=7, terms=A100_ONLY),
        {"memory": BUSY, "small": pod("four", gpus=4).shape},
        {"a100": 1},
    ),
    "not where launches are limited": (DEAR, {"rules": policy(**WORTH, limits=Limits(nodes_added=9))}, {"a100": 1}),
    "not where a person approves": (DEAR, {"rules": policy(**WORTH, approve_over=ApproveOver(nodes=9))}, {"a100": 1}),
    "not while the dear pool is not grown": (DEAR, {"unsettled": {"a100": "an operation of hours ago"}}, {}),
    "not above the cap": (
        DEAR,
        {"rules": policy(**WORTH, caps=Caps(nodes=2))},
        {"a100": 1},
    ),
}


@pytest.mark.parametrize(("waits", "options", "buys"), GUARDED.values(), ids=GUARDED.keys())
def test_a_spare_is_bought_beside_a_dear_node_that_small_work_could_start_on(
    waits: PodDemand, options: dict[str, Any], buys: dict[str, int]
) -> None:
    """While a dear node with room boots, the next small pod finds a node of its own."""
    assert bought(steered(waits, **options)) == buys


def test_the_spare_is_launched_first_and_says_whom_it_is_for() -> None:
    """It has to be ready before the dear node."""
    free = steered(DEAR)
    assert [buy.pool for buy in free.buys] == ["t4", "a100"]
    said = "for pods that would start on a dear node before it is closed: 23% x 30 min x $32.00/h of a100 > $1.00/h"
    assert said in free.buys[0].why


def at_work(of: PodDemand = DEAR, **fields: Any) -> Node:
    """An A100 node that was asked for three minutes ago and is at work since a second."""
    running = BoundPod(uid="d", namespace="ml", name="dear", gpu=of.shape.gpu, shape=of.shape)
    used = of.shape.gpu.count
    since = {"created_at": NOW - timedelta(seconds=181), "ready_since": NOW - timedelta(seconds=1)}
    return node("new", A100, used=used, **{"pods": (running,), **since, **fields})


KEPT: dict[str, tuple[PodDemand | None, Node, str]] = {
    "while the dear node boots": (DEAR, node("new", A100, ready=False, devices=(), created_at=NOW), "keep"),
    "while its pod binds": (DEAR, node("new", A100, created_at=NOW - timedelta(seconds=181)), "keep"),
    "while it is open": (None, at_work(), "keep"),
    "no longer once it is closed": (None, at_work(closed=True), "release"),
    "not beside one that is full": (None, at_work(WHOLE), "release"),
    "not beside one that nobody may use": (None, at_work(schedulable=False), "release"),
    "not beside one that stays open for a DaemonSet": (None, at_work(unserved=("gpu-monitor",)), "release"),
    "not beside one that is open for long": (None, at_work(ready_since=NOW - timedelta(minutes=3)), "release"),
}


@pytest.mark.parametrize(("waits", "dear", "becomes"), KEPT.values(), ids=KEPT.keys())
def test_the_spare_stays_until_the_dear_node_is_closed(waits: PodDemand | None, dear: Node, becomes: str) -> None:
    """An idle T4 node that would go is kept as long as a small pod could start on the A100 node, and no longer."""
    made = steered(waits, node("idle", T4, idle_s=7000), dear)
    assert (fate(made, "idle")[0], "t4" in bought(made)) == (becomes, False)


def test_a_dear_node_on_its_way_brings_no_spare_that_would_come_too_late() -> None:
    """Where the spare was taken before the dear node is ready no other is bought: it would be ready after that."""
    assert bought(steered(DEAR, node("new", A100, ready=False, devices=(), created_at=NOW))) == {}


def test_a_spare_that_is_held_says_nothing_of_a_pod_whose_own_node_is_bought() -> None:
    """Two nodes may be added, for two pods: the warm one of a pod's own type waits, the pod does not."""
    pools = {**STEERED.pools, "t4": msgspec.structs.replace(STEERED.pools["t4"], warm=1)}
    rules = policy(**WORTH, limits=Limits(nodes_added=2), pools=pools)
    small = pod("small")
    made = plan([DEAR, small], rules=rules, memory=Memory(strays=BUSY.strays), brakes=ACTS)
    assert [(held.buy.pool, held.count) for held in made.held if held.buy] == [("t4", 1)]
    assert verdict(made, small)[0] == "bought"
