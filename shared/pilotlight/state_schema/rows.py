"""Values with more rows than one record holds: they lie in as many records as their rows take.

The first record has the value's own name, and says how many ``parts`` follow it under a ``stamp`` of what is in them.
Those are written first, and the first record is changed by compare-and-set: so readers see the old value or the new
one, never some of both.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from pilotlight.errors import Conflict
from pilotlight.ports.state import ABSENT, LARGEST, State
from pilotlight.state_schema.table import Entry, Table

T = TypeVar("T", bound=msgspec.Struct)

FURTHER = "/+"
"""Between a value's name and the stamp of its further records: before any letter or digit in order."""


class Rows(Generic[T]):
    """A family whose values have rows in one field, and the fields ``parts`` and ``stamp``."""

    def __init__(self, table: Table[T], field: str) -> None:
        self.table, self._field = table, field

    def write(self, state: State, name: str, value: T, *, if_version: int | None = None) -> None:
        """Write a value; nothing where it is there already. Whoever was faster is written over.

        With ``if_version`` it raises ``Conflict`` instead where the first record is another; what followed the one
        before ends by its time to live.
        """
        head, *further = self._records(value)
        for number, part in enumerate(further):
            self.table.put(state, _further(name, head, number), part)
        if if_version is not None:
            self.table.put(state, name, head, if_version=if_version)
            return
        while True:
            before = self.table.get(state, name)
            if before is not None and before.value == head:
                return
            try:
                self.table.put(state, name, head, if_version=before.version if before else ABSENT)
            except Conflict:
                continue
            if before is not None and _stamp(before.value) != _stamp(head):
                self._delete_further(state, name, before.value)
            return

    def delete(self, state: State, name: str) -> None:
        """Delete a value with all its records."""
        there = self.table.get(state, name)
        self.table.delete(state, name)
        if there is not None:
            self._delete_further(state, name, there.value)

    def scan(self, state: State, within: str, *, after: str = "") -> Iterator[Entry[T]]:
        """Every whole value, as ``Table.scan``. One of which a record is missing does not come."""
        head: Entry[T] | None = None
        rows: list[Any] = []
        left = 0
        for entry in self.table.scan(state, within, after=after):
            name, further, rest = entry.name.partition(FURTHER)
            if not further:
                if head is not None and not left:
                    yield self._whole(head, rows)
                head, rows, left = entry, list(self._rows(entry.value)), _parts(entry.value)
            elif head is not None and name == head.name and rest.startswith(f"{_stamp(head.value)}/"):
                rows += self._rows(entry.value)
                left -= 1
        if head is not None and not left:
            yield self._whole(head, rows)

    def _records(self, value: T) -> list[T]:
        written = self.table.format.write(value)
        if len(written) <= LARGEST:
            return [value]
        rows = self._rows(value)
        each = max(1, len(rows) * (LARGEST // 2) // len(written))
        chunks = [rows[n : n + each] for n in range(0, len(rows), each)]
        stamp = hashlib.blake2b(written, digest_size=8).hexdigest()
        head = self._with(value, chunks[0], parts=len(chunks) - 1, stamp=stamp)
        return [head, *(self._with(value, chunk) for chunk in chunks[1:])]

    def _whole(self, head: Entry[T], rows: list[Any]) -> Entry[T]:
        return head._replace(value=self._with(head.value, tuple(rows))) if _parts(head.value) else head

    def _with(self, value: T, rows: tuple[Any, ...], *, parts: int = 0, stamp: str = "") -> T:
        return msgspec.structs.replace(value, **{self._field: rows}, parts=parts, stamp=stamp)

    def _rows(self, value: T) -> tuple[Any, ...]:
        rows: tuple[Any, ...] = getattr(value, self._field)
        return rows

    def _delete_further(self, state: State, name: str, head: T) -> None:
        for number in range(_parts(head)):
            self.table.delete(state, _further(name, head, number))


def _further(name: str, head: msgspec.Struct, number: int) -> str:
    return f"{name}{FURTHER}{_stamp(head)}/{number:04d}"


def _parts(value: msgspec.Struct) -> int:
    parts: int = getattr(value, "parts")  # noqa: B009
    return parts


def _stamp(value: msgspec.Struct) -> str:
    stamp: str = getattr(value, "stamp")  # noqa: B009
    return stamp
