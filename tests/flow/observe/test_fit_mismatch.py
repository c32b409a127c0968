"""Pods that the scheduler does not bind to a ready node with room: that they fit there is not believed for ever."""

from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest
from stage import MINUTE, Stage

from pilotlight.decide.fit.fit_mismatch import (
    LOOKED,
    Heard,
    believed_fits,
    drop_refuted,
    findings,
    fit_mismatches,
    given_up,
    not_due,
    unbound_beside,
)
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.memory import FitMismatch, Memory
from pilotlight.facts.messages import PodPending
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, shape
from pilotlight.flow.provision import provision
from pilotlight.flow.records import ledger, node_marks
from pilotlight.units import EPOCH
from pilotlight.world.faults import Faults
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


def picky(pools: tuple[str, ...] = ("one",), of: type[Picky] = Picky) -> tuple[Stage, Picky]:
    """A cluster with such a pod, and these pools: of one-GPU nodes but for ``eight``."""
    made = {name: PoolPolicy(instance_type="eight" if name == "eight" else "one", max=20) for name in pools}
    stage = Stage(pools=made, classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=300)})
    cluster = of(stage)
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
    assert list(believed_fits(plan, (), {}, EPOCH, but)) == ["uid-alone@n1", LOOKED]
    ready = Plan(pods=(*fits, msgspec.structs.replace(coming, verdict="fits", where="n2")))
    assert len(believed_fits(ready, (), {}, EPOCH, not_due(ready, pods, ()))) == 5


def _waiting(name: str, gang: Gang | None) -> PodDemand:
    wants = shape(gpu=GpuRequest(count=1), gang=gang)
    return PodDemand(uid=f"uid-{name}", namespace="ml", name=name, shape=wants, created_at=EPOCH)


def refusals(stage: Stage) -> list[str]:
    """What people were told of a scheduler that does not bind, kind by kind."""
    return [alert.kind.removeprefix("finding-") for alert in stage.alerts if alert.kind.startswith("finding-scheduler")]


def silent() -> Stage:
    """Two nodes whose pods have just ended, and two pods of their shape for which the scheduler does nothing."""
    stage = Stage()
    for name in ("first", "second"):
        stage.event(stage.submit(name, run_s=300))
    stage.minutes(9)
    assert (stage.nodes("one"), len(stage.world.running)) == (2, 0)
    stage.world.set_faults(Faults(silent=True))
    for name in ("a", "b"):
        stage.submit(name)
    return stage


def test_a_silent_scheduler_stops_no_purchase() -> None:
    """Two pods stay unbound beside two free nodes for 130 s: people are told, and nothing is held against the nodes."""
    stage = silent()
    for _ in range(13):
        stage.wait(10)
        stage.tick()
    assert refusals(stage) == ["scheduler-unheard"]
    stage.world.set_faults(Faults())
    assert (len(stage.world.running), stage.world.launches) == (2, 2)
    stage.event(stage.submit("c"))
    assert stage.world.launches == 3


def test_a_silent_scheduler_beside_a_node_just_bought_stops_no_purchase_for_hours() -> None:
    """Nothing more is bought for the pod while nothing is heard, and what is bought once it works again is bought."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=600))
    stage.world.set_faults(Faults(silent=True))
    stage.minutes(8)
    assert (stage.world.launches, refusals(stage)) == (1, ["scheduler-unheard"])
    stage.world.set_faults(Faults())
    stage.minutes(1)
    stage.event(stage.submit("b"))
    assert (len(stage.world.running), stage.world.launches) == (1, 2)


WORDS = {
    "it says nothing of the pod": ("", True, []),
    "it said it, and was not heard since": ("0/1 nodes are available", False, ["scheduler-unheard"]),
    "it said it, and lives": ("0/1 nodes are available", True, ["scheduler-refuses"]),
}


@pytest.mark.parametrize(("said", "alive", "told"), WORDS.values(), ids=WORDS)
def test_the_scheduler_is_believed_by_its_word_and_its_heartbeat(said: str, alive: bool, told: list[str]) -> None:
    """Its word on the pod counts where it was heard after the node was there; else nothing is given up."""
    stage, cluster = picky()
    cluster.pod = msgspec.structs.replace(cluster.pod, said=said)
    stage.minutes(3)
    stage.world.set_faults(Faults(silent=not alive))
    stage.minutes(7)
    assert [kind for kind in refusals(stage) if kind == "scheduler-refuses"] == [
        k for k in told if k == "scheduler-refuses"
    ]
    assert bool(ledger.recall(stage.deps.state, "c").memory.misfits) is ("scheduler-refuses" in told)


class Hosted(Picky):
    """A cluster whose control plane shows no Lease of its scheduler."""

    def scheduler_beat(self) -> datetime | None:
        """Nothing."""
        return None


def test_without_a_lease_a_bind_is_the_heartbeat() -> None:
    """Until the scheduler binds a GPU pod, nothing is held against the node that it refuses."""
    stage, _ = picky(("one", "eight"), Hosted)
    stage.minutes(9)
    assert refusals(stage) == ["scheduler-unheard"]
    stage.event(stage.submit("other", gpus=8))
    stage.minutes(6)
    assert len(stage.world.running) == 1
    assert refusals(stage) == ["scheduler-unheard", "scheduler-refuses"]


HEARD = {
    "the default one, by its Lease": ("", Heard(beat=EPOCH + timedelta(seconds=20)), True),
    "the default one, by a bind": ("", Heard(bound=EPOCH + timedelta(seconds=20)), True),
    "it lived, and perhaps not through its try": ("", Heard(beat=EPOCH + timedelta(seconds=10)), False),
    "another one, by a bind": ("volcano", Heard(bound=EPOCH + timedelta(seconds=20)), True),
    "another one, of which the Lease says nothing": ("volcano", Heard(beat=EPOCH + timedelta(seconds=20)), False),
    "nobody": ("", Heard(), False),
}


@pytest.mark.parametrize(("scheduler", "heard", "after"), HEARD.values(), ids=HEARD)
def test_a_scheduler_is_heard(scheduler: str, heard: Heard, after: bool) -> None:
    """After a moment by a bind, or by the Lease where the pod is the default one's; never where it said nothing."""
    silent_of = msgspec.structs.replace(_waiting("a", None), scheduler=scheduler)
    assert heard.heard_after(EPOCH, [msgspec.structs.replace(silent_of, said="no node")]) is after
    assert not heard.heard_after(EPOCH, [silent_of])


