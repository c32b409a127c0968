"""An unexpected error in any decision about one object, judged by the world's log alone.

Every run plants some errors, drawn by the number in ``PILOTLIGHT_SWEEP``; ``PILOTLIGHT_SWEEP=all`` each of them.
"""

import inspect
import os
import random
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from isolated_stage import DoorStage, planted

from pilotlight.units import HOUR

SWEEP = os.environ.get("PILOTLIGHT_SWEEP", "1")
DRAWN = 5
CAP, CENT = 6.0, 0.01

OBJECTS = ("BoundPod", "Group", "Hold", "Interruption", "Lit", "MeteredNode", "Node", "PodDemand")
ROOMS = (
    "pilotlight.decide.fit.fit",
    "pilotlight.decide.nodes.idle_nodes",
    "pilotlight.decide.place.new_nodes",
    "pilotlight.decide.place.provision",
    "pilotlight.decide.place.purchase",
    "pilotlight.decide.place.belonging",
    "pilotlight.decide.nodes.scale_down",
    "pilotlight.decide.nodes.gpu_health",
    "pilotlight.decide.interruption.drain_plan",
    "pilotlight.decide.money.node_hours",
    "pilotlight.decide.money.budget_limits",
    "pilotlight.decide.money.economics",
    "pilotlight.decide.money.gpu_shares",
    "pilotlight.decide.money.holds",
    "pilotlight.decide.money.metering",
    "pilotlight.decide.money.node_cost",
    "pilotlight.decide.money.node_end",
)
"""Modules of ``decide`` in which a function that takes one object may raise."""


FOUND = [("pilotlight.decide.money.budget_limits:held_amount", "n2")]
"""Places that broke a promise once: the hold of a node passed to the next node, and its dollars were lost."""


def functions(module: ModuleType) -> Iterator[str]:
    """The module's functions and methods that take one object, by their names in it."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", "") != module.__name__:
            continue
        methods = vars(value).items() if inspect.isclass(value) else ()
        for called, each in [(name, value), *((f"{name}.{method}", of) for method, of in methods)]:
            if inspect.isfunction(each) and any(of_an_object(of) for of in given(each)):
                yield called


def given(function: Any) -> list[Any]:
    """What a function's parameters are, by their annotations."""
    return [of for name, of in inspect.get_annotations(function).items() if name != "return"]


def of_an_object(annotation: Any) -> bool:
    """Whether a parameter is one object."""
    return getattr(annotation, "__name__", str(annotation)) in OBJECTS


def places() -> list[tuple[str, str]]:
    """Each function with the name of each object for which it is made to raise."""
    rooms = [import_module(room) for room in ROOMS]
    found = [f"{room.__name__}:{name}" for room in rooms for name in functions(room)]
    every = [(place, name) for place in found for name in ("uid-odd", "n2")]
    rest = [place for place in every if place not in FOUND]
    return every if SWEEP == "all" else FOUND + random.Random(f"isolated {SWEEP}").sample(rest, DRAWN)


@pytest.mark.parametrize(("place", "name"), places())
def test_an_error_in_a_decision_costs_one_object(place: str, name: str) -> None:
    """The cap is kept, nothing else is killed, no demand is bought for twice, and every other pod is served."""
    on = DoorStage("6")
    with planted(name, place):
        on.pod("good", run_s=1800)
        on.pod("odd", run_s=20 * HOUR)
        on.play(60, on.count)
        on.pod("late", run_s=600)
        on.play(9 * 60, on.count)
    stopped = [record for record in on.events("stop") if record["reason"] not in ("done", "finished")]
    assert on.finished() == ["uid-good", "uid-late"]
    assert float(on.cost()) <= CAP + CENT
    assert {record["job"] for record in stopped} <= {"uid-odd"}
    assert {record["reason"] for record in stopped} <= {"evicted"}
    assert len(on.events("launch")) <= 3 + len(stopped)  # Each demand once, and one that was stopped once more.
