"""A home that its pod does not take: free for others half a minute after the scheduler could have bound it."""

from dataclasses import replace as with_
from datetime import timedelta

import pytest
from msgspec.structs import replace
from stage import Stage

from pilotlight.decide.fit.fit_mismatch import passed_over, turns
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.labels import GPU_MODEL
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, Requirement, shape
from pilotlight.units import EPOCH
from pilotlight.world.world_cluster import WorldCluster

A100 = ((Requirement(key=GPU_MODEL, operator="In", values=("A100",)),),)
TAINTED = "0/1 nodes are available: 1 node(s) had untolerated taint {pilotlight.dev/home: new}."
REFUSED = "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints."


class Refusing(WorldCluster):
    """A cluster whose scheduler binds every pod but one of eight GPUs, for a reason that is nowhere in a look.

    ``tried``: it has come to the turn of the pods that were made last.
    """

    def __init__(self, stage: Stage, gpus: int = 8) -> None:
        super().__init__(stage.world)
        asks = shape(gpu=GpuRequest(count=gpus), terms=A100)
        now = stage.world.clock.now()
        self.pod = PodDemand(uid="uid-picky", namespace="ml", name="picky", shape=asks, created_at=now, said=TAINTED)
        self.tried = True

    def observe(self) -> ClusterView:
        """With the pod, for ever, and the scheduler's words of all others that it has tried."""
        view = super().observe()
        said = TAINTED if self.tried else ""
        return replace(view, pending=(*(replace(pod, said=said) for pod in view.pending), self.pod))

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        """The pod gets its toleration too."""
        if uid != self.pod.uid:
            super().tolerate(namespace, pod, uid, home)
        elif home not in self.pod.homes:
            self.pod = replace(self.pod, homes=(*self.pod.homes, home))


def at_home() -> tuple[Stage, Refusing]:
    """The pod's node is ready, and the scheduler could bind it there from now on."""
    pools = {"one": PoolPolicy(instance_type="one", max=20)}
    pools["eight"] = PoolPolicy(instance_type="eight", max=20, taints=(BIRTH_TAINT,))
    stage = Stage(placement="homes", pools=pools, on_cloud={})
    cluster = Refusing(stage)
    stage.deps = with_(stage.deps, cluster=cluster)
    stage.event(cluster.pod)
    stage.wait(200)
    stage.tick()
    stage.wait(1)
    stage.tick()
    stage.wait(15)  # A home that was named just now is new to the scheduler.
    assert (len(cluster.pod.homes), stage.world.launches) == (1, 1)
    return stage, cluster


def second(stage: Stage, after_s: float) -> int:
    """Another pod, made so long after, comes to the home or has a node bought; the nodes bought in all."""
    stage.wait(after_s)
    stage.event(stage.submit("second", gpus=4, terms=A100))
    return stage.world.launches


def test_a_home_that_its_pod_does_not_take_is_free_for_others() -> None:
    """Half a minute after the pod could be bound the scheduler says something else of it: another gets the room."""
    stage, cluster = at_home()
    cluster.pod = replace(cluster.pod, said=REFUSED)
    assert second(stage, 35) == 1
    stage.wait(1)
    assert [p.demand.uid for job in stage.world.running.values() for p in job.placement] == ["uid-second"]


def test_nobody_has_it_sooner() -> None:
    """Within the half minute the scheduler may try again: another pod has a node bought."""
    stage, cluster = at_home()
    cluster.pod = replace(cluster.pod, said=REFUSED)
    assert second(stage, 20) == 2


def test_a_scheduler_that_tried_a_later_pod_has_passed_it_over() -> None:
    """Its words are as they were; but it has said of a pod made since that this one fits nowhere."""
    stage, _ = at_home()
    assert second(stage, 35) == 1


def test_a_slow_scheduler_robs_nobody() -> None:
    """A scheduler that is silent may still come to the pod: its home stays its own, and another node is bought."""
    stage, cluster = at_home()
    cluster.tried = False
    assert second(stage, 35) == 2
    stage.wait(1)
    assert not stage.world.running


