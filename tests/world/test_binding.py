"""Where jobs bind and when they start."""

import pytest
from small_cloud import gang, pod, world

from pilotlight.errors import BadInput, BadRequest, Busy
from pilotlight.facts.capacity import Taint
from pilotlight.facts.labels import HOSTNAME
from pilotlight.facts.workload import GpuRequest, Requirement, Toleration
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World


def ready(here: World, *pools: str) -> list[str]:
    """Nodes of these pools, ready."""
    nodes = [here.launch(pool)[0] for pool in pools]
    here.advance(here.now_s + 100)
    return nodes


def places(here: World, job: str) -> list[str]:
    """The nodes a job runs on."""
    return [p.node.id for p in here.running[job].placement]


def test_a_pod_binds_at_once_when_it_fits() -> None:
    """A pod that fits a ready node starts at its submit and has not waited."""
    here = world()
    (node,) = ready(here, "one")
    job = here.submit(pod("a"), 60)
    assert places(here, "a") == [node]
    assert job.wait_s == 0


def test_a_pod_waits_for_the_boot() -> None:
    """A pod starts the moment its node is ready, and its wait is the boot."""
    here = world()
    here.launch("one")
    job = here.submit(pod("a"), 60)
    here.advance(99)
    assert list(here.pending) == ["a"]
    here.advance(100)
    assert job.wait_s == 100
    here.advance(160)
    assert [done.finish_s for done in here.finished] == [160]


@pytest.mark.parametrize("pools", [("one", "four"), ("four", "one")], ids=["the small first", "the large first"])
def test_nodes_ready_at_one_moment_take_work_in_the_order_of_their_launches(pools: tuple[str, str]) -> None:
    """Each is ready by itself: what it takes is gone when the next one is."""
    here = world()
    here.launch(pools[0])
    here.launch(pools[1])
    here.submit(pod("a"), 600)
    here.advance(100)
    assert places(here, "a") == ["n1"]


@pytest.mark.parametrize(
    ("scoring", "expected"),
    [("most-allocated", "n2"), ("spread", "n1")],
    ids=["packing takes the fullest", "spreading the emptiest"],
)
def test_the_share_in_use_decides_first(scoring: str, expected: str) -> None:
    """The share of GPUs in use is compared before the price."""
    here = world(scoring=scoring)
    ready(here, "one", "four")
    here.submit(pod("first", on="four"), 600)
    here.submit(pod("second"), 600)
    assert places(here, "second") == [expected]


def test_equal_shares_go_to_the_cheapest_then_the_oldest() -> None:
    """Among nodes equally full the cheapest is taken, among those the oldest."""
    here = world()
    ready(here, "four", "one", "one")
    here.submit(pod("a"), 600)
    here.submit(pod("b"), 600)
    assert places(here, "a") == ["n2"]
    assert places(here, "b") == ["n3"]


def test_shares_of_a_gpu_fill_one_device() -> None:
    """Shares go to the fullest device with room, and a share never spans two."""
    here = world()
    ready(here, "four")
    for name, milli in (("a", 600), ("b", 600), ("c", 400)):
        here.submit(pod(name, milli=milli), 600)
    assert here.nodes["n1"].devices == [0, 400, 1000, 1000]


def test_a_gang_starts_when_it_has_all_its_nodes() -> None:
    """A gang takes nothing until all its pods fit, then starts them together."""
    here = world()
    ready(here, "eight")
    here.submit(gang("g", 2), 60, job="g")
    assert list(here.pending) == ["g"]
    assert here.used_milli == 0
    ready(here, "eight")
    assert places(here, "g") == ["n1", "n2"]


def test_priority_goes_before_submit_order() -> None:
    """When a node comes, the pending pod of highest priority gets it, then the one submitted first."""
    here = world()
    for name, priority in (("low", 0), ("early", 5), ("late", 5)):
        here.submit(pod(name, priority=priority), 50)
    ready(here, "one")
    here.advance(1000)
    assert [done.id for done in here.finished] == ["early", "late", "low"]


def test_a_cordoned_node_takes_nothing_until_uncordoned() -> None:
    """Nothing binds to a cordoned node; what waits binds when the cordon comes off."""
    here = world()
    (node,) = ready(here, "one")
    here.cordon(node)
    here.submit(pod("a"), 60)
    assert list(here.pending) == ["a"]
    here.cordon(node, on=False)
    assert places(here, "a") == [node]


