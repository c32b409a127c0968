"""Homes in a cluster whose scheduler respects taints: each pod runs on the node that was bought for it."""

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from stage import Stage

from pilotlight.errors import Forbidden, Unavailable
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.labels import GPU_MODEL, KARPENTER_NODE_POOL, NEW_HOME
from pilotlight.facts.money.money_policy import ApproveOver, Caps
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import PoolPolicy, SparePolicy
from pilotlight.facts.workload import Requirement
from pilotlight.flow.records import brake_records
from pilotlight.world.faults import Faults
from pilotlight.world.world_cluster import WorldCluster

A100 = ((Requirement(key=GPU_MODEL, operator="In", values=("A100",)),),)


def homed(**rules: Any) -> Stage:
    """A cluster whose dear pool's nodes are born closed; they register half a minute before they are ready."""
    pools = {"one": PoolPolicy(instance_type="one", max=20)}
    pools["eight"] = PoolPolicy(instance_type="eight", max=20, taints=(BIRTH_TAINT,))
    return Stage(placement="homes", pools=pools, on_cloud={}, faults=Faults(gpu_lag_s=30.0), **rules)


def homes(stage: Stage) -> dict[str, str]:
    """The homes of nodes that have the taint, by name."""
    return {node.name: node.home for node in stage.deps.cluster.observe().nodes if node.home}


def pool_of(stage: Stage) -> dict[str, str]:
    """The pool that each pod runs in, by uid."""
    return {p.demand.uid: p.node.pool for job in stage.world.running.values() for p in job.placement}


def node_of(stage: Stage) -> dict[str, str]:
    """The node that each pod runs on, by uid."""
    return {p.demand.uid: p.node.id for job in stage.world.running.values() for p in job.placement}


def test_a_pod_runs_on_the_node_that_was_bought_for_it() -> None:
    """The purchase gives its pod a toleration, the next look its node a home; the pod starts when the node is ready."""
    stage = homed()
    stage.event(stage.submit("large", gpus=8))
    [pod] = stage.deps.cluster.observe().pending
    assert len(pod.homes) == 1
    stage.wait(190)
    assert list(homes(stage).values()) == [NEW_HOME]
    stage.tick()
    assert list(homes(stage).values()) == list(pod.homes)
    stage.wait(60)
    assert pool_of(stage) == {"uid-large": "eight"}


def test_small_work_stays_off_a_dear_node() -> None:
    """A small pod that waits while the dear node becomes ready gets a node of its own."""
    stage = homed()
    stage.event(stage.submit("large", gpus=4, terms=A100))
    stage.event(stage.submit("small"))
    stage.minutes(6)
    assert pool_of(stage) == {"uid-large": "eight", "uid-small": "one"}


def test_a_pod_joins_a_lit_node_where_it_belongs() -> None:
    """Free room of a homed node is given to a pod that belongs there, at the look that its event begins."""
    stage = homed()
    stage.event(stage.submit("first", gpus=4, terms=A100))
    stage.minutes(5)
    stage.event(stage.submit("second", gpus=4, terms=A100))
    assert node_of(stage) == {"uid-first": "n1", "uid-second": "n1"}
    assert stage.world.launches == 1


def test_no_pod_takes_the_room_that_another_was_given() -> None:
    """A pod that comes later and fits does not get the node that boots for an earlier one."""
    stage = homed()
    stage.event(stage.submit("owner", gpus=8))
    stage.wait(60)
    stage.event(stage.submit("later", gpus=4, terms=A100))
    stage.minutes(6)
    on = node_of(stage)
    assert on["uid-owner"] != on["uid-later"]
    assert stage.world.launches == 2


def test_a_home_whose_pod_is_gone_takes_the_next() -> None:
    """A pod that is deleted while its node boots leaves it to another, and nothing is bought for that one."""
    stage = homed()
    gone = stage.submit("gone", gpus=8)
    stage.event(gone)
    stage.wait(60)
    stage.world.delete(stage.world.pending["uid-gone"])
    stage.event(stage.submit("next", gpus=8))
    stage.minutes(5)
    assert pool_of(stage) == {"uid-next": "eight"}
    assert stage.world.launches == 1


def test_a_pod_that_nothing_is_bought_for_gets_in() -> None:
    """At a cap a small pod is given the free room of a dear node: nobody is locked out of room that is paid for."""
    stage = homed(caps=Caps(nodes=1))
    stage.event(stage.submit("large", gpus=4, terms=A100))
    stage.minutes(5)
    stage.event(stage.submit("small", run_s=7200))
    assert node_of(stage)["uid-small"] == "n1"


