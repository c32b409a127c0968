"""The world's interruptions: notices, checkpoints that are asked for, evictions, disruption budgets, relaunches."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from both_ways import WAYS, Ports, ports
from small_cloud import POOLS, START, pod, world

from pilotlight.errors import Busy
from pilotlight.facts.labels import CHECKPOINT_NOW
from pilotlight.facts.workload import PodDemand
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster


@pytest.fixture(params=WAYS)
def here(request: pytest.FixtureRequest) -> Iterator[Ports]:
    """A small world each way, with one node of one GPU that is ready."""
    with ports(request.param) as made:
        made.world.launch("one")
        made.world.advance(100)
        yield made


def saving(name: str, takes_s: float = 20, grace_s: float = 30) -> PodDemand:
    """A pod that saves when it is asked to, and not before an hour."""
    made = pod(name, checkpoint_s=3600.0)
    return msgspec.structs.replace(made, checkpoint_takes_s=takes_s, grace_s=grace_s)


def test_an_evicted_pod_queues_again_and_loses_what_it_has_not_saved(here: Ports) -> None:
    """Evicted after 500 s without a checkpoint it begins anew, as another pod of its job."""
    job = here.world.submit(saving("a"), 5000)
    here.world.advance(600)
    here.cluster.cordon("n1")
    here.cluster.evict("default", "a", "a")
    assert (list(here.world.pending), job.saved_s, here.world.lost_gpu_seconds) == (["a"], 0, 500)
    assert [d.uid for d in here.cluster.observe().pending] == ["a-r1"]


def test_an_evicted_pod_comes_again_behind_those_that_waited(here: Ports) -> None:
    """Its controller makes a new pod, which the scheduler queues after older ones of its priority."""
    here.world.submit(saving("a"), 5000)
    here.world.submit(saving("b"), 5000)
    here.world.advance(600)
    here.cluster.evict("default", "a", "a")
    assert (list(here.world.running), list(here.world.pending)) == (["b"], ["a"])


def test_a_stop_that_its_node_s_end_overtook_keeps_no_later_run_from_being_stopped() -> None:
    """A pod is being stopped when its node goes; its next run is evicted as any other."""
    records: list[dict[str, Any]] = []
    made = world(log=records.append)
    made.evictions.lingers = True
    cluster = WorldCluster(made)
    for run in range(2):
        made.launch("one")
        made.advance(made.now_s + 100)
        if run == 0:
            made.submit(saving("a", grace_s=600), 5000)
        (pod,) = cluster.observe().nodes[0].gpu_pods
        cluster.evict("default", pod.name, pod.uid)
        if run == 0:
            made.terminate("n1", "taken", evict=True)
    made.advance(made.now_s + 600)
    assert [record["t"] for record in records if record["event"] == "stop"] == [100, 800]


def test_a_checkpoint_that_is_asked_for_is_kept(here: Ports) -> None:
    """Asked at 500 s of run time, safe 20 s later: an eviction then loses 20 s, and the node shows when it was."""
    job = here.world.submit(saving("a"), 5000)
    here.world.advance(600)
    here.cluster.tell("default", "a", CHECKPOINT_NOW, "the node goes in 120 s")
    here.world.advance(620)
    (bound,) = here.cluster.observe().nodes[0].pods
    assert bound.checkpointed_at == START + timedelta(seconds=600)
    here.cluster.evict("default", "a", "a")
    assert (job.saved_s, here.world.lost_gpu_seconds) == (500, 20)


def test_a_node_is_read_anew_only_once_a_checkpoint_is_written() -> None:
    """Between two checkpoints what is shown is the same object; asked for or by its own clock, a new one is seen."""
    made = world()
    cluster = WorldCluster(made)
    made.launch("one")
    made.submit(saving("a"), 9000)
    made.advance(200)
    (first,) = cluster.observe().nodes
    cluster.tell("default", "a", CHECKPOINT_NOW, "")
    made.advance(219)
    assert cluster.observe().nodes[0] is first
    seen = []
    for at_s in (220, 3699, 3700, 7300):
        made.advance(at_s)
        seen.append(cluster.observe().nodes[0].pods[0].checkpointed_at)
    assert seen == [START + timedelta(seconds=s) for s in (200, 200, 3700, 7300)]


@pytest.mark.parametrize(("grace_s", "kept_s"), [(30.0, 100.0), (5.0, 0.0)], ids=["enough grace", "too little"])
def test_an_eviction_lets_a_checkpoint_end_within_the_grace(here: Ports, grace_s: float, kept_s: float) -> None:
    """Evicted 15 s before its checkpoint is safe a pod goes on to that, but for no longer than its grace."""
    job = here.world.submit(saving("a", grace_s=grace_s), 5000)
    here.world.advance(200)
    here.cluster.tell("default", "a", CHECKPOINT_NOW, "")
    here.world.advance(205)
    here.cluster.cordon("n1")
    here.cluster.evict("default", "a", "a")
    assert "a" in here.world.running
    here.world.advance(230)
    assert (job.saved_s, "a" in here.world.pending) == (kept_s, True)


def test_an_eviction_of_a_stranger_is_no_error(here: Ports) -> None:
    """A pod that is gone, or another of its name, is left alone."""
    here.world.submit(pod("a"), 5000)
    here.cluster.evict("default", "a", "another-uid")
    here.cluster.evict("default", "ghost", "ghost")
    assert "a" in here.world.running


def test_a_disruption_budget_makes_an_eviction_wait(here: Ports) -> None:
    """With one pod of the namespace down already, a budget of one refuses the next; the pod runs on."""
    here.world.evictions.disruptions["default"] = 1
    here.world.submit(pod("a"), 5000)
    here.world.submit(pod("b"), 5000)
    with pytest.raises(Busy, match="PodDisruptionBudget default"):
        here.cluster.evict("default", "a", "a")
    assert "a" in here.world.running


def test_a_deletion_asks_no_disruption_budget(here: Ports) -> None:
    """Where the budget refuses an eviction a deletion ends the pod all the same, and no other of its name."""
    here.world.evictions.disruptions["default"] = 0
    here.world.submit(pod("a"), 5000)
    here.world.advance(600)
    here.cluster.cordon("n1")
    here.cluster.delete("default", "a", "another-uid", 30)
    assert list(here.world.running) == ["a"]
    here.cluster.delete("default", "a", "a", 30)
    assert [d.uid for d in here.cluster.observe().pending] == ["a-r1"]


def test_an_instance_is_taken_after_its_notice(here: Ports) -> None:
    """It is told, it goes at the deadline, and until then it may be given back with what is on it."""
    told: list[str] = []
    here.world.on_change.append(lambda change: told.append(change.what))
    here.world.submit(pod("a"), 5000)
    with here.world.call("interrupt"):
        assert here.world.interrupt("n1", 120) == 220
        assert here.world.interrupt("n1", 300) == 220
    here.world.advance(219)
    assert "n1" in here.world.nodes
    here.world.advance(220)
    assert (told[0], "n1" in here.world.nodes, list(here.world.pending)) == ("notice", False, ["a"])


@pytest.mark.parametrize("relaunches", [True, False], ids=["its group relaunches", "its group does not"])
def test_a_group_replaces_what_the_cloud_takes_but_not_what_is_given_back(relaunches: bool) -> None:
    """Taken at the deadline it comes again where the group does so; given back before that it never does."""

    def two() -> World:
        made = world((msgspec.structs.replace(POOLS[0], relaunches=relaunches),))
        made.launch("one", 2)
        made.advance(100)
        made.interrupt("n1", 60)
        return made

    taken, given = two(), two()
    given.terminate("n1", "released", evict=True)
    for each in (taken, given):
        each.advance(400)
    assert (len(taken.nodes), len(given.nodes)) == (2 if relaunches else 1, 1)
