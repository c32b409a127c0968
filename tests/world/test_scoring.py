"""Kube-scheduler's default scoring: among the nodes that would do the one with the most CPU and memory left."""

from collections import Counter

import msgspec
import pytest
from small_cloud import CATALOG, pod, world

from pilotlight.facts.capacity import Resources
from pilotlight.world.machines import WorldPool
from pilotlight.world.scheduling.scoring import score
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import Room

GIB = 1 << 30
SIZES = {"one": ("4", "16Gi"), "four": ("32", "244Gi"), "eight": ("96", "1152Gi")}
TYPES = {
    name: msgspec.structs.replace(kind, cpu=SIZES[name][0], memory=SIZES[name][1])
    for name, kind in CATALOG.instance_types.items()
}
SIZED = msgspec.structs.replace(CATALOG, instance_types=TYPES)


def scored(
    whole: tuple[int, int], used: tuple[int, int], asks: tuple[int, int], unsaid: tuple[int, int] = (0, 0)
) -> int:
    """The score of a node of so much CPU and memory, of which so much is used, for a pod that asks for so much."""
    all_of_it = Resources(cpu_milli=whole[0], memory=whole[1])
    free = Resources(cpu_milli=whole[0] - used[0], memory=whole[1] - used[1])
    shape = pod("a", cpu_milli=asks[0], memory=asks[1]).shape
    return score(shape, Room("nvidia.com/gpu", (1000,), (), free, unsaid), all_of_it)


@pytest.mark.parametrize(
    ("whole", "used", "asks", "unsaid", "expected"),
    [
        pytest.param((4000, 10_000), (0, 0), (3000, 5000), (0, 0), 37 + 68, id="CPU 25, memory 50; 12 off balance"),
        pytest.param((6000, 10_000), (0, 0), (3000, 5000), (0, 0), 50 + 75, id="as even as before"),
        pytest.param((10_000, 10_000), (4000, 2000), (0, 2000), (0, 0), 59 + 80, id="evener, and CPU as if 100m"),
        pytest.param((4000, 16 * GIB), (0, 0), (0, 0), (0, 0), 97, id="asks for nothing: not balanced"),
        pytest.param((4000, 16 * GIB), (0, 0), (0, 0), (2, 2), 94, id="beside two that ask for nothing"),
        pytest.param((96_000, 1152 * GIB), (0, 0), (0, 0), (7, 7), 99, id="a large node hardly shows them"),
        pytest.param((4000, 0), (0, 0), (1000, 0), (0, 0), 75 + 75, id="without memory: by CPU alone"),
    ],
)
def test_scores_are_those_of_kube_scheduler(
    whole: tuple[int, int], used: tuple[int, int], asks: tuple[int, int], unsaid: tuple[int, int], expected: int
) -> None:
    """The share that is left of CPU and of memory, and how much evener the pod makes them, worked out by hand."""
    assert scored(whole, used, asks, unsaid) == expected


def ready(*pools: str, seed: int = 0, count: int = 1) -> World:
    """A world that scores as kube-scheduler does, with ready nodes of these pools."""
    here = world(catalog=SIZED, scoring="least-allocated", seed=seed)
    for name in pools:
        here.launch(name, count)
    here.advance(100)
    return here


def on(here: World, job: str) -> str:
    """The node of a job."""
    return here.running[job].placement[0].node.id


def test_a_small_pod_goes_to_the_large_empty_node() -> None:
    """GPUs are not scored: a pod that any node holds takes one of eight GPUs, where packing takes the cheapest node."""
    here = ready("one", "four", "eight")
    here.submit(pod("a"), 600)
    assert on(here, "a") == "n3"


def test_pods_spread_over_equal_nodes() -> None:
    """What a pod asks for sends the next one elsewhere, until all nodes have as much left."""
    here = ready("four", count=3)
    for n in range(6):
        here.submit(pod(f"p{n}", cpu_milli=4000, memory=30 * GIB), 600)
    assert {node.used_milli for node in here.nodes.values()} == {2000}


def test_pods_that_ask_for_no_cpu_count_as_if_they_did() -> None:
    """A small node with a pod that asks for nothing but its GPU has less left than one without."""
    here = world(
        (WorldPool(name="one", instance_type="one"),),
        catalog=msgspec.structs.replace(SIZED, instance_types={"one": msgspec.structs.replace(TYPES["one"], gpus=4)}),
        scoring="least-allocated",
    )
    here.launch("one", 3)
    here.advance(100)
    for n in range(3):
        here.submit(pod(f"p{n}"), 600)
    assert {node.used_milli for node in here.nodes.values()} == {1000}
    here.finish("p0")
    here.submit(pod("next"), 600)
    assert {node.used_milli for node in here.nodes.values()} == {1000}


def test_of_equal_nodes_one_is_drawn() -> None:
    """Pods are spread over nodes that score alike by chance, and a run of the same seed repeats to the pod."""

    def places(seed: int) -> tuple[str, ...]:
        here = ready("eight", seed=seed, count=8)
        for n in range(24):
            here.submit(pod(f"p{n}"), 600)
        return tuple(on(here, f"p{n}") for n in range(24))

    assert places(1) == places(1)
    assert places(1) != places(2)
    drawn = Counter(node for seed in range(40) for node in places(seed))
    assert len(drawn) == 8
    assert 60 < min(drawn.values()) <= max(drawn.values()) < 180


def test_a_home_is_scored_beside_open_nodes() -> None:
    """A pod may take an open node rather than its home where that scores higher, as the scheduler lets it."""
    here = ready("one", "eight")
    here.set_home("n1", "mine")
    here.submit(msgspec.structs.replace(pod("a"), homes=("mine",)), 600)
    assert on(here, "a") == "n2"
    here.set_home("n2", "other")
    here.submit(msgspec.structs.replace(pod("b"), homes=("mine",)), 600)
    assert on(here, "b") == "n1"
