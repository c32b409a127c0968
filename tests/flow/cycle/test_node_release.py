"""One node's way out, while others work on it: what became a node stays, and a late worker opens nothing that goes."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from stage import MINUTE, Stage
from test_call_steps import Cloud, on_cloud
from test_on_aws import _terminating, on_aws

from pilotlight.errors import Retry, Unsure
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.nodes.pool_state import InstanceState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.workload import GpuRequest
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.flow.records import node_marks
from pilotlight.state_schema.lease_records import LEASE_S
from pilotlight.world.faults import Faults
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

POD = BoundPod(uid="u", namespace="ml", name="late", gpu=GpuRequest(count=1))


class Joining(WorldCluster):
    """A cluster that a node joins after the look: every second read shows it."""

    joined: tuple[Node, ...] = ()
    reads = 0

    def observe(self) -> ClusterView:
        """What is there, and what has just joined."""
        view = super().observe()
        self.reads += 1
        return msgspec.structs.replace(view, nodes=(*view.nodes, *self.joined)) if self.reads % 2 == 0 else view


@pytest.mark.parametrize(
    ("name", "instance", "ready", "pods", "stays"),
    [
        pytest.param("n1", "", True, (), True, id="it is a node by now"),
        pytest.param("ip-10-0-0-1", "n1", True, (), True, id="by another name"),
        pytest.param("n1", "", False, (POD,), True, id="a pod is on it"),
        pytest.param("n1", "", False, (), False, id="it is not ready yet"),
        pytest.param("ip-10-0-0-2", "n2", True, (POD,), False, id="another is"),
    ],
)
def test_an_instance_that_became_a_node_since_the_look_stays(
    name: str, instance: str, ready: bool, pods: tuple[BoundPod, ...], stays: bool
) -> None:
    """It was to go because it never became one: what joined after all, or has work, is not ended."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=20)}, faults=Faults(boot_s=7200.0))
    stage.event(stage.submit("a", run_s=600))
    stage.minutes(14)
    cluster = Joining(stage.world)
    stage.deps = replace(stage.deps, cluster=cluster)
    node = Node(
        name=name, pool="one", instance_type="one", capacity_type="on-demand", instance=instance, devices=(1000,),
        created_at=stage.deps.now(), ready=ready, pods=pods,
    )  # fmt: skip
    for _ in range(4):
        stage.wait(MINUTE)
        cluster.joined, cluster.reads = (node,), 0
        stage.tick()
    assert ("n1" in stage.world.nodes) is stays


class Paused(WorldCluster):
    """A cluster whose answer to the last look before a release comes late."""

    def __init__(self, stage: Stage, meanwhile: Callable[[], None]) -> None:
        super().__init__(stage.world)
        self.left, self.meanwhile = 2, meanwhile

    def bound_pods(self, node: str) -> tuple[BoundPod, ...]:
        """Meanwhile others work."""
        self.left -= 1
        if self.left == 0:
            self.meanwhile()
        return tuple(super().bound_pods(node))


class Landed(Cloud):
    """A cloud that says of every instance that it goes."""

    def instance(self, pool: str, instance: str) -> InstanceState:
        """An earlier call has landed."""
        return InstanceState(there=True, going=True)


def test_a_late_worker_does_not_open_a_node_whose_first_release_landed() -> None:
    """The answer was lost, a worker sends it again and stands still; another sees that it goes, and keeps it closed."""
    stage, cloud = on_cloud(made=False)
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(4)
    cloud.releases = 1
    with pytest.raises(Unsure):
        stage.minutes(12)
    (node,) = stage.world.nodes
    plain = stage.deps

    def meanwhile() -> None:
        stage.wait(LEASE_S + 1)
        stage.deps = replace(plain, pools=Landed(stage))
        stage.tick()
        assert node in node_marks.released_nodes(
            list(node_marks.every(plain)), plain.cluster.observe().nodes, plain.now()
        )

    stage.wait(10)
    stage.deps = replace(plain, cluster=Paused(stage, meanwhile))
    with pytest.raises(Retry):
        stage.tick()
    assert node in node_marks.released_nodes(list(node_marks.every(plain)), plain.cluster.observe().nodes, plain.now())
    assert stage.world.nodes[node].cordoned


class Saying(WorldPools):
    """A cloud that says of every instance what it is told to."""

    said: InstanceState | None = None

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """That."""
        return self.said


def _of_hook(stage: Stage) -> InterruptionNotice:
    return InterruptionNotice(cluster="c", instance="n1", kind="lifecycle", cloud="world", at=stage.world.clock.now())


def test_the_hook_of_a_node_that_a_pod_bound_to_waits_for_the_pod() -> None:
    """We were giving it back, and work came before its group ends it: that is saved before the hook is answered."""
    with on_aws() as (stage, aws):
        stage.event(stage.submit("a", run_s=3600))
        stage.minutes(5)
        aws.hooks[group := aws.group_name("one")] = ["pilotlight"]
        node_marks.hold(stage.deps, "n1", "release", "it idles")
        stage.world.interrupt("n1", 1800)
        answer = interrupt(stage.deps, _terminating(stage, group))
        assert "let n1 go" not in answer.did
        assert "CompleteLifecycleAction" not in [name for name, _ in aws.changes()]
        assert "n1" in stage.world.nodes


@pytest.mark.parametrize(
    ("said", "goes"),
    [
        pytest.param(None, False, id="it says nothing"),
        pytest.param(InstanceState(there=True), False, id="it never says who goes"),
        pytest.param(InstanceState(there=True, going=False), False, id="it stays"),
        pytest.param(InstanceState(there=True, going=True), True, id="it goes"),
    ],
)
def test_our_mark_alone_makes_no_release_true(said: InstanceState | None, goes: bool) -> None:
    """A hook's notice of a node that we were giving back is answered where the cloud says that it goes."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(5)
    cloud = Saying(stage.world)
    cloud.said = said
    stage.deps = replace(stage.deps, pools=cloud)
    node_marks.hold(stage.deps, "n1", "release", "it idles")
    answer = interrupt(stage.deps, _of_hook(stage))
    assert ("let n1 go" in answer.did) is goes
    assert ("n1" not in stage.world.nodes) is goes