def _pause(stage: Stage) -> None:
    brake_records.pause(stage.deps.state, "c", "", "price check", stage.deps.now())


def _off(stage: Stage) -> None:
    off = msgspec.structs.replace(stage.deps.policy, placement="none")
    stage.deps = dataclasses.replace(stage.deps, policy=off)


class Unwatched(WorldCluster):
    """A cluster whose watchman is asleep."""

    def observe(self) -> ClusterView:
        """The world, unwatched."""
        return msgspec.structs.replace(super().observe(), watched=False)


class Shared(WorldCluster):
    """A cluster in which Karpenter makes the dear nodes."""

    def observe(self) -> ClusterView:
        """The world, its dear nodes with Karpenter's label."""
        view = super().observe()
        nodes = tuple(
            msgspec.structs.replace(n, labels={**n.labels, KARPENTER_NODE_POOL: "own"}) if n.pool == "eight" else n
            for n in view.nodes
        )
        return msgspec.structs.replace(view, nodes=nodes)


def _shared(stage: Stage) -> None:
    stage.deps = dataclasses.replace(stage.deps, cluster=Shared(stage.world))


def _unwatched(stage: Stage) -> None:
    stage.deps = dataclasses.replace(stage.deps, cluster=Unwatched(stage.world))


@pytest.mark.parametrize(
    "quieten",
    [_pause, _off, _unwatched, _shared],
    ids=["a pause", "placement off in the policy", "no watchman that would open in our place", "another autoscaler"],
)
def test_what_ends_homes_opens_every_node(quieten: Callable[[Stage], None]) -> None:
    """Where nodes are not to be kept closed, the next look opens those that are."""
    stage = homed()
    stage.event(stage.submit("large", gpus=8))
    stage.minutes(5)
    assert homes(stage)
    quieten(stage)
    stage.minutes(1)
    assert homes(stage) == {}


class Deaf(WorldCluster):
    """A cluster that refuses every write of a toleration, or loses it, until it ``hears``."""

    hears, loses = False, False

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        """Refused, or passed on."""
        if not self.hears:
            raise Unavailable("the API server is away") if self.loses else Forbidden("no right to patch pods")
        super().tolerate(namespace, pod, uid, home)


def test_lost_patches_lock_no_shape_out() -> None:
    """A pod that was never seen with its toleration is believed to fit for as long as that lasts, and then runs."""
    stage = homed()
    cluster = Deaf(stage.world)
    stage.deps = dataclasses.replace(stage.deps, cluster=cluster)
    cluster.loses = True
    stage.event(stage.submit("large", gpus=8))
    stage.minutes(7)
    assert "finding-scheduler-refuses" not in [alert.kind for alert in stage.alerts]
    cluster.hears = True
    stage.minutes(1)
    stage.wait(1)
    assert (pool_of(stage), stage.world.launches) == ({"uid-large": "eight"}, 1)


def test_a_namespace_whose_pods_may_have_no_home_is_told_once() -> None:
    """Another's policy refuses the toleration: the node is opened, the pod runs, and people hear why, by namespace."""
    stage = homed()
    stage.deps = dataclasses.replace(stage.deps, cluster=Deaf(stage.world))
    stage.event(stage.submit("large", gpus=8))
    stage.event(stage.submit("other", gpus=8))
    stage.minutes(8)
    assert pool_of(stage) == {"uid-large": "eight", "uid-other": "eight"}
    [told] = [alert for alert in stage.alerts if alert.kind == "finding-home-refused"]
    assert told.what == "namespace ml lets none of its pods have a home"
    assert told.why.endswith("opened to every pod: no right to patch pods")


@pytest.mark.parametrize("died", ["between purchase and toleration", "between node and home"])
def test_a_worker_that_died_leaves_nothing_open(died: str) -> None:
    """What a look did not come to write, the next one writes; the pod runs on its node, bought once."""
    stage = homed()
    cluster = Deaf(stage.world)
    stage.deps = dataclasses.replace(stage.deps, cluster=cluster)
    cluster.hears = died == "between node and home"
    stage.event(stage.submit("large", gpus=8))
    cluster.hears = True
    if died == "between node and home":
        stage.wait(190)
        stage.fail("name_home", Unavailable("the API server is away"))
        stage.tick()
        assert stage.failures_left == 0
    stage.minutes(6)
    assert pool_of(stage) == {"uid-large": "eight"}
    assert stage.world.launches == 1


