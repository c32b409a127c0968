"""A family of keys: what its keys begin with, how its records are written and read, and how long one is kept.

::

    FENCE = Table("fence", Format(Fence))
    found = FENCE.get(state, cluster)            # Entry(name="c", version=7, value=Fence(fence=3)), or None
    FENCE.put(state, cluster, Fence(fence=4), if_version=found.version)

A name is a key without its family: ``decision/c/17`` is the name ``c/17`` in ``decision``. A record is one JSON object
with the schema it was written under: ``{"schema": 1, "fence": 7}``. A field that is added with a default needs no new
schema: older code refuses the record for its unknown field, rather than dropping the field when it writes. A field that
is renamed, removed or means something else needs a new one. Long records of a squeezed family are zlib streams of that
JSON.
"""

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import msgspec

from pilotlight import typed_json
from pilotlight.errors import Conflict, Corrupt
from pilotlight.ports.state import ABSENT, State, Stored
from pilotlight.units import Seconds

T = TypeVar("T", bound=msgspec.Struct)
V = TypeVar("V")

PLAIN = 1024
"""Bytes up to which a record is stored as it reads. A longer one of a squeezed format is a zlib stream."""

PLACES = 16
"""Records of a packed family within one cluster: of 20,000 holds 1,250 are in each."""

MOST_KEPT = 1024
"""Of so many records of a kind what they hold is kept, in a process that lives on."""

_fields = typed_json.decoder(dict[str, msgspec.Raw])


class Format(Generic[T]):
    """The way one kind of record is written. A record of another schema is refused, and left as it is."""

    def __init__(self, kind: type[T], schema: int = 1, *, squeezed: bool = False) -> None:
        self.kind = kind
        self.schema = schema
        self._squeezed = squeezed
        self._head = b'{"schema":%d' % schema
        self._known = {*kind.__struct_encode_fields__, "schema"}
        self._last: dict[str, tuple[bytes, T]] = {}
        self._written: tuple[T, bytes] | None = None

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[T]:
        """Made at the first record: a start pays for no family that it does not read."""
        return typed_json.decoder(self.kind)

    def write(self, value: T, key: str = "", *, squeeze: bool = True) -> bytes:
        """The record of a value. One of which the size was looked at is not encoded again.

        Where a record of ``key`` was read before, its next reader has the value at hand.
        """
        written = self._written
        if written is not None and written[0] is value:
            record = written[1]
        else:
            fields = msgspec.json.encode(value)
            record = self._head + (fields[1:] if fields == b"{}" else b"," + fields[1:])
            if squeeze and self._squeezed and len(record) > PLAIN:
                record = zlib.compress(record, 1)
            self._written = value, record
        if key in self._last:
            self._last[key] = record, value
        return record

    def read(self, key: str, record: bytes) -> T:
        """The value of a record. Raises ``Corrupt``, which names the key.

        A record that reads as it did the last time is not decoded again: values are frozen, most records of a look old.
        """
        last = self._last.get(key)
        if last is not None and last[0] == record:
            return last[1]
        value = self._decoded(key, record)
        if len(self._last) >= MOST_KEPT:
            self._last.clear()
        self._last[key] = record, value
        return value

    def _decoded(self, key: str, record: bytes) -> T:
        try:
            record = plain(record)
            fields = _fields.decode(record)
            schema = bytes(fields.get("schema", b"")).decode()
            if schema != str(self.schema):
                raise Corrupt(
                    f"state {key}: written under {f'schema {schema}' if schema else 'no schema'}, and this Pilotlight "
                    f"reads schema {self.schema}: use the version that wrote it; the record is left as it is"
                )
            if unknown := sorted(fields.keys() - self._known):
                raise _unreadable(key, f"has the field {unknown[0]!r}, which no {self.kind.__name__.strip('_')} has")
            return self._decoder.decode(record)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, zlib.error) as error:
            raise _unreadable(key, str(error)) from None


def plain(record: bytes) -> bytes:
    """The JSON of a record, squeezed or not. Raises ``zlib.error``."""
    return zlib.decompress(record) if record[:1] == b"x" else record


def _unreadable(key: str, why: str) -> Corrupt:
    return Corrupt(
        f"state {key}: cannot be read: {why}; it is left as it is: look with `pilotlight state get {key}`, "
        "mend it with `pilotlight state import --replace`"
    )


