"""Nodes that show that they go, without any notice: what they show is one, and is dealt with once."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from stage import Stage

from pilotlight.decide.interruption.notices import notice_of
from pilotlight.errors import Throttled
from pilotlight.facts.capacity import ClusterView, Node, Taint
from pilotlight.facts.interruption.interruption import Interruption
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster

IMPENDING = "cloud.google.com/impending-node-termination"
RULES = ClassPolicy(gpu_models="any", capacity_types=("on-demand", "spot"), idle_timeout=300)


class Showing(WorldCluster):
    """A cluster whose nodes show ``fields`` of a node's facts."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.fields: dict[str, Any] = {}

    def observe(self) -> ClusterView:
        """Every node with them."""
        view = super().observe()
        nodes = tuple(msgspec.structs.replace(node, **self.fields) for node in view.nodes)
        return msgspec.structs.replace(view, nodes=nodes)


def _shown(kind: str = "spot", **fields: Any) -> tuple[Stage, list[Interruption]]:
    """A stage after a tick at which its only node, with a pod on it, shows so; and what was begun."""
    pools = {"pool": PoolPolicy(instance_type="one", max=3, capacity_type=kind)}  # type: ignore[arg-type]
    stage = Stage(pools=pools, classes={"batch": RULES})
    cluster = Showing(stage.world)
    stage.deps = replace(stage.deps, cluster=cluster)
    stage.event(stage.submit("a", run_s=9000))
    stage.minutes(5)
    cluster.fields = fields
    stage.tick()
    return stage, list(interruption_records.every(stage.deps.state, "c"))


def test_maintenance_that_a_taint_announces_is_moved_from_in_its_hour() -> None:
    """GKE's taint on a GPU node: an order for an hour ahead, proved by the node; told once."""
    stage, found = _shown("on-demand", taints=(Taint(key=IMPENDING, effect="NoSchedule"),), cloud="gcp")
    [one] = found
    assert (one.kind, one.truth, one.ours) == ("scheduled-change", "verified", True)
    assert one.deadline == one.received_at + timedelta(seconds=3300)
    stage.minutes(5)
    assert len(list(interruption_records.every(stage.deps.state, "c"))) == 1
    assert sum(alert.kind == "interruption" and not alert.resolved for alert in stage.alerts) == 1


def test_a_purchase_that_fails_keeps_no_node_from_being_saved() -> None:
    """Its cloud says "not now" at the very tick at which another node shows that it goes: its rescue begins."""
    pools = {"pool": PoolPolicy(instance_type="one", max=3)}
    stage = Stage(pools=pools, classes={"batch": RULES})
    cluster = Showing(stage.world)
    stage.deps = replace(stage.deps, cluster=cluster)
    stage.event(stage.submit("a", run_s=9000))
    stage.minutes(5)
    stage.submit("b", run_s=9000)
    cluster.fields = {"taints": (Taint(key=IMPENDING, effect="NoSchedule"),), "cloud": "gcp"}
    stage.fail("grow", Throttled("not now"))
    with pytest.raises(Throttled):
        stage.tick()
    assert [one.kind for one in interruption_records.every(stage.deps.state, "c")] == ["scheduled-change"]


@pytest.mark.parametrize(
    ("condition", "cloud", "kind"),
    [
        ("NodeShutdown", "gcp", "spot-interruption"),
        ("PreemptScheduled", "azure", "spot-interruption"),
        ("TerminateScheduled", "azure", "lifecycle"),
    ],
    ids=["a kubelet that shuts down", "AKS' preemption", "AKS' termination"],
)
def test_a_condition_is_a_notice_too(condition: str, cloud: str, kind: str) -> None:
    """The node is closed and its pod saved, as by the cloud's own event."""
    stage, [found] = _shown(conditions=(condition,), cloud=cloud)
    assert (found.kind, found.truth) == (kind, "verified")
    assert found.is_over or stage.world.nodes[found.node].cordoned


@pytest.mark.parametrize(
    "fields",
    [
        {"labels": {"karpenter.sh/nodepool": "gpu"}},
        {"taints": (Taint(key="aws-node-termination-handler/spot-itn", effect="NoSchedule"),)},
    ],
    ids=["Karpenter's node", "AWS' node termination handler is at work"],
)
def test_another_owners_node_is_left_to_it(fields: dict[str, Any]) -> None:
    """It is told and priced, and nothing is done: no work is moved twice."""
    stage, [found] = _shown(conditions=("NodeShutdown",), cloud="aws", **fields)
    assert (found.outcome, found.ours) == ("not ours", False)
    assert not any(node.cordoned for node in stage.world.nodes.values())


def test_on_demand_that_shuts_down_has_ended() -> None:
    """Nobody orders it: it is counted after the fact."""
    _, [found] = _shown("on-demand", conditions=("NodeShutdown",), cloud="gcp", ready=False)
    assert (found.kind, found.outcome) == ("state-change", "after the fact")


def test_the_soonest_of_two_marks_counts() -> None:
    """A node that is announced for later and shuts down now goes now."""
    stage, _ = _shown()
    [node] = stage.deps.cluster.observe().nodes
    both: Node = msgspec.structs.replace(
        node, taints=(Taint(key=IMPENDING, effect="NoSchedule"),), conditions=("NodeShutdown",)
    )
    notice = notice_of(both, "c", stage.deps.now())
    assert notice is not None
    assert notice.kind == "spot-interruption"


POSTED: dict[str, dict[str, Any]] = {
    "an end that is not true": {"kind": "spot-interruption", "seconds": 120},
    "the same end as the mark's": {"kind": "spot-interruption", "seconds": 30},
    "maintenance of weeks ahead, which is not over yet": {"kind": "scheduled-change", "seconds": 30 * 86400},
    "that it is frozen for a moment": {"kind": "spot-interruption", "seconds": 30, "action": "freeze"},
}


@pytest.mark.parametrize("posted", POSTED.values(), ids=POSTED.keys())
def test_a_mark_is_heeded_whatever_was_posted_before(posted: dict[str, Any]) -> None:
    """What was no end of the node, or is none yet, keeps nobody from heeding the node's own mark; and that once."""
    stage, _ = _shown()
    cluster = stage.deps.cluster
    assert isinstance(cluster, Showing)
    now, fields = stage.deps.now(), dict(posted)
    ends = now + timedelta(seconds=fields.pop("seconds"))
    interrupt(
        stage.deps, InterruptionNotice(cluster="c", instance="n1", cloud="world", at=now, deadline=ends, **fields)
    )
    stage.minutes(4, lambda: go_on(stage.deps))
    cluster.fields = {"conditions": ("PreemptScheduled",), "cloud": "azure"}
    stage.world.interrupt("n1", 120)
    stage.tick()
    stage.tick()
    found = [one for one in interruption_records.every(stage.deps.state, "c") if one.cloud == "azure"]
    assert [(one.kind, one.truth) for one in found] == [("spot-interruption", "verified")]


@pytest.mark.parametrize("mode", ["advise", "act"])
def test_a_mark_that_was_dealt_with_is_shown_on_and_begins_nothing(mode: Any) -> None:
    """GKE's taint stays on its node for an hour: it is told once, also where nothing may be done for it."""
    stage, _ = _shown("on-demand")
    cluster = stage.deps.cluster
    assert isinstance(cluster, Showing)
    stage.deps = replace(stage.deps, mode=mode)
    cluster.fields = {"taints": (Taint(key=IMPENDING, effect="NoSchedule"),), "cloud": "gcp"}
    stage.minutes(25)
    assert sum(alert.kind == "interruption" and not alert.resolved for alert in stage.alerts) == 1