def test_a_pod_that_names_a_node_gets_that_node() -> None:
    """Affinity on a host name is met by that node alone."""
    here = world()
    ready(here, "one", "one")
    only = ((Requirement(key=HOSTNAME, operator="In", values=("n2",)),),)
    here.submit(pod("a", terms=only), 60)
    assert places(here, "a") == ["n2"]


def test_taints_and_models_keep_pods_off() -> None:
    """A pod stays off nodes whose taint it does not tolerate or whose GPU model it does not allow."""
    taint = Taint(key="nvidia.com/gpu", effect="NoSchedule")
    here = world((WorldPool(name="one", instance_type="one", taints=(taint,)),))
    ready(here, "one")
    here.submit(pod("bare"), 60)
    tolerant = (Toleration(key="nvidia.com/gpu", operator="Exists"),)
    here.submit(pod("other model", tolerations=tolerant, gpu_models=("A100",)), 60)
    assert list(here.pending) == ["bare", "other model"]
    here.submit(pod("welcome", tolerations=tolerant, gpu_models=("T4",)), 60)
    assert list(here.running) == ["welcome"]


def test_devices_go_by_their_resource_name() -> None:
    """A pod that asks for a whole GPU does not bind to MIG slices, nor one for AMD's GPU to NVIDIA's."""
    mig = "nvidia.com/mig-1g.10gb"
    here = world(
        (
            WorldPool(name="cut", instance_type="eight", slices={mig: 2}),
            WorldPool(name="rdma", instance_type="one", slices={"rdma/hca": 1}),
        )
    )
    ready(here, "cut", "rdma")
    for name, resource, other in (
        ("amd", "amd.com/gpu", ()),
        ("shared", "nvidia.com/gpu.shared", ()),
        ("huge", "nvidia.com/gpu", (("hugepages-2Mi", 1),)),
        ("slice", mig, ()),
        ("whole", "nvidia.com/gpu", (("rdma/hca", 1),)),
    ):
        here.submit(pod(name, gpu=GpuRequest(count=1, resource=resource), other=other), 60)
    assert list(here.pending) == ["amd", "shared", "huge"]
    assert [here.running[j].placement[0].node.pool for j in ("slice", "whole")] == ["cut", "rdma"]
    here.advance(here.now_s + 60)
    assert [(n.slices, dict(n.free.other)) for n in here.nodes.values()] == [({mig: 2}, {}), ({}, {"rdma/hca": 1})]


def test_cpu_counts_too() -> None:
    """A pod that asks for more CPU than a node has does not bind to it."""
    here = world()
    ready(here, "one")
    here.submit(pod("a", cpu_milli=2_000_000_000), 60)
    assert list(here.pending) == ["a"]


def test_a_node_with_a_job_is_not_given_back() -> None:
    """Terminating a busy node is refused, and its job runs on."""
    here = world()
    (node,) = ready(here, "one")
    here.submit(pod("a"), 60)
    with pytest.raises(Busy, match="runs 1 job:"):
        here.terminate(node, "idle")
    assert list(here.running) == ["a"]


def test_an_evicted_job_keeps_its_checkpoint_and_starts_again() -> None:
    """Eviction keeps whole checkpoints of run time; the next start pays the restore; the pod is a new one."""
    here = world()
    (node,) = ready(here, "one")
    job = here.submit(pod("a"), 2000)
    here.advance(100 + 1500)
    here.terminate(node, "replaced", evict=True)
    assert job.saved_s == 1200
    assert [d.uid for d in job.demands] == ["a-r1"]
    assert here.lost_gpu_seconds == 300
    ready(here, "one")
    here.advance(5000)
    assert job.finish_s == 1700 + 60 + 800
    assert job.delay_s == job.finish_s - 100 - 2000


def test_a_job_submitted_twice_is_refused() -> None:
    """The name of a job that waits or runs cannot be used again."""
    here = world()
    here.submit(pod("a"), 60)
    with pytest.raises(BadInput, match="job a is in the world already"):
        here.submit(pod("a"), 60)


def test_what_is_not_there_is_named() -> None:
    """An unknown pool or node is refused by its name."""
    here = world()
    with pytest.raises(BadRequest, match="'nine' is not there: the world has one, four, eight"):
        here.launch("nine")
    with pytest.raises(BadRequest, match="node n7 is not there"):
        here.terminate("n7", "idle")
