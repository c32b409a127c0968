"""Brakes in many states, as a table has them: what of a plan is made, what is held, and what its pods are told."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from state_tables import differing, line, states

from pilotlight.decide.limits.plan_brakes import apply_brakes, remember_call
from pilotlight.facts.decisions import Buy, NodeVerdict, Plan
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.memory import Memory, Turn
from pilotlight.facts.money.money_policy import ApproveOver, Caps, Limits
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.facts.policy import Policy

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CHOICES: dict[str, Any] = {
    "buys": (2, 0, 1, 3),
    "counts": ((2, 1, 3), (1, 1, 1), (4, 2, 0)),
    "prices": (("1", "2", "0"), ("3", "1", "1")),
    "gangs": (((), (), ()), (("g",), ("g",), ()), (("g",), ("g", "h"), ("h",))),
    "demands": (("u",), ()),
    "releases": (1, 0, 2, 3),
    "kind": ("", "failed", "forced", "capped"),
    "price": (Decimal(1), None),
    "mode": ("act", "scale-up", "advise", "observe"),
    "advice": ("", "the token is read-only"),
    "paused": ("", "a", "b", ALL),
    "unsettled": ("", "a", "b"),
    "turn age": (5, 9.99, 10, 11),
    "turn": ((1, 0, 1), (0, 1, 0), (0, 0, 0), (3, 2, 4)),
    "nodes added": (None, 2, 3, 4, 0),
    "usd added": (None, 3, 5, 9, 0),
    "nodes removed": (None, 1, 2, 3, 0),
    "over nodes": (None, 2, 4, 6),
    "over usd": (None, 3, 6, 20),
    "lit": (2, 0, 4),
    "approvals": ((), (("d1", 1),), (("d2", 2), ("d1", 2)), (("d3", 9), ("d2", 4))),
    "used up": ("", "d0"),
}


def _brakes(state: dict[str, Any]) -> Brakes:
    added, removed, usd = state["turn"]
    at = NOW - timedelta(minutes=state["turn age"])
    pools = ("a", "b", "c")
    return Brakes(
        modes=dict.fromkeys(pools, state["mode"]),
        advice=state["advice"],
        paused={state["paused"]: "a person said so"} if state["paused"] else {},
        approvals={"a": state["approvals"], "b": state["approvals"][:1]},
        used_up=dict.fromkeys(pools, state["used up"]) if state["used up"] else {},
        turns=(Turn(at=at, added=added, removed=removed, usd_per_hour=Decimal(usd)),),
    )


def _plan(state: dict[str, Any]) -> Plan:
    """Purchases of pools, each with a group of pods, and releases."""
    buys = tuple(
        Buy(
            pool=pool, offering=f"{pool}/x", zone="", count=state["counts"][n],
            usd_per_hour=Decimal(state["prices"][n]), boot_s=60, demands=state["demands"], shapes=(),
            why="pods wait", gangs=state["gangs"][n],
        )
        for n, pool in enumerate("abc"[: state["buys"]])
        if state["counts"][n]
    )  # fmt: skip
    kind: dict[str, Any] = {state["kind"]: True} if state["kind"] else {}
    nodes = tuple(
        NodeVerdict(
            node=f"n{n}", pool="a", instance=f"i{n}", verdict="release" if n < state["releases"] else "keep",
            why="idle", usd_per_hour=state["price"], **kind,
        )
        for n in range(3)
    )  # fmt: skip
    pods = [PodGroup(verdict="bought", pods=("ml/p",), uids=("u",), where=b.offering, why="cheapest") for b in buys]
    pods.append(PodGroup(verdict="fits", pods=("ml/q",), uids=("q",), where="a/x", why="room"))
    lit = Decimal(state["lit"])
    after = lit + sum(b.count * b.usd_per_hour for b in buys) - state["releases"]
    return Plan(buys=buys, nodes=nodes, pods=tuple(pods), usd_per_hour_before=lit, usd_per_hour_after=after)


def test_what_brakes_leave_of_a_plan_is_that_of_the_table() -> None:
    """By modes, pauses, limits of ten minutes and approvals: calls that are made, held ones, and words to the pods."""
    found = []
    for state in states(420, CHOICES):
        limits = Limits(
            nodes_added=state["nodes added"],
            usd_per_hour_added=None if state["usd added"] is None else Decimal(state["usd added"]),
            nodes_removed=state["nodes removed"],
        )
        usd = state["over usd"]
        over = ApproveOver(nodes=state["over nodes"], usd_per_hour=None if usd is None else Decimal(usd))
        brakes, rules = _brakes(state), Policy(version=1, caps=Caps(ten_minutes=limits, approve_over=over))
        unsettled = {state["unsettled"]: "an earlier call may land"} if state["unsettled"] else {}
        made = apply_brakes(_plan(state), brakes, unsettled, rules, state["lit"], NOW)
        buys = [f"{one.pool} {one.count} {one.approval}" for one in made.buys]
        held = [f"{one.code} {one.call} {one.action.pool} {one.count} {one.why} {one.after}" for one in made.held]
        pods = [f"{group.verdict} {group.why}" for group in made.pods]
        nodes = [f"{node.verdict} {node.why}" for node in made.nodes]
        memory = Memory(turns=brakes.turns)
        for call in made.calls:
            memory = remember_call(memory, call, 2, NOW, limits)
        turns = [f"{one.added} {one.removed} {one.usd_per_hour}" for one in memory.turns]
        money = f"${made.usd_per_hour_before} to ${made.usd_per_hour_after}"
        found.append(line(CHOICES, state, f"{buys} held {held} {pods} {nodes} {money} turns {turns}"))
    assert differing(Path(__file__).with_name("brakes.txt"), found) == []
