"""A family of keys: what its keys begin with, how its records are written, and how long one is kept.

::

    FENCE = Table("fence", Format(Fence))
    found = FENCE.get(state, cluster)            # Entry(name="c", version=7, value=Fence(fence=3)), or None
    FENCE.put(state, cluster, Fence(fence=4), if_version=found.version)

A name is a key without its family: ``decision/c/17`` is the name ``c/17`` in ``decision``.
"""

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from pilotlight.codec.records import Format
from pilotlight.errors import Conflict
from pilotlight.ports import ABSENT, State, Stored
from pilotlight.units import Seconds

T = TypeVar("T", bound=msgspec.Struct)


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
        """What is there under a name. Raises ``Corrupt`` where it cannot be read."""
        stored = state.get(self.key(name))
        return self._entry(self.key(name), stored) if stored is not None else None

    def put(
        self, state: State, name: str, value: T, *, if_version: int | None = None, ttl_s: Seconds | None = None
    ) -> int:
        """Write, and return the version. ``ttl_s`` is kept for this record instead of the family's.

        Raises ``Conflict`` where ``if_version`` is not what is there (``ABSENT``: nothing).
        """
        keep_s = self.ttl_s if ttl_s is None else ttl_s
        return state.put(self.key(name), self.format.write(value), if_version=if_version, ttl_s=keep_s)

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
        for key, stored in pages(state, self.key(within), self.key(after) if after else ""):
            yield self._entry(key, stored)

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
