"""A holder of the lease that is asked to look again: how long it goes on; and the rooms that few looks enter."""

import dataclasses
from inspect import signature
from typing import Any

import pytest
from stage import Stage

from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.decisions import Plan, Record
from pilotlight.facts.money.budgets import Money
from pilotlight.flow.cycle.cycle import ADMISSION_CHECKS, ADVICE, GPU_HEALTH, HOMES, MOVES_IN, LateRoom
from pilotlight.flow.cycle.homes import Keep
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


ROOMS: dict[str, tuple[LateRoom[Any], list[object]]] = {
    "cycle.homes.give_homes": (HOMES, [Keep]),
    "cycle.homes.move_in": (MOVES_IN, [Record, Keep]),
    "cycle.gpu_health.tend": (GPU_HEALTH, [Money]),
    "cycle.kueue_check.admit": (ADMISSION_CHECKS, [Money]),
    "observe.advice_records.follow": (ADVICE, [Money]),
}
"""The rooms by the name of their function, and what each takes beside dependencies, look and plan."""


@pytest.mark.parametrize(("room", "takes"), ROOMS.values(), ids=ROOMS)
def test_a_room_is_there_and_takes_what_it_is_given(room: LateRoom[Any], takes: list[object]) -> None:
    """The function that is loaded by its name takes dependencies, look, plan, and what the cycle gives it."""
    given = [p.annotation for p in signature(room.load()).parameters.values()]
    assert given == [Deps, Snapshot, Plan, *takes]


def test_a_purchase_and_a_tick_with_nothing_for_them_enter_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pool is homed, nothing is sick, marked or queued, none is advised on: no room is asked to do anything."""
    entered: list[str] = []
    for name in ROOMS:
        monkeypatch.setattr(f"pilotlight.flow.{name}", lambda *_, of=name: entered.append(of))
    stage = Stage()
    stage.event(stage.submit("a"))
    stage.minutes(5)
    assert (stage.world.launches, entered) == (1, [])