def test_looks_that_failed_do_not_count() -> None:
    """While the API server could not be read no scheduler could bind: that time is not counted against a node."""
    stage, _ = picky()
    stage.minutes(5)
    stage.wait(20 * MINUTE)
    stage.tick()
    assert refusals(stage) == []
    stage.minutes(1)
    assert refusals(stage) == ["scheduler-refuses"]


def test_a_shape_is_told_once_however_many_nodes_refuse_it() -> None:
    """Two pods of one shape beside two nodes are one alert that names both."""
    beliefs = {"uid-a@n1": EPOCH, "uid-b@n2": EPOCH}
    pods = [msgspec.structs.replace(_waiting(name, None), said="0/2 nodes are available") for name in ("a", "b")]
    nodes, now = [small_node(name) for name in ("n1", "n2")], EPOCH + timedelta(seconds=130)
    found = fit_mismatches(beliefs, pods, nodes, {}, Heard(now), now)
    (told,) = findings(found, unbound_beside(beliefs, pods, now), pods)
    assert (told.subject, told.code) == ("pod ml/a", "scheduler-refuses")
    assert told.message.startswith("ml/a and 1 more like it does not fit there, says the scheduler: 0/2 nodes")
    assert told.message.endswith("(n1, n2)")


def test_a_doubt_ends_with_the_first_pod_of_its_shape_that_is_bound_there() -> None:
    """Also one that came later; a bind in another pool says nothing of this one."""
    first, later = _waiting("a", None), _waiting("b", None)
    until, shape_ = EPOCH + timedelta(hours=6), first.shape.key
    misfits = tuple(
        FitMismatch(shape=shape_, node=f"n-{pool}", pool=pool, until=until, why="") for pool in ("one", "two")
    )
    memory = drop_refuted(given_up(Memory(), misfits, [first], EPOCH), [first, later], ())
    assert {one.pods for one in memory.quarantines} == {("uid-a", "uid-b")}
    bound = BoundPod(uid="uid-b", namespace="ml", name="b", gpu=GpuRequest(count=1))
    after = drop_refuted(memory, [first], [small_node("n3", pods=(bound,))])
    assert [one.pool for one in after.misfits] == ["two"]
    assert [one.pool for one in after.quarantines] == ["two"]
    assert drop_refuted(after, [first], ()) == after


class Settled(Picky):
    """A cluster whose scheduler has bound the pod after all, on a node of its own, and where another like it waits."""

    bound_in = ""

    def observe(self) -> ClusterView:
        """With the first pod bound and the next one waiting, once ``bound_in`` names a pool."""
        view = super().observe()
        if not self.bound_in:
            return view
        like = msgspec.structs.replace(self.pod, uid="uid-next", name="next", said="")
        bound = BoundPod(uid=self.pod.uid, namespace="ml", name=self.pod.name, gpu=GpuRequest(count=1))
        standing = msgspec.structs.replace(small_node("standing", pods=(bound,)), pool=self.bound_in)
        others = [pod for pod in view.pending if pod.uid != self.pod.uid]
        return msgspec.structs.replace(view, pending=(*others, like), nodes=(*view.nodes, standing))


def test_a_bind_elsewhere_ends_what_kept_a_shape_off_every_purchase() -> None:
    """Two pools of three refuse a pod, and nothing more is bought for its shape; once one is bound in the third, a node
    of that pool is bought for the next, and the two are left alone."""
    stage, cluster = picky(("one", "two", "three"), Settled)
    stage.minutes(40)
    assert stage.world.launches == 2
    refused = {one.pool for one in ledger.recall(stage.deps.state, "c").memory.misfits}
    (other,) = {"one", "two", "three"} - refused
    assert isinstance(cluster, Settled)
    cluster.bound_in = other
    stage.wait(MINUTE)
    assert stage.tick().did == (f"asked pool {other} for 1 x {other}/one/on-demand",)


def small_node(name: str, pods: tuple[BoundPod, ...] = ()) -> Node:
    """A node of pool one."""
    return Node(
        name=name, pool="one", instance_type="one", capacity_type="on-demand", created_at=EPOCH, ready=True, pods=pods
    )
