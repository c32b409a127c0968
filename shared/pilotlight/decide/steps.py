"""A step of a plan: when it is due, and how its work is loaded."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import NamedTuple, cast

from pilotlight.decide.work import Work


class Step(NamedTuple):
    """One row of the plan's table."""

    name: str
    when: Callable[[Work], bool]
    """True where there is anything to do: cheap, and the only place that asks."""
    load: Callable[[], Callable[[Work], None]]
    """The work itself; a step that few plans need is imported when it is first due."""
    reads: frozenset[str]
    writes: frozenset[str]
    """Parts of the work by name; a step that writes a part may read it."""


def step(
    name: str, when: Callable[[Work], bool], load: Callable[[], Callable[[Work], None]], reads: str, writes: str
) -> Step:
    """A row, its parts of the work written as words."""
    return Step(name, when, load, frozenset(reads.split()), frozenset(writes.split()))


def late(room: str, name: str) -> Callable[[], Callable[[Work], None]]:
    """A loader of ``name`` in ``pilotlight.decide.{room}``: a test loads every one and checks that it takes a Work."""
    return partial(_imported, f"pilotlight.decide.{room}", name)


def _imported(module: str, name: str) -> Callable[[Work], None]:
    return cast(Callable[[Work], None], getattr(import_module(module), name))
