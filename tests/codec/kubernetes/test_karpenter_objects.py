"""Karpenter's objects as facts: limits, surges, claims, managers of the limit; and values that nobody means."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec.kubernetes.karpenter_objects import BEFORE, MANAGER, WROTE, GatedNodePool, NodeClaim, gate_state
from pilotlight.facts.money.gates import GateState

GPU = "nvidia.com/gpu"


def _state(spec: dict[str, Any], claims: int = 0, notes: dict[str, str] | None = None, **meta: Any) -> GateState:
    whole = {"metadata": {"name": "gpu", "resourceVersion": "7", "annotations": notes or {}, **meta}, "spec": spec}
    made = [
        {"metadata": {"name": f"c{n}", "labels": {"karpenter.sh/nodepool": "gpu"}}, "status": {"capacity": {GPU: "8"}}}
        for n in range(claims)
    ]
    pool = msgspec.json.decode(json.dumps(whole), type=GatedNodePool)
    return gate_state(pool, [msgspec.json.decode(json.dumps(each), type=NodeClaim) for each in made])


def _budgets(*budgets: dict[str, Any], **disruption: Any) -> dict[str, Any]:
    return {"disruption": {"budgets": list(budgets), **disruption}}


SURGES = [
    ("a tenth is the default, rounded up", {}, 1),
    ("no budgets at all bound nothing", _budgets(), 5),
    ("none, whatever the reason", _budgets({"nodes": "0"}), 0),
    ("none by drift or consolidation", _budgets({"nodes": "0", "reasons": ["Drifted", "Underutilized"]}), 0),
    ("none by drift alone", _budgets({"nodes": "0", "reasons": ["Drifted"]}), 5),
    ("a pinned drift, and consolidation of empty nodes", _budgets({"nodes": "0", "reasons": ["Drifted"]},
     consolidationPolicy="WhenEmpty"), 0),
    ("a pinned drift, and no consolidation", _budgets({"nodes": "0", "reasons": ["Drifted"]},
     consolidateAfter="Never"), 0),
    ("the most restrictive one holds", _budgets({"nodes": "50%"}, {"nodes": "2"}), 2),
    ("one for some hours bounds no others", _budgets({"nodes": "0", "schedule": "@daily", "duration": "1h"}), 5),
    ("a number that is no number of nodes", _budgets({"nodes": "9" * 400}), 5),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "surge"), [s[1:] for s in SURGES], ids=[s[0] for s in SURGES])
def test_surges(spec: dict[str, Any], surge: int) -> None:
    """So many of five nodes may be replaced at once."""
    assert _state(spec).surge(5) == surge


LIMITS: list[tuple[str, dict[str, Any], dict[str, str], tuple[int | None, int | None, str | None]]] = [
    ("none", {}, {}, (None, None, None)),
    ("its owner's", {GPU: "16"}, {}, (16, 16, None)),
    ("a whole number", {GPU: 16}, {}, (16, 16, None)),
    ("ours over one", {GPU: "8"}, {BEFORE: "16", WROTE: "8"}, (8, 16, "16")),
    ("ours over none", {GPU: "8"}, {BEFORE: "", WROTE: "8"}, (8, None, "")),
    ("thousands", {GPU: "2k"}, {}, (2000, 2000, None)),
    ("half a GPU is none", {GPU: "0.5"}, {}, (0, 0, None)),
    ("thousandths, of which whole ones count", {GPU: "8500m"}, {}, (8, 8, None)),
    ("as good as none", {GPU: "9E"}, {}, (1 << 31, 1 << 31, None)),
]


@pytest.mark.parametrize(("limits", "notes", "found"), [s[1:] for s in LIMITS], ids=[s[0] for s in LIMITS])
def test_limits(limits: dict[str, Any], notes: dict[str, str], found: tuple[object, ...]) -> None:
    """The limit that stands, its owner's, and what is kept of that."""
    state = _state({"limits": limits}, notes=notes)
    assert (state.limit, state.cap, state.before, state.unread) == (*found, "")


@pytest.mark.parametrize(
    ("limits", "notes"), [({GPU: "many"}, {}), ({GPU: "-1"}, {}), ({GPU: "8"}, {BEFORE: "x" * 5000})]
)
def test_what_is_no_limit_is_told(limits: dict[str, Any], notes: dict[str, str]) -> None:
    """Of a limit that is no quantity it is said in a line, and nothing else of the pool is believed."""
    state = _state({"limits": limits}, notes=notes)
    assert 0 < len(state.unread) < 200
    assert state.version == "7"