def test_a_gang_is_given_its_nodes() -> None:
    """Each pod of a gang gets a node of the gang's purchase, and small pods none of them."""
    stage = homed()
    pods = stage.submit_gang("g", 2)
    stage.event(pods[0])
    stage.submit("small", run_s=7200)
    stage.minutes(6)
    on = pool_of(stage)
    assert [on["uid-g-0"], on["uid-g-1"], on["uid-small"]] == ["eight", "eight", "one"]
    assert stage.world.launches == 3


@pytest.mark.parametrize("anew", [False, True], ids=["with the home that it had", "born again"])
def test_a_node_that_is_started_after_a_stop_takes_its_new_pod(anew: bool) -> None:
    """A stopped node comes back with an earlier purchase's home, or new: the pod that it was started for runs there."""
    pools = {"one": PoolPolicy(instance_type="one", max=20)}
    pools["eight"] = PoolPolicy(instance_type="eight", max=20, taints=(BIRTH_TAINT,), spares=SparePolicy(stopped=1))
    faults = Faults(registers_anew=anew)
    stage = Stage(placement="homes", pools=pools, on_cloud={}, faults=faults, wake_s=40.0)
    stage.event(stage.submit("first", gpus=8, run_s=600))
    stage.minutes(40)
    [stopped] = stage.world.fleet.standing.values()
    assert stopped.home not in ("", NEW_HOME)
    stage.event(stage.submit("second", gpus=8))
    stage.minutes(3)
    assert (node_of(stage), stage.world.launches) == ({"uid-second": "n1"}, 1)


class Heard(WorldCluster):
    """A cluster that counts how often we said that we are awake."""

    beats = 0

    def beat(self) -> None:
        """Counted."""
        self.beats += 1


@pytest.mark.parametrize(
    ("pool", "heard"),
    [
        pytest.param({}, 0, id="nothing that anybody would undo"),
        pytest.param({"on_silence": "hand-back"}, 3, id="a pool that goes back in our silence"),
        pytest.param({"taints": (BIRTH_TAINT,)}, 3, id="a homed pool"),
    ],
)
def test_a_look_is_heard_of_where_somebody_listens(pool: Any, heard: int) -> None:
    """Each look renews the Lease that the watchmen read; where there is nothing for them to do, none does."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=3, **pool)})
    cluster = Heard(stage.world)
    stage.deps = dataclasses.replace(stage.deps, cluster=cluster)
    stage.minutes(3)
    assert cluster.beats == heard


class Stubborn(WorldCluster):
    """A cluster that takes no write of homes."""

    error: Forbidden | Unavailable

    def open(self, node: str) -> None:
        """Refused, or lost."""
        raise self.error

    def name_home(self, node: str, home: str) -> None:
        """Refused, or lost."""
        raise self.error

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        """Refused, or lost."""
        raise self.error


@pytest.mark.parametrize("error", [Forbidden("no right"), Unavailable("down")], ids=["refused", "down"])
def test_homes_that_cannot_be_written_stop_nothing_else(error: Forbidden | Unavailable) -> None:
    """Purchases go on while taints and tolerations cannot be changed, once for each pod; open nodes take theirs."""
    stage = homed()
    cluster = Stubborn(stage.world)
    cluster.error = error
    stage.deps = dataclasses.replace(stage.deps, cluster=cluster)
    stage.event(stage.submit("large", gpus=8))
    stage.event(stage.submit("small"))
    stage.minutes(5)
    assert (pool_of(stage), stage.world.launches) == ({"uid-small": "one"}, 2)


def test_a_pause_between_a_purchase_and_its_node_lets_waiting_pods_in() -> None:
    """What is bought while a person pauses comes open, and whoever waits binds there."""
    stage = homed()
    stage.event(stage.submit("large", gpus=8))
    _pause(stage)
    stage.minutes(6)
    assert pool_of(stage) == {"uid-large": "eight"}


def test_pods_whose_purchase_waits_for_a_person_get_free_room() -> None:
    """Nothing is bought for them after all: they are given what they fit and nobody else is planned on."""
    stage = homed(caps=Caps(approve_over=ApproveOver(nodes=1)))
    stage.event(stage.submit("large", gpus=4, terms=A100))
    stage.minutes(5)
    stage.submit("small-0", run_s=7200)
    stage.event(stage.submit("small-1", gpus=2, run_s=7200))
    stage.minutes(1)
    assert node_of(stage)["uid-small-1"] == "n1"
