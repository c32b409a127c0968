"""Off-hours: in a rule's time pods of classes that consent leave a pool, told before, as their budgets allow."""

from dataclasses import replace
from typing import Any

import pytest
from stage import START, Stage

from pilotlight.facts.limits.rule_policy import Rule, RuleSet, RuleTime, RuleWhen
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import Toleration
from pilotlight.flow.cycle.planning import preview
from pilotlight.flow.interruption.drain_all import carry_on
from pilotlight.tools.glance.drained_nodes import with_drains
from pilotlight.units import Seconds
from pilotlight.world.world_cluster import WorldCluster

EVENING = RuleWhen(time=RuleTime(start="14:00", end="20:00"))
OFF = Rule(name="off-hours", when=EVENING, does=RuleSet(avoid={"one": ("batch",)}, evict=True))


class Evening(Stage):
    """A pool that batch work leaves from 14:00 to 20:00, and a pod that works there from noon on."""

    def __init__(
        self, *, may_move: tuple[Any, ...] = ("off-hours",), pool: dict[str, Any] | None = None, **traits: Any
    ) -> None:
        batch = ClassPolicy(gpu_models="any", idle_timeout=300, may_move=may_move)
        pools = {"one": PoolPolicy(instance_type="one", max=5, **(pool or {}))}
        super().__init__(pools=pools, classes={"batch": batch}, rules=(OFF,))
        self.submit("p", run_s=20 * 3600, workload_class="batch", **traits)

    def until(self, hour: int, minute: int = 0) -> None:
        """Play up to a time of day, rescues beside reconciles."""
        while self.world.clock.now() < START.replace(hour=hour, minute=minute):
            self.minutes(1)
            carry_on(self.deps)

    @property
    def said(self) -> list[str]:
        """What was told of interruptions."""
        return [alert.what for alert in self.alerts if alert.kind == "interruption"]


def test_pods_leave_as_the_time_begins_and_nothing_is_bought_until_it_ends() -> None:
    """Told half an hour before, evicted within half an hour, the node given back; at its end the pod gets a node."""
    stage = Evening()
    stage.until(13, 25)
    assert (stage.said, stage.nodes("one")) == ([], 1)
    stage.until(13, 59)
    assert stage.said[0].startswith("off-hours of n1 of pool one: it goes when its pods have left")
    assert len(stage.world.running) == 1
    stage.until(14, 40)
    assert (stage.nodes("one"), stage.world.launches, len(stage.world.running)) == (0, 1, 0)
    stage.until(19, 55)
    assert stage.world.launches == 1
    stage.until(20, 15)
    assert (stage.world.launches, len(stage.world.running)) == (2, 1)


def test_status_tells_of_a_node_under_way_why_it_goes() -> None:
    """From the first eviction on that is the off-hours, and never that it idles for its break-even."""
    stage = Evening()
    stage.world.evictions.lingers = True
    stage.until(13, 59)
    told = []
    while stage.world.clock.now() < START.replace(hour=14, minute=10):
        stage.wait(5)
        snapshot, plan = preview(stage.deps, releases=True)
        told += [(node.verdict, node.why) for node in with_drains(stage.deps, snapshot, plan).nodes]
        if stage.world.clock.now().second == 0:
            carry_on(stage.deps)
    goes = "off-hours: it goes when its pods have left"
    assert {why for _, why in told if "idle" in why} == set()
    assert {("keep", f"busy: ml/p holds GPUs; {goes}"), ("release", goes)} <= set(told)


STAYS: dict[str, dict[str, Any]] = {
    "its class does not consent": {"may_move": ("max-age",)},
    "its pool only buys": {"pool": {"mode": "scale-up"}},
    "its interruptions are another's": {"pool": {"handled_by": "karpenter"}},
}


@pytest.mark.parametrize("state", STAYS.values(), ids=STAYS)
def test_a_pod_works_on(state: dict[str, Any]) -> None:
    """Nothing is told, and nobody is evicted."""
    stage = Evening(**state)
    stage.until(15)
    assert (stage.said, len(stage.world.running), stage.world.launches) == ([], 1, 1)


def test_a_disruption_budget_keeps_its_pod() -> None:
    """What it does not let go works on; half an hour later the node takes pods again, and is left alone that night."""
    stage = Evening()
    stage.world.evictions.disruptions["ml"] = 0
    stage.until(16)
    assert (len(stage.world.running), stage.nodes("one")) == (1, 1)
    (node,) = stage.deps.observe().nodes
    assert node.schedulable
    assert len([what for what in stage.said if "it goes when" in what]) == 1


class Counting(WorldCluster):
    """Counts the evictions that are asked for."""

    evicted = 0

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        """One more."""
        self.evicted += 1
        super().evict(namespace, pod, uid, grace_s)


def test_a_pod_that_comes_back_to_its_closed_node_is_evicted_once() -> None:
    """It tolerates everything, so its copy binds there again: it works on, and the node takes pods again afterwards."""
    stage = Evening(tolerations=(Toleration(operator="Exists"),))
    cluster = Counting(stage.world)
    stage.deps = replace(stage.deps, cluster=cluster)
    stage.until(16)
    assert cluster.evicted == 1
    (node,) = stage.deps.observe().nodes
    assert (node.schedulable, len(node.gpu_pods)) == (True, 1)