def test_a_pod_that_we_gave_free_room_is_no_stranger() -> None:
    """A look that gives a home and buys nothing remembers whom it saw: the next one takes the pod for no thief."""
    pools = {"eight": PoolPolicy(instance_type="eight", max=20, taints=(BIRTH_TAINT,))}
    stage = Stage(placement="homes", pools=pools, on_cloud={})
    stage.event(stage.submit("first", gpus=4))
    stage.minutes(5)
    cluster = Refusing(stage, gpus=4)
    stage.deps = with_(stage.deps, cluster=cluster)
    stage.event(cluster.pod)
    stage.wait(5)
    stage.event(cluster.pod)
    assert (len(cluster.pod.homes), stage.world.launches) == (1, 1)
    assert "finding-takes-homes" not in [alert.kind for alert in stage.alerts]


def waits(name: str, at_s: float, said: str = "", priority: int = 0, gang: Gang | None = None) -> PodDemand:
    """A pod that waits since so many seconds."""
    asks = shape(gpu=GpuRequest(count=1), priority=priority, gang=gang)
    made = EPOCH + timedelta(seconds=at_s)
    return PodDemand(uid=f"uid-{name}", namespace="ml", name=name, shape=asks, created_at=made, said=said)


def node(home: str = "h", *bound: BoundPod) -> Node:
    """A node with a home, and pods on it."""
    kind = {"pool": "eight", "instance_type": "eight", "capacity_type": "on-demand", "ready": True}
    return Node(name="n", created_at=EPOCH, home=home, pods=bound, **kind)  # type: ignore[arg-type]


def bound(name: str, priority: int = 0) -> BoundPod:
    """A pod on a node."""
    return BoundPod(uid=f"uid-{name}", namespace="ml", name=name, priority=priority)


P = waits("p", 0, TAINTED)
LOOKS: dict[str, tuple[PodDemand, tuple[PodDemand, ...], Node, dict[str, float], bool]] = {
    "nothing is known of a silent scheduler": (P, (), node(), {}, False),
    "the scheduler has tried one made later": (P, (waits("q", 10, TAINTED),), node(), {}, True),
    "one made later that it has not tried": (P, (waits("q", 10),), node(), {}, False),
    "one made later, within what clocks differ": (P, (waits("q", 4, TAINTED),), node(), {}, False),
    "one made before": (P, (waits("q", -10, TAINTED),), node(), {}, False),
    "one made later that is more urgent": (P, (waits("q", 10, TAINTED, 9),), node(), {}, False),
    "it bound one whose node came later": (P, (), node("h", bound("q")), {"uid-q@m": 10}, True),
    "it bound one of the same burst": (P, (), node("h", bound("q")), {"uid-q@m": 0}, False),
    "it bound a more urgent one": (P, (), node("h", bound("q", 9)), {"uid-q@m": 10}, False),
    "it said so at an earlier look": (P, (), node(), {"uid-p!": 5}, True),
    "it said so before the pod could be bound": (P, (), node(), {"uid-p!": -5}, False),
    "a gang is waited for": (
        waits("p", 0, TAINTED, gang=Gang(key="g", size=2)), (waits("q", 10, TAINTED),), node(), {}, False
    ),
    "an open node is nobody's": (P, (waits("q", 10, TAINTED),), node(""), {}, False),
}  # fmt: skip


@pytest.mark.parametrize(("pod", "others", "there", "was", "free"), LOOKS.values(), ids=LOOKS.keys())
def test_whether_the_scheduler_came_to_a_pods_turn(
    pod: PodDemand, others: tuple[PodDemand, ...], there: Node, was: dict[str, float], free: bool
) -> None:
    """It tries pods of a priority in turn; so it has where it said or did something of one whose turn is later."""
    view, now = ClusterView(pending=(pod, *others), nodes=(there,)), EPOCH + timedelta(seconds=30)
    found = {"uid-p@n": EPOCH}
    earlier = found | {name: EPOCH + timedelta(seconds=at_s) for name, at_s in was.items()}
    earlier |= {
        name: EPOCH for name in turns(found, earlier, ClusterView(pending=(pod,), nodes=(there,)), EPOCH) if "#" in name
    }
    now_found = found | turns(found, earlier, view, now)
    assert passed_over(now_found, view, now) == (frozenset({"uid-p"}) if free else frozenset())
