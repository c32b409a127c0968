"""The proof of a notice in many states, as a table has it: whose word it is, of what, when, and who says otherwise."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from small_fleet import NOW, T4, node
from state_tables import differing, line, minutes, states

from pilotlight.decide.interruption.verify_notice import impossible, judge, marks, untrue_at
from pilotlight.facts.capacity import Node, Taint
from pilotlight.facts.interruption.interruption import Confirmed, Interruption
from pilotlight.facts.interruption.notice_kinds import ANNOUNCED, CONDITIONS, LABELS, TAINTS
from pilotlight.facts.nodes.pool_state import InstanceState

HERE = Path(__file__).parent
DAY = 1440.0
NOTICES: dict[str, Any] = {
    "kind": (
        "spot-interruption",
        "rebalance",
        "scheduled-change",
        "lifecycle",
        "state-change",
        "hard-cap",
        "preempted",
    ),
    "cloud": ("aws", "", "gcp", "node", "world", "azure"),
    "whose": ("aws", "", "gcp", "world"),
    "received": (0, -0.5, -0.4, -5, -6, -59, -61, -120),
    "said": (None, 0, -1, -2, -3, -15, -16, -58, -70, 9, 10, 11, 90 * DAY, 91 * DAY, -91 * DAY),
    "deadline": (2, None, 0, -1, -2, -3, 30, 60, 90 * DAY, 91 * DAY),
    "named": (True, False),
    "confirmed": (None, 2, 2.05, 2.1, 10),
}
NODES: dict[str, Any] = {
    "type": ("spot", "on-demand", "reserved"),
    "of": ("", "aws", "gcp"),
    "ready": (True, False),
    "age": (60, 0, -1, 2, 1, 15, 16),
    "mark": ("", "taint", "condition", "label", "announced"),
}
SAID: dict[str, Any] = {
    "there": (None, True, True, True, False),
    "going": (None, True, False),
    "goes": (None, 2, 30, 31, 1.9),
    "runs": (None, True, False),
    "risk": (None, True, False),
    "born": (None, 60, 1, 0, 2, 3),
}
CHOICES = NOTICES | NODES | SAID


def _in(count: float | None) -> datetime | None:
    return None if count is None else NOW + timedelta(minutes=count)


def _node(state: dict[str, Any]) -> Node:
    shown = state["mark"]
    taint, condition, label = sorted(TAINTS)[0], sorted(CONDITIONS)[0], sorted(set(LABELS) - set(ANNOUNCED))[:1]
    told = sorted(ANNOUNCED)[0]
    fields: dict[str, dict[str, Any]] = {
        "": {},
        "taint": {"taints": (Taint(key="x", effect="NoSchedule"), Taint(key=taint, effect="NoSchedule"))},
        "condition": {"conditions": ("Other", condition)},
        "label": {"labels": dict.fromkeys([*label, "x"], "1")},
        "announced": {"taints": (Taint(key=told, effect=""),), "conditions": (told,), "labels": {told: "1"}},
    }
    return node(
        "n",
        replace(T4, capacity_type=state["type"]),
        cloud=state["of"],
        ready=state["ready"],
        created_at=_in(-state["age"]),
        **fields[shown],
    )


def _found(state: dict[str, Any]) -> Interruption:
    sure = state["confirmed"]
    return Interruption(
        cluster="c",
        instance="i-n",
        begin=NOW,
        kind=state["kind"],
        cloud=state["cloud"],
        received_at=NOW + timedelta(minutes=state["received"]),
        said_at=_in(state["said"]),
        deadline=_in(state["deadline"]),
        named=state["named"],
        confirmed=None if sure is None else Confirmed(deadline=NOW + timedelta(minutes=sure)),
    )


def _said(state: dict[str, Any]) -> InstanceState | None:
    if state["there"] is None:
        return None
    born = state["born"]
    return InstanceState(
        there=state["there"],
        created_at=None if born is None else _in(-born),
        going=state["going"],
        deadline=_in(state["goes"]),
        runs=state["runs"],
        at_risk=state["risk"],
    )


def _answer(state: dict[str, Any]) -> str:
    found, on = _found(state), _node(state)
    proof = judge(found, on, _said(state), NOW, state["whose"])
    never = impossible(found, None, NOW, state["whose"])
    shown = "; ".join(filter(None, (marks(on, kind) for kind in (state["kind"], "scheduled-change"))))
    until = minutes(untrue_at(found), NOW)
    return f"{proof.truth}: {proof.why} {minutes(proof.deadline, NOW)} | {never} | {shown} | untrue at {until}"


def test_every_proof_is_that_of_the_table() -> None:
    """By a notice's kind, cloud and times, its node's marks and age, and its cloud's word."""
    found = [line(CHOICES, state, _answer(state)) for state in states(500, CHOICES)]
    assert differing(HERE / "proofs.txt", found) == []


def test_proofs_of_what_can_be_true_are_those_of_the_table() -> None:
    """Notices of the cluster's own cloud about a node of the right kind, which nothing but a word decides."""
    own: dict[str, Any] = {
        "cloud": ("aws", ""),
        "whose": ("aws",),
        "mark": ("",),
        "said": (None, 0, -1, -59, -61),
        "of": ("",),
    }
    choices = CHOICES | own
    found = [line(choices, state, _answer(state)) for state in states(400, choices, seed=2)]
    assert differing(HERE / "proofs_of_own.txt", found) == []
