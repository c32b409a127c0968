"""Pods that the scheduler does not bind to a ready node with room: that they fit there is not believed for ever."""

from dataclasses import replace
from datetime import timedelta

import msgspec
from stage import MINUTE, Stage

from pilotlight.decide.fit.fit_mismatch import believed_fits, not_due
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.decisions import Plan
from pilotlight.facts.messages import PodPending
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, shape
from pilotlight.flow.provision import provision
from pilotlight.flow.records import node_marks
from pilotlight.units import EPOCH
from pilotlight.world.world_cluster import WorldCluster


class Picky(WorldCluster):
    """A cluster with a pod that its scheduler never binds, for a reason that is nowhere in what a look shows."""

    def __init__(self, stage: Stage, name: str = "picky") -> None:
        super().__init__(stage.world)
        self.pod = PodDemand(
            uid=f"uid-{name}",
            namespace="ml",
            name=name,
            shape=shape(gpu=GpuRequest(count=1)),
            created_at=stage.world.clock.now(),
            said="0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.",
        )

    def observe(self) -> ClusterView:
        """With the pod, for ever."""
        view = super().observe()
        return msgspec.structs.replace(view, pending=(*view.pending, self.pod))


def picky(pools: tuple[str, ...] = ("one",)) -> tuple[Stage, Picky]:
    """A cluster of so many kinds of one-GPU pools with such a pod."""
    made = {name: PoolPolicy(instance_type="one", max=20) for name in pools}
    stage = Stage(pools=made, classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=300)})
    cluster = Picky(stage)
    stage.deps = replace(stage.deps, cluster=cluster)
    return stage, cluster


def test_a_pod_that_stays_unbound_beside_its_node_is_believed_no_longer() -> None:
    """One purchase; after two minutes beside the ready node people are told once, and the node goes as idle ones do."""
    stage, _ = picky()
    stage.minutes(4)
    assert stage.world.launches == 1
    stage.minutes(40)
    assert (stage.world.launches, len(stage.world.nodes)) == (1, 0)
    told = [alert for alert in stage.alerts if alert.kind == "finding-scheduler-refuses"]
    assert len(told) == 1
    assert "ml/picky does not fit there, says the scheduler: 0/1 nodes are available" in told[0].why


def test_at_most_one_other_try_is_bought() -> None:
    """With three pools that could do, the second refusal is the last that money is spent on."""
    stage, _ = picky(("one", "two", "three"))
    stage.minutes(90)
    assert stage.world.launches == 2
    assert not stage.world.nodes


def test_the_schedulers_own_word_after_the_node_was_ready_ends_the_belief_at_once() -> None:
    """A FailedScheduling event from before says nothing; one from after is not waited out."""
    stage, cluster = picky()
    stage.minutes(4)
    ready = stage.world.clock.now()
    stage.wait(30)
    for at in (ready - timedelta(minutes=2), ready + timedelta(seconds=20)):
        event = PodPending(cluster="c", namespace="ml", name="picky", uid=cluster.pod.uid, identity=f"{at}", at=at)
        told_before = len(stage.alerts)
        provision(stage.deps, event)
    assert [alert.kind for alert in stage.alerts[told_before:]].count("finding-scheduler-refuses") == 1


def test_time_under_our_own_taint_does_not_count() -> None:
    """While we keep the node closed the scheduler is right to refuse."""
    stage, _ = picky()
    stage.minutes(4)
    (node,) = stage.world.nodes
    node_marks.hold(stage.deps, node, "budget", "no room")
    stage.minutes(3)
    node_marks.lift(stage.deps, node, "budget")
    stage.minutes(2)
    assert "finding-scheduler-refuses" not in [alert.kind for alert in stage.alerts]
    stage.wait(MINUTE)
    stage.tick()
    stage.minutes(1)
    assert "finding-scheduler-refuses" in [alert.kind for alert in stage.alerts]


def test_what_no_scheduler_would_bind_yet_is_not_believed() -> None:
    """A pod that still runs where it moves from, and a gang of which one member finds no ready node."""
    gang = Gang(key="ml/g", size=2)
    pods = [_waiting(name, gang if name in ("g0", "g1") else None) for name in ("alone", "moves", "g0", "g1")]
    fits = [PodGroup(verdict="fits", pods=(p.full_name,), uids=(p.uid,), where="n1", why="") for p in pods[:3]]
    coming = PodGroup(verdict="booting", pods=("ml/g1",), uids=("uid-g1",), where="i-2", why="")
    plan = Plan(pods=(*fits, coming))
    but = not_due(plan, pods, {"uid-moves"})
    assert list(believed_fits(plan, (), {}, EPOCH, but)) == ["uid-alone@n1"]
    ready = Plan(pods=(*fits, msgspec.structs.replace(coming, verdict="fits", where="n2")))
    assert len(believed_fits(ready, (), {}, EPOCH, not_due(ready, pods, ()))) == 4


def _waiting(name: str, gang: Gang | None) -> PodDemand:
    wants = shape(gpu=GpuRequest(count=1), gang=gang)
    return PodDemand(uid=f"uid-{name}", namespace="ml", name=name, shape=wants, created_at=EPOCH)
