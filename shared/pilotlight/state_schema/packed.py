"""A family whose records lie together, some hundred in one: a look at 1,000 of them reads and writes a few.

Each is changed by compare-and-set as if it lay alone: over what it said when it was read. Its place goes by its name's
hash for ever, so that two writers never put one name into two places.
"""

from collections.abc import Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from pilotlight.errors import Conflict
from pilotlight.ports.state import ABSENT, State
from pilotlight.state_schema.table import Entry, Part, Table

T = TypeVar("T", bound=msgspec.Struct)

PLACES = 32
"""Records of a cluster at most: of 20,000 holds 625 are in each."""


class Kept(NamedTuple, Generic[T]):
    """A value with its name, and what the store said of it (``was``; None: nothing)."""

    name: str
    was: T | None
    value: T


class Packed(Generic[T]):
    """Such a family, whose keys are ``<prefix>/<within>/<place>`` and names ``<within>/<name>``.

    ::

        HOLD.put(state, "c/d.0.0", hold, over=None)
        lost = HOLD.change(state, "c", {"d.0.0": (hold, ended), "d.0.1": (other, None)})
    """

    def __init__(self, table: Table[Part[T]], kind: type[Part[T]]) -> None:
        self.table = table
        self._kind = kind

    def get(self, state: State, name: str) -> Kept[T] | None:
        """Value under a name, if there is one."""
        within, _, own = name.partition("/")
        found = self.table.get(state, _place(within, own))
        value = found.value.items.get(own) if found else None
        return Kept(name, value, value) if value is not None else None

    def scan(self, state: State, within: str = "") -> Iterator[Kept[T]]:
        """Every value whose name begins with ``within``, in order."""
        cluster, slash, _ = within.partition("/")
        every = {
            name: value
            for part in self.table.scan(state, cluster + slash)
            for own, value in part.value.items.items()
            if (name := f"{part.name.rpartition('/')[0]}/{own}").startswith(within)
        }
        yield from (Kept(name, every[name], every[name]) for name in sorted(every))

    def put(self, state: State, name: str, value: T | None, *, over: T | None) -> None:
        """Write in place of what was there, or delete. Raises ``Conflict`` where it says something else now."""
        within, _, own = name.partition("/")
        if self.change(state, within, {own: (over, value)}):
            raise Conflict(f"state {self.table.key(name)}: another version is there")

    def change(self, state: State, within: str, changes: Mapping[str, tuple[T | None, T | None]]) -> set[str]:
        """Give each name a value in place of what was there, one write a place; None is nothing, before and after.

        The names of those of which the store says something else now: they stay as they are.
        """
        places = sorted({_place(within, own) for own in changes})
        known = {part.name: part for part in self.table.scan(state, f"{within}/")} if len(places) > 1 else {}
        lost: set[str] = set()
        for place in places:
            own = {name: change for name, change in changes.items() if _place(within, name) == place}
            lost |= self._change(state, place, known.get(place), own)
        return lost

    def _change(
        self, state: State, place: str, found: Entry[Part[T]] | None, changes: Mapping[str, tuple[T | None, T | None]]
    ) -> set[str]:
        while True:
            found = found or self.table.get(state, place)
            was, version = (found.value.items, found.version) if found else ({}, ABSENT)
            lost = {own for own, (over, _) in changes.items() if was.get(own) != over}
            new = {own: value for own, (_, value) in changes.items() if own not in lost}
            items = {own: value for own, value in {**was, **new}.items() if value is not None}
            try:
                if items == was:
                    return lost
                if items:
                    self.table.put(state, place, self._kind(items=items), if_version=version)
                else:
                    self.table.delete(state, place, if_version=version)
            except Conflict:
                found = None
            else:
                return lost


def _place(within: str, own: str) -> str:
    return f"{within}/{crc32(own.encode()) % PLACES:02d}"
