"""Whether a notice is true: what can be real, what the times say, and whose word counts."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from pilotlight.decide.interruption.verify_notice import BOOT, SAYS_LATE, SKEW, Proof, judge
from pilotlight.facts.capacity import CapacityType, Node, Taint
from pilotlight.facts.interruption.interruption import LEAD_S, NOTICE_S, Interruption
from pilotlight.facts.interruption.notice_kinds import (
    ANNOUNCED,
    CONDITIONS,
    LABELS,
    REAL,
    TAINTS,
    NoticeCloud,
    capacity_types,
)
from pilotlight.facts.messages import NoticeKind
from pilotlight.facts.nodes.pool_state import InstanceState

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "spot.md"
CLOUDS: tuple[NoticeCloud, ...] = get_args(NoticeCloud)
BOUGHT = {frozenset(("spot",)): "spot", frozenset(("on-demand", "reserved")): "on-demand, reserved"}
MEANS: Mapping[NoticeKind, Mapping[NoticeCloud, str]] = {
    "spot-interruption": {
        "aws": "Spot Instance interruption notice",
        "gcp": "preemption notice of a Spot VM, relayed from it",
        "azure": "scheduled event Preempt",
    },
    "rebalance": {"aws": "rebalance recommendation"},
    "capacity-reservation": {"aws": "end of an interruptible reservation or a capacity block"},
    "scheduled-change": {
        "aws": "Health's retirement, stop, reboot, network",
        "gcp": "host maintenance, relayed from the VM",
        "azure": "scheduled events Freeze, Reboot, Redeploy",
    },
    "lifecycle": {"aws": "Auto Scaling's terminate hook", "azure": "scheduled event Terminate"},
    "state-change": {
        "aws": "stopping, stopped, shutting-down, terminated",
        "gcp": "host error, host maintenance",
        "azure": "stopped or deleted, relayed",
    },
    "preempted": {"gcp": "a Spot VM was preempted"},
}
"""What the cloud calls it."""

SOURCES: Mapping[NoticeCloud, tuple[str, ...]] = {
    "aws": (
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitor-interruptible-cr.html",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instances-status-check_sched.html",
        "https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html",
    ),
    "gcp": (
        "https://cloud.google.com/compute/docs/instances/spot",
        "https://cloud.google.com/compute/docs/instances/host-maintenance-overview",
        "https://cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu",
    ),
    "azure": (
        "https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events",
        "https://learn.microsoft.com/azure/aks/node-auto-drain",
    ),
}
"""Where each cloud says so."""


def _s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def _node(**fields: Any) -> Node:
    kept = {"capacity_type": "spot", "created_at": NOW - _s(7200), "ready": True, **fields}
    return Node(name="n", pool="p", instance_type="t", instance="i", **kept)


def _found(kind: NoticeKind = "spot-interruption", **fields: Any) -> Interruption:
    goes = NOW + _s(120) if kind in NOTICE_S else None
    until = NOW + _s(1800) if kind == "rebalance" else None
    kept = {
        "received_at": NOW,
        "begin": NOW,
        "said_at": NOW,
        "deadline": goes,
        "until": until,
        "cloud": "aws",
        **fields,
    }
    return Interruption(cluster="c", instance="i", kind=kind, **kept)


def _said(there: bool = True, **fields: Any) -> InstanceState:
    return InstanceState(there=there, **fields)


GOES, RUNS = _said(going=True, deadline=NOW + _s(300)), _said(going=False)
LATER = _said(going=True, deadline=NOW + _s(LEAD_S + 1))


@pytest.mark.parametrize(
    ("found", "node", "said", "truth"),
    [
        pytest.param(_found(), _node(), GOES, "verified", id="the cloud says so too"),
        pytest.param(_found(), _node(), RUNS, "disproved", id="the cloud says that it runs on"),
        pytest.param(_found("lifecycle"), _node(), LATER, "unverified", id="its cloud ends it far later"),
        pytest.param(_found("state-change"), _node(), LATER, "unverified", id="it ended, and its cloud ends it later"),
        pytest.param(_found(), _node(), None, "unverified", id="the cloud cannot be asked"),
        pytest.param(_found(), _node(), _said(), "unverified", id="the cloud never says so"),
        pytest.param(_found(), _node(), _said(there=False), "unverified", id="the cloud does not know it"),
        pytest.param(_found(), _node(cloud="civo"), None, "disproved", id="another cloud's node"),
        pytest.param(_found(), _node(cloud="aws"), None, "unverified", id="that cloud's node"),
        pytest.param(_found(), _node(capacity_type="on-demand"), None, "disproved", id="spot's notice for on-demand"),
        pytest.param(_found(), _node(capacity_type="on-demand"), GOES, "verified", id="so, but the cloud says so too"),
        pytest.param(_found("lifecycle"), _node(capacity_type="on-demand"), None, "unverified", id="a hook for it"),
        pytest.param(_found(said_at=None), _node(), None, "unverified", id="it does not say when it was said"),
        pytest.param(_found(said_at=NOW - _s(7200) - BOOT), _node(), None, "unverified", id="while the node booted"),
        pytest.param(_found(said_at=NOW - _s(7201) - BOOT), _node(), None, "disproved", id="before the node began"),
        pytest.param(
            _found(said_at=NOW - _s(7201)), _node(), _said(created_at=NOW - _s(7000)), "disproved",
            id="before its cloud says that it began",
        ),
        pytest.param(
            _found(deadline=NOW - SKEW + _s(1)), _node(), None, "unverified", id="over by less than clocks differ"
        ),
        pytest.param(_found(deadline=NOW - SKEW), _node(), None, "disproved", id="over, and still there"),
        pytest.param(_found("lifecycle", deadline=NOW - SKEW, named=False), _node(), None, "unverified", id="a hook"),
        pytest.param(_found(said_at=NOW + _s(601)), _node(), None, "disproved", id="said ahead of now"),
        pytest.param(_found("rebalance"), _node(), None, "unverified", id="a rebalance that nobody confirms"),
        pytest.param(_found("rebalance"), _node(), RUNS, "unverified", id="a cloud that runs it on may take it yet"),
        pytest.param(_found("rebalance"), _node(), _said(at_risk=True), "verified", id="it may, says the cloud"),
        pytest.param(_found("rebalance"), _node(), _said(at_risk=False), "disproved", id="and that it does not"),
        pytest.param(_found("state-change"), _node(), _said(runs=True), "unverified", id="it ended, and runs as yet"),
        pytest.param(
            _found("state-change", received_at=NOW - SAYS_LATE), _node(ready=False), _said(runs=True), "disproved",
            id="it ended, and runs half a minute later",
        ),
        pytest.param(
            _found("lifecycle", received_at=NOW - SAYS_LATE), _node(), _said(runs=True), "disproved",
            id="its group ends it, and has it in service",
        ),
        pytest.param(
            _found(received_at=NOW - SAYS_LATE), _node(), _said(runs=True), "unverified",
            id="what runs may be taken yet",
        ),
        pytest.param(_found("rebalance"), _node(capacity_type="on-demand"), None, "disproved", id="of on-demand"),
        pytest.param(_found("state-change"), _node(ready=False), None, "verified", id="it ended, and is not ready"),
        pytest.param(_found("state-change"), _node(), _said(there=False), "verified", id="it ended, says the cloud"),
        pytest.param(_found("state-change"), _node(), RUNS, "disproved", id="it ended, and runs on"),
        pytest.param(_found("state-change"), _node(), None, "unverified", id="it ended, and is still ready"),
        pytest.param(
            _found("preempted", cloud="gcp", said_at=NOW - _s(600)), _node(created_at=NOW - _s(60)), None, "disproved",
            id="a preemption before a new machine of its name",
        ),
    ],
)  # fmt: skip
def test_a_notice_is_judged(found: Interruption, node: Node, said: InstanceState | None, truth: str) -> None:
    """The cloud's and the node's word count most; then what can be, then the times; the rest is not known."""
    verdict = judge(found, node, said, NOW)
    assert verdict.truth == truth
    assert verdict.why


@pytest.mark.parametrize("whose", ["", "aws", "gcp", "civo", "world"])
@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure", "world", "node"])
def test_a_clouds_word_is_taken_where_it_is_the_clusters_cloud(whose: str, cloud: str) -> None:
    """A world stands for any; a world's own word is taken nowhere else; a node's own mark must be on it."""
    taken = cloud != "node" and (cloud == whose or whose == "world" or (not whose and cloud != "world"))
    assert (judge(_found(cloud=cloud), _node(), None, NOW, whose).truth == "unverified") is taken


def _marked(mark: str) -> dict[str, Any]:
    if mark in LABELS:
        return {"labels": {mark: "1"}}
    return {"conditions": (mark,)} if mark in CONDITIONS else {"taints": (Taint(key=mark, effect="NoSchedule"),)}


@pytest.mark.parametrize("mark", [*TAINTS, *CONDITIONS, *LABELS])
def test_what_a_node_shows_confirms(mark: str) -> None:
    """A mark that clouds and their handlers set is proof where nothing else is; of maintenance for maintenance only."""
    kinds: tuple[NoticeKind, ...] = ("spot-interruption", "scheduled-change")
    for kind in kinds:
        old = _found(kind, said_at=NOW - _s(864_000), deadline=NOW - _s(600))
        proves = kind == "scheduled-change" or mark not in ANNOUNCED
        assert (judge(old, _node(**_marked(mark)), None, NOW).truth == "verified") is proves
        assert judge(old, _node(), None, NOW).truth == "disproved"


def test_the_clouds_own_deadline_is_told() -> None:
    """Where the cloud says when, that is when."""
    assert judge(_found(), _node(), GOES, NOW) == Proof("verified", "the cloud says so too", NOW + _s(300))


def _cell(kind: NoticeKind, cloud: NoticeCloud) -> str:
    types = REAL[kind].get(cloud)
    return "never" if types is None else f"{BOUGHT.get(types, 'any')}: {MEANS[kind][cloud]}"


def test_the_guide_prints_the_table() -> None:
    """Every kind, every cloud, what can get it and what it is called there; and where each cloud says so."""
    rows = [f"| {kind} | {' | '.join(_cell(kind, cloud) for cloud in CLOUDS)} |" for kind in REAL]
    table = "\n".join(["| notice | AWS | Google Cloud | Azure |", "|---|---|---|---|", *rows])
    assert table in GUIDE.read_text(), f"print this in {GUIDE.name}:\n{table}"
    links = [link for cloud in CLOUDS for link in SOURCES[cloud]]
    assert [link for link in links if link not in GUIDE.read_text()] == []


@pytest.mark.parametrize("kind", REAL)
def test_a_world_stands_for_every_cloud(kind: NoticeKind) -> None:
    """What some cloud sends, a world may send."""
    every: set[CapacityType] = {one for types in REAL[kind].values() for one in types}
    assert capacity_types(kind, "world") == every


@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param(None, "neither the cloud nor the node says so", id="it cannot be asked"),
        pytest.param(_said(), "neither the cloud nor the node says so", id="it never says who goes"),
        pytest.param(_said(there=False), "the cloud knows no such instance", id="it does not know it"),
    ],
)
def test_what_leaves_a_notice_in_doubt_is_said(said: InstanceState | None, why: str) -> None:
    """People read whether the cloud does not know the instance or only does not say that it goes."""
    assert judge(_found(), _node(), said, NOW) == Proof("unverified", why)
