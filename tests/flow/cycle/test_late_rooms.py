"""Rooms that a cycle enters only where there is something for them."""

from inspect import signature

import pytest
from stage import Stage

from pilotlight.facts.decisions import Plan
from pilotlight.facts.money.budgets import Money
from pilotlight.flow.cycle.cycle import ROOMS, Room
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot

ENTERED = ("cycle.gpu_health", "cycle.kueue_check", "observe.advice_records")


@pytest.mark.parametrize("room", ROOMS, ids=ENTERED)
def test_a_room_is_there_and_takes_what_it_is_given(room: Room) -> None:
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
