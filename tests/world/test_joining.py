"""How nodes come: registered before they are ready, some seconds apart, and with the not-ready taint for a moment."""

from small_cloud import pod, world

from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster


def joins(here: World) -> dict[str, float]:
    """When each node that boots will have registered, by name."""
    found: dict[str, float] = {}
    here.on_change.append(lambda change: found.update({change.subject: change.t} if change.what == "joined" else {}))
    here.advance(1000)
    return found


def test_a_node_is_in_the_cluster_before_it_is_ready() -> None:
    """For the last part of its boot, and in its GPU lag, a node is shown and takes nothing; the boot is as long."""
    here = world(faults={"registered_s": 30.0, "gpu_lag_s": 5.0})
    here.launch("one")
    job = here.submit(pod("a"), 60)
    here.advance(69)
    assert WorldCluster(here).observe().nodes == ()
    here.advance(70)
    assert [node.ready for node in WorldCluster(here).observe().nodes] == [False]
    here.advance(105)
    assert job.wait_s == 105


def test_a_boot_that_is_shorter_registers_at_once() -> None:
    """A node is in the cluster from its launch where its whole boot is no longer than that part."""
    here = world(faults={"registered_s": 300.0})
    here.launch("one")
    here.advance(0)
    assert [node.ready for node in WorldCluster(here).observe().nodes] == [False]


def test_nodes_of_one_purchase_join_apart() -> None:
    """Each boot takes a part of the spread longer, by a draw of the seed: other seeds, other orders."""
    orders = set()
    for seed in range(8):
        here = world(faults={"join_spread_s": 20.0}, seed=seed)
        here.launch("one", 3)
        found = joins(here)
        assert all(100 <= at_s < 120 for at_s in found.values())
        assert len(set(found.values())) == 3
        orders.add(tuple(found))
    assert len(orders) > 2


def test_a_node_keeps_the_not_ready_taint_for_a_moment() -> None:
    """A node that is Ready and carries the taint takes no pods; they bind when it is gone."""
    here = world(faults={"untaint_s": 3.0})
    here.launch("one")
    job = here.submit(pod("a"), 60)
    here.advance(100)
    (node,) = WorldCluster(here).observe().nodes
    assert (node.ready, [t.key for t in node.taints]) == (True, ["node.kubernetes.io/not-ready"])
    assert not here.idle
    here.advance(103)
    assert WorldCluster(here).observe().nodes[0].taints == ()
    assert job.wait_s == 103


def test_a_node_that_is_opened_while_it_carries_the_taint_waits_for_its_end() -> None:
    """Neither an opening nor a home that is given lets a pod in before the taint is gone."""
    here = world(faults={"untaint_s": 3.0})
    here.fleet.homed.add("one")
    here.launch("one")
    job = here.submit(pod("a"), 60)
    here.tolerate("a", "h")
    here.advance(100)
    here.set_home("n1", "h")
    here.set_home("n1", "")
    assert list(here.pending) == ["a"]
    here.advance(103)
    assert job.wait_s == 103
