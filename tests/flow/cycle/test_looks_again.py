"""A holder of the lease that is asked to look again: how long it goes on; and the rooms that few looks enter."""

import dataclasses
from inspect import signature

import pytest
from stage import Stage

from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.decisions import Plan
from pilotlight.facts.money.budgets import Money
from pilotlight.flow.cycle.cycle import LATE_ROOMS, LateRoom
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.world.world_cluster import WorldCluster


class Arriving(WorldCluster):
    """A cluster in which one pod comes during each look, up to so many; its event finds the lease held."""

    stage: Stage
    left = 0
    takes_s = 0.0

    def observe(self) -> ClusterView:
        """The world as it is, just before another pod comes."""
        found = super().observe()
        if self.left:
            self.left -= 1
            self.stage.event(self.stage.submit(f"p{self.left}"))
            self.stage.wait(self.takes_s)
        return found


@pytest.mark.parametrize(
    ("takes_s", "bought"),
    [(1.0, 12), (10.0, 5)],
    ids=["quick looks go on until nobody asks", "slow ones leave the rest to the next tick"],
)
def test_a_holder_looks_again_while_it_is_asked(takes_s: float, bought: int) -> None:
    """Pods that come one by one during its looks are all bought for, as long as that takes it seconds."""
    stage = Stage()
    cluster = Arriving(stage.world)
    cluster.stage, cluster.takes_s, cluster.left = stage, takes_s, 11
    stage.deps = dataclasses.replace(stage.deps, cluster=cluster)
    stage.event(stage.submit("first"))
    assert stage.world.launches == bought


ENTERED = ("cycle.gpu_health", "cycle.kueue_check", "observe.advice_records")


@pytest.mark.parametrize("room", LATE_ROOMS, ids=ENTERED)
def test_a_room_is_there_and_takes_what_it_is_given(room: LateRoom) -> None:
    """The function that is loaded by its name takes dependencies, look, plan and money."""
    assert [p.annotation for p in signature(room.load()).parameters.values()] == [Deps, Snapshot, Plan, Money]


def test_a_purchase_and_a_tick_with_nothing_for_them_enter_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sick or marked, nothing is queued, and no pool is advised on: none is asked to do anything."""
    entered: list[str] = []
    functions = ("tend", "admit", "follow")
    for room, name in zip(ENTERED, functions, strict=True):
        monkeypatch.setattr(f"pilotlight.flow.{room}.{name}", lambda *_, of=name: entered.append(of))
    stage = Stage()
    stage.event(stage.submit("a"))
    stage.minutes(5)
    assert (stage.world.launches, entered) == (1, [])
