"""The contract of the Pools port, over the world in this process and over HTTP."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from both_ways import WAYS, Ports, ports
from small_cloud import START, pod

from pilotlight.errors import BadRequest, Busy, Denied, NoCapacity, QuotaExceeded
from pilotlight.facts.capacity import Booting, PoolState


@pytest.fixture(params=WAYS)
def here(request: pytest.FixtureRequest) -> Iterator[Ports]:
    """A small world each way."""
    with ports(request.param) as made:
        yield made


def _pool(here: Ports, name: str) -> PoolState:
    return next(p for p in here.pools.describe() if p.name == name)


def test_every_pool_is_told_with_what_boots(here: Ports) -> None:
    """Each pool has its desired size, and its instances on their way until they register."""
    assert [(p.name, p.desired, p.booting) for p in here.pools.describe()] == [
        ("one", 0, ()), ("four", 0, ()), ("eight", 0, ()),
    ]  # fmt: skip
    here.world.advance(5)
    here.pools.grow("four", 1)
    state = PoolState(
        name="four", desired=1, booting=(Booting(instance="n1", requested_at=START + timedelta(seconds=5)),)
    )
    assert _pool(here, "four") == state
    here.world.advance(105)
    assert _pool(here, "four") == PoolState(name="four", desired=1)


def test_growing_again_to_a_size_buys_nothing(here: Ports) -> None:
    """The desired size becomes the larger of what it is and what is asked."""
    assert [here.pools.grow("one", to).desired for to in (2, 2, 1)] == [2, 2, 2]
    assert here.world.launches == 2


def test_many_at_once_grow_to_the_largest(here: Ports) -> None:
    """Parallel calls add up to the largest size that one of them asked for."""
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda to: here.pools.grow("one", to), [1, 2, 3, 4] * 4))
    assert (_pool(here, "one").desired, here.world.launches) == (4, 4)


def test_a_release_takes_the_named_instance_once(here: Ports) -> None:
    """One instance goes with one from the desired size; again, or one that never was, is no error."""
    here.pools.grow("one", 2)
    for instance in ("n1", "n1", "n9"):
        here.pools.release("one", instance)
    assert list(here.world.nodes) == ["n2"]
    assert _pool(here, "one").desired == 1


def test_an_instance_is_not_released_as_another_pools(here: Ports) -> None:
    """A release that names the wrong pool takes nothing."""
    here.pools.grow("one", 1)
    here.pools.release("four", "n1")
    assert list(here.world.nodes) == ["n1"]


def test_a_node_that_runs_a_pod_is_not_released(here: Ports) -> None:
    """The cloud refuses while work is on the node, and keeps it."""
    here.pools.grow("one", 1)
    here.world.submit(pod("a"), 60)
    here.world.advance(100)
    with pytest.raises(Busy):
        here.pools.release("one", "n1")
    assert list(here.world.nodes) == ["n1"]


def test_a_zone_asked_for_is_the_zone_given(here: Ports) -> None:
    """A node comes up in the zone that grow names."""
    here.pools.grow("one", 1, "z-b")
    here.world.advance(100)
    assert here.cluster.observe().nodes[0].zone == "z-b"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("faults", "pool", "kind", "says"),
    [
        pytest.param({}, "nope", BadRequest, "nope", id="no such pool"),
        pytest.param({"quota_nodes": 1}, "one", QuotaExceeded, "quota is 1", id="over the quota"),
        pytest.param({"shortage": 1.0}, "one", NoCapacity, "out of stock", id="out of stock"),
    ],
)
def test_a_cloud_that_says_no_says_why(
    way: str, faults: dict[str, object], pool: str, kind: type[Denied], says: str
) -> None:
    """Each refusal is its own kind, and what had come before it stays."""
    with ports(way, faults=faults) as here:
        with pytest.raises(kind, match=says):
            here.pools.grow(pool, 2)
        assert sum(p.desired for p in here.pools.describe()) == here.world.launches


def test_the_clock_is_the_worlds(here: Ports) -> None:
    """The world's moment is told, and moves with it."""
    assert here.clock.now() == START
    here.world.advance(30)
    assert here.clock.now() == START + timedelta(seconds=30)
