"""Mappings that may outgrow one record: they lie in parts, of which one scan reads all."""

import zlib
from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

import msgspec

from pilotlight.errors import Conflict
from pilotlight.ports.state import ABSENT, State
from pilotlight.state_schema.table import Entry, Part, Table

V = TypeVar("V")

FULL = 32 * 1024
"""Bytes from which on a part takes no new names. What it has may grow to nearly ten times that."""

ROOT = "x"


class ReadParts(NamedTuple, Generic[V]):
    """All parts as they were read: the values by name, and each part with its version."""

    values: Mapping[str, V]
    parts: Mapping[str, Entry[Part[V]]]


class Parted(Generic[V]):
    """A mapping that may outgrow one record, a family whose keys are ``<prefix>/<within>/<part>``.

    It lies in parts, and a part that is full sends new names to parts below it. It is read by one scan, and only the
    parts that changed are written, each over the version that was read::

        idle = IDLE.read(state, cluster)
        IDLE.write(state, cluster, idle, {**idle.values, "node-1": now})

    A small mapping is one record, ``<prefix>/<within>/x``. Below it lie ``x0`` to ``xf``, by the first digit of a
    name's hash, below those ``x00`` to ``xff``, and so on. A name stays where it is. A part that was full once takes
    no new name ever, also when it is empty: so two writers never put one name into two parts.
    """

    def __init__(self, table: Table[Part[V]], kind: type[Part[V]]) -> None:
        self.table = table
        self._kind = kind

    def read(self, state: State, within: str) -> ReadParts[V]:
        """Values of all parts, as they are now."""
        found = {entry.name: entry for entry in self.table.scan(state, f"{within}/")}
        if len(found) == 1:
            return ReadParts(next(iter(found.values())).value.items, found)
        return ReadParts({name: v for entry in found.values() for name, v in entry.value.items.items()}, found)

    def write(self, state: State, within: str, was: ReadParts[V], values: Mapping[str, V]) -> ReadParts[V]:
        """Make ``values`` all that there is, over what was read.

        Raises ``Conflict`` where another has written one of the changed parts meanwhile: read again. Parts before that
        one are written then; each holds what it should.
        """
        new = {name: v for name, v in values.items() if name not in was.values or was.values[name] != v}
        gone = [name for name in was.values if name not in values]
        return ReadParts(dict(values), self.change(state, within, was, new, gone))

    def change(
        self, state: State, within: str, was: ReadParts[V], new: Mapping[str, V], gone: Iterable[str]
    ) -> Mapping[str, Entry[Part[V]]]:
        """Give some names their values and drop others, over what was read; the parts after it. Raises as ``write``."""
        wanted: dict[str, dict[str, V]] = {}
        sizes: dict[str, int] = {}

        def items_of(key: str) -> dict[str, V]:
            return wanted.setdefault(key, dict(was.parts[key].value.items) if key in was.parts else {})

        for name in gone:
            items_of(_home(name, was)).pop(name, None)
        for name, value in new.items():
            items_of(_home(name, was) or self._room(within, name, value, was, sizes))[name] = value
        now = dict(was.parts)
        for key, items in wanted.items():
            self._write_part(state, key, items, now, full=sizes.get(key, 0) >= FULL)
        return now

    def add(self, state: State, within: str, values: Mapping[str, V]) -> None:
        """Write these names besides what there is. Whoever was faster makes it start again from what that one wrote."""
        while values:
            was = self.read(state, within)
            try:
                self.write(state, within, was, {**was.values, **values})
            except Conflict:
                continue
            return

    def _room(self, within: str, name: str, value: V, was: ReadParts[V], sizes: dict[str, int]) -> str:
        """The first part on a name's way that still takes names; ``sizes`` counts what this write adds to each."""
        size = len(msgspec.json.encode({name: value}))
        for part in way(name):
            key = f"{within}/{part}"
            old = was.parts.get(key)
            if old is not None and old.value.full:
                continue
            if key not in sizes:
                sizes[key] = len(msgspec.json.encode(old.value)) if old is not None else 0
            if sizes[key] < FULL:
                sizes[key] += size
                return key
        raise AssertionError("a hash has more digits than there are names")

    def _write_part(
        self, state: State, key: str, items: dict[str, V], now: dict[str, Entry[Part[V]]], *, full: bool
    ) -> None:
        old = now.get(key)
        if old is not None and items == old.value.items:
            return
        version, was_full = (old.version, old.value.full) if old is not None else (ABSENT, False)
        if not items and not was_full:
            self.table.delete(state, key, if_version=version)
            del now[key]
            return
        part = self._kind(items=items, full=full or was_full)
        now[key] = Entry(key, self.table.put(state, key, part, if_version=version), part)


def _home(name: str, was: ReadParts[V]) -> str:
    """The part that a name lies in, empty where there is none."""
    return next((key for key, entry in was.parts.items() if name in entry.value.items), "")


def way(name: str, root: str = ROOT) -> Iterable[str]:
    """The parts in which a name may lie, from the root downwards."""
    digits = f"{zlib.crc32(name.encode()):08x}"
    return (root + digits[:depth] for depth in range(len(digits) + 1))
