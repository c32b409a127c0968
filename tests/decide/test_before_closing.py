"""Spares that keep pods off dear nodes until those are closed."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from small_fleet import A100, FLEET, NOW, T4, bought, fate, node, offering, plan, pod, policy

from pilotlight.decide.capacity.demand_rates import asked, lead_s
from pilotlight.facts.brakes import Brakes
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.labels import GPU_MODEL
from pilotlight.facts.memory import Hits, Memory
from pilotlight.facts.policy import Caps, Limits
from pilotlight.facts.workload import PodDemand, Requirement
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
        hits = asked(hits, 1, 1, clock_seconds(NOW) - step * every_s, lead_s(T4))
    assert hits is not None
    return hits


def small_work() -> Node:
    """A T4 node at work for a pod that may use any GPU."""
    running = BoundPod(uid="u", namespace="ml", name="small", gpu=pod("small").shape.gpu, shape=pod("small").shape)
    return node("busy", T4, used=1, pods=(running,))


BUSY = Memory(strays={"v100x4": NOW, "a100": NOW}, hits={"t4": history(900)})


def steered(pending: PodDemand | None, *nodes: Node, **options: Any) -> Plan:
    """A plan where small work runs and the dear nodes are closed to it."""
    waiting = (pending,) if pending is not None else ()
    given = {"rules": STEERED, "memory": BUSY, "brakes": ACTS, **options}
    return plan(waiting, (small_work(), *nodes), **given)


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
    """It has to be ready before the dear node; where launches are limited the pod that waits comes first."""
    free = steered(DEAR)
    assert [buy.pool for buy in free.buys] == ["t4", "a100"]
    assert "for pods that would start on a node before it is closed: a100" in free.buys[0].why
    limited = policy(**WORTH, limits=Limits(nodes_added=1))
    assert [buy.pool for buy in steered(DEAR, rules=limited).buys] == ["a100"]


def test_the_spare_stays_until_the_dear_node_is_closed() -> None:
    """An idle T4 node that would go is kept while the A100 node boots and while it is open, and no longer."""
    idle = node("idle", T4, idle_s=7000)
    coming = node("new", A100, ready=False, devices=(), created_at=NOW)
    booting = steered(DEAR, idle, coming)
    assert fate(booting, "idle")[0] == "keep"
    assert "t4" not in bought(booting)
    dear = BoundPod(uid="d", namespace="ml", name="dear", gpu=DEAR.shape.gpu, shape=DEAR.shape)
    at_work = node("new", A100, used=1, pods=(dear,))
    assert fate(steered(None, idle, at_work), "idle")[0] == "keep"
    closed = msgspec.structs.replace(at_work, closed=True)
    assert fate(steered(None, idle, closed), "idle")[0] == "release"


def test_a_dear_node_on_its_way_brings_no_spare_that_would_come_too_late() -> None:
    """Where the spare was taken before the dear node is ready no other is bought: it would be ready after that."""
    assert bought(steered(DEAR, node("new", A100, ready=False, devices=(), created_at=NOW))) == {}
