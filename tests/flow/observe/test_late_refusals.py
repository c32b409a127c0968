"""Launches that a cloud took on and that failed: each is heard once, by its pool or by its event."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import msgspec
from stage import Stage

from pilotlight.facts.messages import CapacityFailed
from pilotlight.facts.nodes.pool_state import LateRefusal, PoolState
from pilotlight.flow.records import ledger
from pilotlight.flow.refusal import refusal
from pilotlight.world.world_pools import WorldPools


class Cloud(WorldPools):
    """A cloud whose pool "one" tells why its last launch failed."""

    late: LateRefusal | None = None

    def describe(self) -> Sequence[PoolState]:
        """Every pool, and what went wrong."""
        found = super().describe()
        return [msgspec.structs.replace(p, refusal=self.late) if p.name == "one" else p for p in found]


def refused(ago: timedelta = timedelta(0)) -> tuple[Stage, LateRefusal]:
    """A stage whose cloud has refused the cheap pool so long ago."""
    stage = Stage()
    cloud = Cloud(stage.world)
    at = stage.world.clock.now() - ago
    cloud.late = LateRefusal(identity="one/a-1", reason="no-capacity", message="none left", at=at)
    stage.deps = replace(stage.deps, pools=cloud)
    return stage, cloud.late


def rests(stage: Stage) -> dict[str, int]:
    """The offerings at rest, with how often they were tried."""
    memory = ledger.recall(stage.deps.state, "c").memory
    return {b.offering: b.tries for b in memory.backoffs}


def test_a_pool_that_could_not_launch_rests_and_demand_goes_elsewhere() -> None:
    """The look that hears of it plans without that pool."""
    stage, _ = refused()
    stage.submit("p", workload_class="batch")
    stage.tick()
    assert rests(stage) == {"one/one/on-demand": 1}
    assert (stage.nodes("one"), stage.nodes("eight")) == (0, 1)


def test_it_is_heard_once() -> None:
    """Looks that still see it, and its event, change nothing more."""
    stage, late = refused()
    stage.tick()
    stage.tick()
    event = CapacityFailed(
        cluster="c", group="one", reason="no-capacity", message="", identity=late.identity, at=late.at
    )
    assert refusal(stage.deps, event).why == "this refusal was handled already"
    assert rests(stage) == {"one/one/on-demand": 1}


def test_one_that_is_old_says_nothing_any_more() -> None:
    """As an event that comes too late."""
    stage, _ = refused(timedelta(hours=1))
    stage.tick()
    assert rests(stage) == {}
