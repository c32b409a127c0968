"""Stopped nodes of the world's cloud: what they cost, when they start, and what is told of them."""

from decimal import Decimal
from typing import Any

import pytest
from both_ways import WAYS, ports
from msgspec.structs import replace
from small_cloud import CATALOG, POOLS, SPOT, pod

from pilotlight.errors import BadRequest, Busy, NoCapacity
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.ports.clouds import Pools, StandbyPools
from pilotlight.world.faults import Faults
from pilotlight.world.simulation import World

STOPS = replace(
    CATALOG,
    instance_types={
        name: replace(kind, wake_s=40.0, standby_usd_per_hour=Decimal("0.01"))
        for name, kind in CATALOG.instance_types.items()
    },
)


def world(**options: Any) -> World:
    """A world whose nodes can be stopped, and start in 40 s where a launch takes 100 s."""
    return World(STOPS, options.pop("pools", POOLS), **options)


def test_a_stopped_node_costs_its_disk_and_starts_sooner() -> None:
    """An hour lit, an hour stopped, an hour lit again: two hours of it and one of its disk."""
    log: list[dict[str, Any]] = []
    here = world(log=log.append)
    (name,) = here.launch("one")
    here.advance(3600)
    here.stop(name)
    here.advance(7200)
    assert here.launch("one") == [name]
    here.advance(10_800)
    assert here.cost() == Decimal("2.01")
    assert here.standby_cost() == Decimal("0.01")
    assert [(r["t"], r["event"]) for r in log] == [
        (0, "launch"), (100, "ready"), (3600, "standby"), (7200, "wake"), (7240, "ready"),
    ]  # fmt: skip
    assert (here.launches, here.wakes) == (1, 1)


def test_a_start_is_paid_for_a_minute_at_least() -> None:
    """Given back ten seconds after its start, a node costs the minute, as after a launch."""
    here = world()
    (name,) = here.launch("one")
    here.advance(100)
    here.stop(name)
    here.advance(160)
    here.launch("one")
    here.advance(170)
    here.terminate(name, "done")
    disk = Decimal("0.01") * 60 / 3600
    assert here.cost() == pytest.approx(Decimal(160) / 3600 + disk)


def test_a_node_stops_for_a_minute_before_it_can_start() -> None:
    """Sooner another is launched."""
    here = world()
    (name,) = here.launch("one")
    here.advance(100)
    here.stop(name)
    here.advance(159)
    assert here.launch("one") == ["n2"]
    here.advance(160)
    assert here.launch("one") == [name]


def test_a_start_fails_in_an_hour_of_shortage() -> None:
    """A stopped node is no reservation."""
    here = world()
    (name,) = here.launch("one")
    here.advance(100)
    here.stop(name)
    here.advance(200)
    here.set_faults(Faults(shortage=1.0))
    with pytest.raises(NoCapacity):
        here.launch("one")
    assert here.wakes == 0


def test_only_on_demand_nodes_without_work_are_stopped() -> None:
    """Spot nodes, nodes with jobs, and nodes of types that cannot be stopped stay as they are."""
    here = world(pools=SPOT, faults=Faults(reclaim=False))
    (name,) = here.launch("one")
    with pytest.raises(BadRequest, match="cannot be stopped"):
        here.stop(name)
    here = world()
    (name,) = here.launch("one")
    here.submit(pod("p", on="one"), 1000)
    here.advance(100)
    with pytest.raises(Busy):
        here.stop(name)


def test_a_run_that_is_over_gives_back_what_stands_by() -> None:
    """In the log every node that was launched is terminated."""
    log: list[dict[str, Any]] = []
    here = world(log=log.append)
    (name,) = here.launch("one")
    here.advance(100)
    here.stop(name)
    here.shut_down()
    assert log[-1] == {"t": 100, "event": "terminate", "node": name, "reason": "the run is over"}
    assert (here.launches, here.terminations) == (1, 1)


@pytest.mark.parametrize("way", WAYS)
def test_the_port_tells_and_stops(way: str) -> None:
    """A pool says that its nodes can be stopped, and which are; growing starts one first; release gives one back."""
    with ports(way, catalog=STOPS) as here:
        assert isinstance(here.pools, StandbyPools)
        here.pools.grow("one", 1)
        here.world.advance(100)
        for _ in range(2):
            here.pools.stop("one", "n1")
        assert _one(here.pools) == PoolState(name="one", desired=0, stops=True, stopped=("n1",))
        here.world.advance(200)
        assert _one(here.pools).standby == 1
        assert [b.instance for b in here.pools.grow("one", 1).booting] == ["n1"]
        here.world.advance(300)
        here.pools.stop("one", "n1")
        here.pools.release("one", "n1")
        assert _one(here.pools).stopped == ()
        assert (here.world.launches, here.world.wakes, here.world.terminations) == (1, 1, 1)


def _one(pools: Pools) -> PoolState:
    return next(p for p in pools.describe() if p.name == "one")
