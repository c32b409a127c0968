"""Idle nodes in many states, as a table has them: which go, which stay, why, and when that is looked at again."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from small_fleet import NOW, T4, node, offering, plan, pod, policy
from state_tables import differing, line, minutes, states

from pilotlight.decide.nodes.scale_down import blocked_idle_nodes, idle_from
from pilotlight.decide.nodes.spares.demand_rates import add_demand
from pilotlight.facts.capacity import BoundPod, Node, Offering
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.budgets import Money
from pilotlight.facts.policy import ClassPolicy, PoolPolicy, SparePolicy
from pilotlight.units import clock_seconds

HOURLY = offering("t4", "T4", 1, "6", minimum_s=3600, increment_s=3600)
STEPS = offering("t4", "T4", 1, "0.5", increment_s=241)
SOLD: dict[str, Offering] = {
    "t4": T4,
    "hourly": HOURLY,
    "steps": STEPS,
    "short": offering("t4", "T4", 1, "1", increment_s=240),
}
CHOICES: dict[str, Any] = {
    "sold": ("t4", "hourly", "steps", "short"),
    "nodes": (2, 1, 3),
    "idle": ((5, 10, 20), (5, 5, 5), (4.99, 5, 5.01), (0, 0, 30), (58, 59, 118)),
    "age": (60, 57.99, 58, 117, 118, 119.5),
    "ready": (True, True, False),
    "ready since": (None, 3, 0, 0.01),
    "busy": (0, 0, 1),
    "blockers": (0, 1, 5, 6, 7),
    "timeout": (300, None, 0, 1200),
    "warm": (0, 1, 2),
    "min": (0, 1, 2, 3),
    "cooldown": (0, 300, 600),
    "bought": (None, 5, 10, -4.99, -5),
    "rests": (None, 0, 1, -1),
    "floor": (None, 0, 1, -1),
    "frozen": (None, False, True),
    "capped": (False, True),
    "class": ("batch", "serving", "training"),
    "wait": (0, 3, 30),
    "pods": (0, 0, 1),
    "history": (0, 0, 5, 40),
    "remembered": (True, False),
    "of policy": ("yes", "yes", "yes", "unpriced", "no"),
}


def _nodes(state: dict[str, Any], of: Offering) -> list[Node]:
    out = []
    for n in range(state["nodes"]):
        busy = n < state["busy"]
        cpu = tuple(
            BoundPod(uid=f"c{n}{i}", namespace="web", name=f"c{i}", blocks="local storage")
            for i in range(state["blockers"] if n == 1 or state["nodes"] == 1 else 0)
        )
        since = state["ready since"]
        made = node(
            f"n{n}",
            of,
            used=int(busy),
            idle_s=60 * state["idle"][n],
            created_at=NOW - timedelta(minutes=state["age"] + n),
            ready=state["ready"] or n > 0,
            ready_since=None if since is None else NOW - timedelta(minutes=since),
        )
        fields = {name: getattr(made, name) for name in made.__struct_fields__}
        out.append(Node(**fields | {"pods": (*made.pods, *cpu)}))
    return out


def _at(count: float | None) -> Any:
    return None if count is None else NOW - timedelta(minutes=count)


def _memory(state: dict[str, Any], of: Offering, nodes: list[Node]) -> Memory:
    hits, at = None, clock_seconds(NOW) - 3600 * 10
    for _ in range(state["history"]):
        at += 600
        hits = add_demand(hits, 1, 1.0, min(at, clock_seconds(NOW)), of.boot_s + 10)
    bought, rests, floor = (_at(state[name]) for name in ("bought", "rests", "floor"))
    return Memory(
        pool_class={"t4": state["class"]},
        last_buy={"t4": bought} if bought else {},
        rests={"n0": rests} if rests else {},
        floors={"t4": floor} if floor else {},
        hits={"t4": hits} if hits else {},
        idle_since={n.name: n.idle_since for n in nodes if n.idle_since} if state["remembered"] else {},
    )


def test_which_idle_nodes_go_is_that_of_the_table() -> None:
    """By how long each idles, what it costs, what its pool keeps, what is in the way, budgets and demand of before."""
    found = []
    for state in states(420, CHOICES):
        of = SOLD[state["sold"]]
        pool = PoolPolicy(
            instance_type="T4x1",
            max=20,
            spares=SparePolicy(warm=state["warm"]),
            min=state["min"],
            idle_timeout=state["timeout"],
        )
        sold = [of] if state["of policy"] == "yes" else [offering("other", "T4", 1, "1")]
        rules = policy(
            sold,
            pools={"t4": pool} if state["of policy"] != "no" else {},
            classes={"batch": ClassPolicy(gpu_models="any", max_idle_timeout=1800)},
            cooldown=state["cooldown"],
            value_of_wait=Decimal(state["wait"]),
        )
        nodes = _nodes(state, of)
        frozen = {} if state["frozen"] is None else {"n0": state["frozen"]}
        money = Money(frozen=frozen, capped=frozenset(frozen) if state["capped"] else frozenset())
        memory = _memory(state, of, nodes)
        pending = [pod(f"p{n}") for n in range(state["pods"])]
        made = plan(pending, nodes, offerings=sold, rules=rules, memory=memory, money=money)
        told = [
            f"{one.verdict} {one.node} {one.idle_s / 60:g} of {one.break_even_s / 60:g} {one.blocked} {one.capped} "
            f"{one.frozen} {one.learned} ${one.spent_usd} {one.why}"
            for one in made.nodes
        ]
        ways = [finding.message for finding in blocked_idle_nodes(made.nodes)]
        again = minutes(made.look_again_at, NOW)
        found.append(line(CHOICES, state, f"{told} {ways} again {again} buys {[b.count for b in made.buys]}"))
    assert differing(Path(__file__).with_name("idle_nodes.txt"), found) == []


def test_since_when_a_node_is_idle() -> None:
    """The later of what is remembered and what is shown, never ahead of now; from now on where nothing is known."""
    early, late, ahead = (NOW + timedelta(minutes=each) for each in (-9, -3, 2))
    cases = {
        (None, None): NOW,
        (None, early): NOW,
        (early, None): early,
        (early, late): late,
        (late, early): late,
        (ahead, None): NOW,
        (early, ahead): NOW,
    }
    assert {case: idle_from(*case, NOW) for case in cases} == cases
