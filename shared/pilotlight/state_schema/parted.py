"""A mapping that is too large for one record: it lies in parts, by a hash of each name.

It is read by one scan, and only the parts that changed are written, each over the version that was read::

    idle = IDLE.read(state, cluster)
    IDLE.write(state, cluster, idle, {**idle.values, "node-1": now})
"""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from pilotlight.ports import ABSENT, State
from pilotlight.state_schema.table import Entry, Table

V = TypeVar("V")


class Part(msgspec.Struct, Generic[V], frozen=True, kw_only=True):
    """The names of one part. A family has a kind of its own: ``class IdlePart(Part[datetime], frozen=True)``."""

    items: dict[str, V]


class Spread(NamedTuple, Generic[V]):
    """All parts as they were read: the values by name, and each part with its version."""

    values: Mapping[str, V]
    parts: Mapping[str, Entry[Part[V]]]


class Parted(Generic[V]):
    """A family whose key is ``<prefix>/<within>/<part>``. With another number of parts names move at
    the next write."""

    def __init__(self, table: Table[Part[V]], kind: type[Part[V]], parts: int) -> None:
        self.table, self.parts = table, parts
        self._kind = kind

    def read(self, state: State, within: str) -> Spread[V]:
        """What all parts hold. A name that lies in two parts has the value of the part it belongs to."""
        found = {entry.name: entry for entry in self.table.scan(state, f"{within}/")}
        values: dict[str, V] = {}
        for key, entry in found.items():
            values |= {n: v for n, v in entry.value.items.items() if n not in values or self._name(within, n) == key}
        return Spread(values, found)

    def write(self, state: State, within: str, was: Spread[V], values: Mapping[str, V]) -> Spread[V]:
        """Make ``values`` all that there is, over what was read. A part without names is deleted.

        Raises ``Conflict`` where another has written one of the changed parts meanwhile: read again. Parts before that
        one are written then; each holds what it should.
        """
        wanted: dict[str, dict[str, V]] = {}
        for name, value in values.items():
            wanted.setdefault(self._name(within, name), {})[name] = value
        now = dict(was.parts)
        # Parts that go come last: a crash in between loses no name that moved out of them.
        for key in sorted(wanted.keys() | was.parts.keys(), key=lambda key: (key not in wanted, key)):
            self._write_part(state, key, wanted.get(key, {}), now)
        return Spread(dict(values), now)

    def _write_part(self, state: State, key: str, items: dict[str, V], now: dict[str, Entry[Part[V]]]) -> None:
        old = now.get(key)
        if old is not None and items == old.value.items:
            return
        version = old.version if old is not None else ABSENT
        if not items:
            self.table.delete(state, key, if_version=version)
            del now[key]
            return
        part = self._kind(items=items)
        now[key] = Entry(key, self.table.put(state, key, part, if_version=version), part)

    def _name(self, within: str, name: str) -> str:
        return f"{within}/{crc32(name.encode()) % self.parts:03d}"