def test_who_else_manages_the_limit_is_known() -> None:
    """Field managers of the limit are named, ours and those of other fields are not."""
    limit: Any = {"f:spec": {"f:limits": {f"f:{GPU}": {}}}}
    managed = [
        {"manager": "argocd-controller", "fieldsV1": limit},
        {"manager": MANAGER, "fieldsV1": limit},
        {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:limits": {"f:cpu": {}}}}},
        {"manager": "odd", "fieldsV1": [1]},
    ]
    assert _state({}, managedFields=managed).managers == ("argocd-controller",)


def test_requirements_that_meet_are_one() -> None:
    """Two lists of types leave those that are in both; other operators name none."""
    key = "node.kubernetes.io/instance-type"
    wanted = [
        {"key": key, "operator": "In", "values": ["p4d.24xlarge", "p5.48xlarge"]},
        {"key": key, "operator": "In", "values": ["p4d.24xlarge"]},
        {"key": "karpenter.sh/capacity-type", "operator": "NotIn", "values": ["spot"]},
    ]
    state = _state({"template": {"spec": {"requirements": wanted}}, "replicas": 3, "weight": 7})
    assert (state.types, state.capacity_types, state.static, state.weight) == (("p4d.24xlarge",), (), True, 7)


@pytest.mark.parametrize(
    ("after", "hours"), [("720h", 720), ("1h30m", 1.5), ("Never", None), ("", None), ("9" * 30 + "h", None)]
)
def test_when_a_claim_expires(after: str, hours: float | None) -> None:
    """A claim expires so long after it was made; in thousands of years is never."""
    made = {
        "metadata": {
            "name": "c",
            "labels": {"karpenter.sh/nodepool": "gpu"},
            "creationTimestamp": "2026-11-28T00:00:00Z",
        },
        "spec": {"expireAfter": after},
    }
    pool = msgspec.json.decode(b'{"metadata": {"name": "gpu"}}', type=GatedNodePool)
    (claim,) = gate_state(pool, [msgspec.json.decode(json.dumps(made), type=NodeClaim)]).claims
    created = datetime(2026, 11, 28, tzinfo=UTC)
    ends = claim.ends_at
    assert (ends - created).total_seconds() == hours * 3600 if hours and ends else ends is None


@pytest.mark.parametrize(("note", "wrote"), [("8", 8), ("10%", None), ("eight", None), ("", None)])
def test_our_own_note_of_a_limit_may_be_written_by_anybody(note: str, wrote: int | None) -> None:
    """A note that is no whole number is none of ours, and the NodePool is read all the same."""
    assert _state({"limits": {GPU: "8"}}, notes={WROTE: note}).wrote == wrote


@given(st.one_of(st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)), st.text(), st.text())
def test_no_value_breaks_the_read(limit: Any, nodes: str, note: str) -> None:
    """Whatever stands in limits, budgets and annotations, the read ends in a state or in a line about it."""
    state = _state({"limits": {GPU: limit}, **_budgets({"nodes": nodes})}, claims=2, notes={BEFORE: note, WROTE: note})
    assert state.unread or 0 <= state.surge(2) <= 2


LAUNCHES: dict[str, tuple[dict[str, Any], str | None]] = {
    "nothing is said yet": ({}, ""),
    "its provider says why": (
        {"conditions": [{"type": "Launched", "status": "Unknown", "reason": "LaunchFailed", "message": "no quota"}]},
        "LaunchFailed: no quota",
    ),
    "it is launched": (
        {"providerID": "aws:///a/i-1", "conditions": [{"type": "Launched", "status": "Unknown", "reason": "old"}]},
        None,
    ),
    "it is a node": ({"nodeName": "n"}, None),
}


@pytest.mark.parametrize(("status", "why"), LAUNCHES.values(), ids=LAUNCHES)
def test_a_claim_says_why_it_is_not_launched(status: dict[str, Any], why: str | None) -> None:
    """In its provider's words; nothing where it is."""
    claim = msgspec.json.decode(json.dumps({"metadata": {"name": "c"}, "status": status}), type=NodeClaim)
    assert claim.unlaunched == why
