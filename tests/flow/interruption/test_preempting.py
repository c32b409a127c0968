"""Preemption by consent: a pod saves and leaves for one of a higher priority that waits; told, and at most once."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from stage import Stage

from pilotlight.facts.labels import CHECKPOINT_NOW
from pilotlight.facts.memory import Memory, Ran
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.cycle.planning import preview
from pilotlight.state_schema.decision_records import MEMORY
from pilotlight.tools.glance.drained_nodes import with_drains
from pilotlight.tools.report.texts.interruption_text import is_about, lines
from pilotlight.units import HOUR, Seconds
from pilotlight.world.world_cluster import WorldCluster


class Counting(WorldCluster):
    """Counts the evictions that are asked for."""

    evicted: list[str]

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        """One more."""
        self.evicted.append(pod)
        super().evict(namespace, pod, uid, grace_s)


class Full(Stage):
    """A pool of one node at its cap, on which a training pod works for ten hours; it saves within 20 s when asked."""

    def __init__(
        self,
        *,
        may_move: tuple[Any, ...] = ("preempt",),
        pool: dict[str, Any] | None = None,
        takes_s: Seconds = 20.0,
        **traits: Any,
    ) -> None:
        classes = {"training": ClassPolicy(gpu_models="any", may_move=may_move)}
        pools = {"one": PoolPolicy(**{"instance_type": "one", "max": 1, **(pool or {})})}
        super().__init__(pools=pools, classes=classes, value_of_wait=Decimal(5))
        self.cluster = Counting(self.world)
        self.cluster.evicted = []
        self.deps = replace(self.deps, cluster=self.cluster)
        ten = Ran(ended=12, ended_s=120 * HOUR, lengths=(round(10 * HOUR),) * 12)
        MEMORY.put(self.deps.state, "c", Memory(ran={"training//1": ten}))
        self.add("long", 10 * HOUR, workload_class="training", takes_s=takes_s, **traits)
        self.minutes(30)

    def add(self, name: str, run_s: Seconds, takes_s: Seconds = 0.0, **traits: Any) -> None:
        """A pod is created."""
        made = shape(gpu=GpuRequest(count=1), **{"max_run_s": run_s, **traits})
        pod = PodDemand(
            uid=f"uid-{name}",
            namespace="ml",
            name=name,
            shape=made,
            created_at=self.world.clock.now(),
            checkpoint_takes_s=takes_s,
        )
        self.world.submit(pod, run_s)

    def urgent(self, name: str = "short", run_s: Seconds = 600.0, priority: int = 10, **traits: Any) -> None:
        """A short pod of a high priority is created."""
        self.add(name, run_s, workload_class="batch", priority=priority, **traits)

    @property
    def running(self) -> list[str]:
        """Pods that run."""
        return [job.demands[0].name for job in self.world.running.values()]

    @property
    def said(self) -> list[Any]:
        """What was told of interruptions."""
        return [alert for alert in self.alerts if alert.kind == "interruption"]

    def most(self, minutes: int) -> int:
        """Play so long: the most nodes there were."""
        most = 0
        for _ in range(minutes):
            self.minutes(1)
            most = max(most, self.nodes("one"))
        return most


def test_a_pod_that_consents_saves_and_leaves_for_an_urgent_one_and_comes_back() -> None:
    """Asked, evicted once, the urgent one runs at once, the victim returns and ends; the pool never passes its cap."""
    stage = Full()
    stage.urgent()
    assert stage.most(4) == 1
    assert (stage.cluster.evicted, stage.running) == (["long"], ["short"])
    assert [about for _, about, reason, _ in stage.cluster.told if reason == CHECKPOINT_NOW] == ["ml/long"]
    assert stage.most(12) == 1
    assert stage.running == ["long-r1"]
    assert stage.most(600) == 1
    assert (stage.running, stage.cluster.evicted, stage.world.launches) == ([], ["long"], 1)
    assert [job.demands[0].name for job in stage.world.finished] == ["short", "long-r1"]


def test_it_is_told_with_both_pods_both_priorities_and_dollars_both_ways() -> None:
    """Once as it begins and once as it is over; `why` of either pod has it."""
    stage = Full()
    stage.urgent()
    stage.most(15)
    opening, closing = stage.said
    assert opening.what == "preemption: 1 GPU pod leaves n1 of pool one, which stays"
    for part in (
        "ml/long (priority 0)",
        "ml/short (priority 10)",
        "1 of its 1 node",
        "waiting costs $",
        "preempting $",
    ):
        assert part in opening.why
    assert closing.resolved
    assert "it has left, and the node stays" in closing.why
    (found,) = interruption_records.past(stage.deps, "n1")
    assert is_about(found, "ml/long")
    assert is_about(found, "short")
    assert "room for its pods" not in "\n".join(lines(found))


def test_status_says_for_whom_a_pod_gives_way_while_it_saves() -> None:
    """And never that its node goes."""
    stage = Full(takes_s=300.0)
    stage.urgent()
    stage.most(2)
    snapshot, plan = preview(stage.deps, releases=True)
    (node,) = with_drains(stage.deps, snapshot, plan).nodes
    assert node.verdict == "keep"
    assert "preemption: ml/long (priority 0) gives way to ml/short (priority 10)" in node.why
    assert stage.cluster.evicted == []


STAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "its class does not consent": ({"may_move": ("max-age", "sick-gpu", "off-hours", "hard-cap")}, {}),
    "it cannot be asked to save": ({"takes_s": 0.0}, {}),
    "it has the same priority": ({"priority": 10}, {}),
    "it has a higher priority": ({"priority": 11}, {}),
    "its pool only buys": ({"pool": {"mode": "scale-up"}}, {}),
    "its interruptions are another's": ({"pool": {"handled_by": "karpenter"}}, {}),
    "the one that waits is no shorter": ({}, {"run_s": 8 * HOUR}),
}


@pytest.mark.parametrize(("runs", "waits"), STAYS.values(), ids=STAYS)
def test_a_pod_works_on(runs: dict[str, Any], waits: dict[str, Any]) -> None:
    """Nothing is told, and nobody is evicted."""
    stage = Full(**runs)
    stage.urgent(**waits)
    stage.most(60)
    assert (stage.said, stage.cluster.evicted, stage.running) == ([], [], ["long"])


def test_nobody_leaves_where_there_is_room_for_another_node() -> None:
    """It is bought."""
    stage = Full(pool={"max": 2})
    stage.urgent()
    assert stage.most(10) == 2
    assert (stage.said, stage.cluster.evicted) == ([], [])
