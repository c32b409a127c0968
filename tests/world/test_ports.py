"""The world behind the Cluster and Pools ports."""

from datetime import timedelta

import pytest
from small_cloud import START, pod, world

from pilotlight.errors import BadRequest, Busy
from pilotlight.facts.labels import GPU_MODEL, INSTANCE_TYPE, POOL
from pilotlight.ports.clouds import Pools
from pilotlight.ports.cluster import Cluster
from pilotlight.world.world_clock import VirtualClock, WallClock
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools


def test_a_booting_instance_is_in_its_pool_and_no_node() -> None:
    """What boots is told by the cloud, and by the cluster only once it has registered."""
    here = world()
    cluster: Cluster = WorldCluster(here)
    pools: Pools = WorldPools(here)
    pools.grow("one", 1)
    assert cluster.observe().nodes == ()
    (state,) = [p for p in pools.describe() if p.name == "one"]
    assert [(b.instance, b.requested_at) for b in state.booting] == [("n1", START)]
    here.advance(100)
    (node,) = cluster.observe().nodes
    assert node.ready
    assert node.created_at == START
    assert node.idle_since == START + timedelta(seconds=100)
    assert (node.labels[INSTANCE_TYPE], node.labels[POOL], node.labels[GPU_MODEL]) == ("one", "one", "T4")
    assert all(not p.booting for p in pools.describe())


def test_a_node_in_its_gpu_lag_is_there_and_not_ready() -> None:
    """Between registration and its GPUs a node is shown, not ready, and takes nothing."""
    here = world(faults={"gpu_lag_s": 30.0})
    cluster = WorldCluster(here)
    here.launch("one")
    here.submit(pod("a"), 60)
    here.advance(100)
    (node,) = cluster.observe().nodes
    assert not node.ready
    assert len(cluster.observe().pending) == 1
    here.advance(130)
    assert cluster.observe().nodes[0].ready
    assert cluster.observe().pending == ()


def test_an_observed_node_shows_what_is_on_it() -> None:
    """The pods and free devices of a node are those of now, and an unchanged node is the same value."""
    here = world()
    cluster = WorldCluster(here)
    here.launch("four")
    here.submit(pod("a", 2, team="red"), 60)
    here.advance(100)
    (node,) = cluster.observe().nodes
    assert node.devices == (0, 0, 1000, 1000)
    assert [(p.name, p.team) for p in node.gpu_pods] == [("a", "red")]
    assert node.idle_since is None
    assert cluster.observe().nodes[0] is node
    here.advance(160)
    assert cluster.observe().nodes[0].devices == (1000,) * 4


def test_growing_again_to_the_same_size_buys_nothing() -> None:
    """The desired size becomes the larger of what it is and what is asked, so a repeated call is harmless."""
    here = world()
    pools = WorldPools(here)
    assert [pools.grow("one", to).desired for to in (2, 2, 1)] == [2, 2, 2]
    assert here.launches == 2


def test_releasing_twice_is_harmless() -> None:
    """A named instance goes once, with one from the desired size, and again is no error."""
    here = world()
    pools = WorldPools(here)
    pools.grow("one", 2)
    pools.release("one", "n1")
    pools.release("one", "n1")
    assert list(here.nodes) == ["n2"]
    assert here.fleet.desired["one"] == 1


def test_a_drain_evicts_no_gpu_pod() -> None:
    """A drain wants a cordon first, refuses while a GPU pod is bound, and passes once it has ended."""
    here = world()
    cluster = WorldCluster(here)
    here.launch("one")
    here.submit(pod("a"), 60)
    here.advance(100)
    with pytest.raises(BadRequest, match="not cordoned"):
        cluster.drain("n1")
    cluster.cordon("n1")
    cluster.cordon("n1")
    with pytest.raises(Busy):
        cluster.drain("n1")
    assert [p.name for p in cluster.bound_pods("n1")] == ["a"]
    here.advance(160)
    cluster.drain("n1")
    assert not cluster.observe().nodes[0].schedulable
    cluster.uncordon("n1")
    assert cluster.observe().nodes[0].schedulable


def test_what_is_told_of_a_pod_can_be_read() -> None:
    """An Event on a pod is kept with its moment."""
    here = world()
    cluster = WorldCluster(here)
    here.advance(5)
    cluster.tell("default", "a", "Lit", "a node is on its way")
    assert list(cluster.told) == [(START + timedelta(seconds=5), "default/a", "Lit", "a node is on its way")]


def test_the_clock_is_caught_up_with_before_each_call() -> None:
    """A port shows the world at the clock's moment, whoever moved the clock."""
    clock = VirtualClock(START)
    here = world(clock=clock)
    cluster = WorldCluster(here)
    here.launch("one")
    clock.advance(100)
    assert len(cluster.observe().nodes) == 1
    assert here.now_s == 100


def test_a_wall_clock_runs_at_its_speed_from_its_start() -> None:
    """At a high speed the first reading is at or after the start, and readings never go back."""
    clock = WallClock(START, speed=1e6)
    first, second = clock.now(), clock.now()
    assert START <= first <= second
