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
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

import msgspec

from pilotlight import typed_json
from pilotlight.errors import Conflict, Corrupt
from pilotlight.ports.state import ABSENT, State, Stored
from pilotlight.units import Seconds

T = TypeVar("T", bound=msgspec.Struct)
V = TypeVar("V")

FULL = 32 * 1024
"""Bytes from which on a part takes no new names. What it has may grow to nearly ten times that."""

ROOT = "x"

PLAIN = 1024
"""Bytes up to which a record is stored as it reads. A longer one of a squeezed format is a zlib stream."""

MOST_KEPT = 1024
"""Of so many records of a kind what they hold is kept, in a process that lives on."""

_fields = typed_json.decoder(dict[str, msgspec.Raw])


class Format(Generic[T]):
    """The way one kind of record is written. A record of another schema is refused, and left as it is."""

    def __init__(self, kind: type[T], schema: int = 1, *, squeezed: bool = False) -> None:
        self.kind = kind
        self.schema = schema
        self._squeezed = squeezed
        self._decoder = typed_json.decoder(kind)
        self._head = b'{"schema":%d' % schema
        self._known = {*kind.__struct_encode_fields__, "schema"}
        self._last: dict[str, tuple[bytes, T]] = {}
        self._written: tuple[T, bytes] | None = None

    def write(self, value: T, key: str = "") -> bytes:
        """The record of a value. One of which the size was looked at is not encoded again.

        Where a record of ``key`` was read before, its next reader has the value at hand.
        """
        written = self._written
        if written is not None and written[0] is value:
            record = written[1]
        else:
            fields = msgspec.json.encode(value)
            record = self._head + (fields[1:] if fields == b"{}" else b"," + fields[1:])
            if self._squeezed and len(record) > PLAIN:
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
        return state.put(key, self.format.write(value, key), if_version=if_version, ttl_s=keep_s)

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