class Entry(NamedTuple, Generic[T]):
    """A value with its name, and the version that a compare-and-set names."""

    name: str
    version: int
    value: T


class Table(Generic[T]):
    """One family. ``ttl_s`` is how long a record is kept from its last write; None is for ever."""

    def __init__(self, prefix: str, format: Format[T], ttl_s: Seconds | None = None) -> None:
        self.prefix, self.format, self.ttl_s = prefix, format, ttl_s

    def key(self, name: str) -> str:
        """The key of a name."""
        return f"{self.prefix}/{name}"

    def get(self, state: State, name: str) -> Entry[T] | None:
        """Entry under a name, if there is one. Raises ``Corrupt`` where it cannot be read."""
        stored = state.get(self.key(name))
        return self._entry(self.key(name), stored) if stored is not None else None

    def put(
        self, state: State, name: str, value: T, *, if_version: int | None = None, ttl_s: Seconds | None = None
    ) -> int:
        """Write, and return the version. ``ttl_s`` is kept for this record instead of the family's.

        Raises ``Conflict`` where ``if_version`` is not what is there (``ABSENT``: nothing).
        """
        keep_s = self.ttl_s if ttl_s is None else ttl_s
        key = self.key(name)
        record = self.format.write(value, key, squeeze=not getattr(type(state), "roomy", False))
        return state.put(key, record, if_version=if_version, ttl_s=keep_s)

    def delete(self, state: State, name: str, *, if_version: int | None = None) -> None:
        """Delete. Absent is no error without ``if_version``; with it, another version raises ``Conflict``."""
        state.delete(self.key(name), if_version=if_version)

    def change(self, state: State, name: str, update: Callable[[T | None], T]) -> T:
        """Write what ``update`` makes of what is there, by compare-and-set; nothing where that is the same.

        Whoever was faster makes it start again from what that one wrote: each loss is another's win.
        """
        while True:
            found = self.get(state, name)
            was, version = (found.value, found.version) if found else (None, ABSENT)
            value = update(was)
            try:
                if value != was:
                    self.put(state, name, value, if_version=version)
            except Conflict:
                continue
            return value

    def scan(self, state: State, within: str = "", *, after: str = "") -> Iterator[Entry[T]]:
        """Every entry whose name begins with ``within``, in order, from the first name greater than ``after``."""
        read, cut = self.format.read, len(self.prefix) + 1
        for key, stored in pages(state, self.key(within), self.key(after) if after else ""):
            yield Entry(key[cut:], stored.version, read(key, stored.value))

    def _entry(self, key: str, stored: Stored) -> Entry[T]:
        return Entry(key[len(self.prefix) + 1 :], stored.version, self.format.read(key, stored.value))


def pages(state: State, prefix: str, after: str = "") -> Iterator[tuple[str, Stored]]:
    """Every live key that begins with a prefix, in order, one page of the store after another."""
    while True:
        page = state.scan(prefix, after=after)
        yield from page.items
        if not page.next:
            return
        after = page.next


class Part(msgspec.Struct, Generic[V], frozen=True, kw_only=True):
    """The names of one part. A family has a kind of its own: ``class IdlePart(Part[datetime], frozen=True)``."""

    items: dict[str, V]
    full: bool = False


class Kept(NamedTuple, Generic[T]):
    """A value with its name, and what the store said of it (``was``; None: nothing)."""

    name: str
    was: T | None
    value: T


class Packed(Generic[T]):
    """A family whose records lie together, some hundred in one: a look at 1,000 of them reads and writes a few.

    Its keys are ``<prefix>/<within>/<place>``, its names ``<within>/<name>``. Each value is changed by compare-and-set
    as if it lay alone: over what it said when it was read. Its place goes by its name's hash for ever, so that two
    writers never put one name into two places.

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
        places: defaultdict[str, dict[str, tuple[T | None, T | None]]] = defaultdict(dict)
        for name, change in changes.items():
            places[_place(within, name)][name] = change
        known = {part.name: part for part in self.table.scan(state, f"{within}/")} if len(places) > 1 else {}
        lost: set[str] = set()
        for place, own in sorted(places.items()):
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
    return f"{within}/{zlib.crc32(own.encode()) % PLACES:02d}"
