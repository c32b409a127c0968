"""A store as a value: what a call makes of it is another one. Versions count by key, and go on over a deletion, so that
none comes twice."""

from collections.abc import Mapping
from copy import copy
from hashlib import blake2b
from typing import Any, NamedTuple

from orders.scenes import Request
from pilotlight.errors import Conflict, PilotlightError
from pilotlight.ports.state import ABSENT, Page, Stored
from pilotlight.units import Seconds


class Raised(NamedTuple):
    """What a call raised."""

    error: PilotlightError

    def again(self) -> PilotlightError:
        """The same error, with a traceback of its own."""
        return copy(self.error)

    def __repr__(self) -> str:
        return f"raises {type(self.error).__name__}: {self.error}"


class Entry(NamedTuple):
    """A value of the store; ``ends_s`` is when it expires, in seconds of the world."""

    value: bytes
    version: int
    ends_s: Seconds | None


class Store:
    """A store as a value. ``digest`` is the same for two stores that hold the same."""

    __slots__ = ("_counts", "_entries", "digest")

    def __init__(self, entries: Mapping[str, Entry], counts: Mapping[str, int], digest: int) -> None:
        self._entries, self._counts, self.digest = entries, counts, digest

    def ask(self, request: Request, now_s: Seconds) -> tuple[Any, "Store"]:
        """What a call answers, and the store after it."""
        _, method, *rest = request
        match method:
            case "get":
                found = self._entries.get(rest[0])
                return (None if found is None else Stored(found.value, found.version)), self
            case "scan":
                return self._page(*rest), self
            case "put":
                key, value, if_version, ttl_s = rest
                return self._put(key, Entry(value, 0, None if ttl_s is None else now_s + ttl_s), if_version)
        return self._delete(*rest)

    def at(self, now_s: Seconds) -> "Store":
        """The store without what has expired by then."""
        gone = {key for key, entry in self._entries.items() if entry.ends_s is not None and entry.ends_s <= now_s}
        if not gone:
            return self
        left = {key: entry for key, entry in self._entries.items() if key not in gone}
        digest = self.digest
        for key in gone:
            digest ^= mark((key, self._entries[key]))
        return Store(left, self._counts, digest)

    def renumbered(self) -> "Store":
        """The same entries as versions that nobody has read: for a moment at which no worker is at work."""
        entries = {key: entry._replace(version=1) for key, entry in self._entries.items()}
        digest = 0
        for row in entries.items():
            digest ^= mark(row)
        return Store(entries, dict.fromkeys(entries, 1), digest)

    def rows(self, prefix: str) -> list[tuple[str, bytes]]:
        """Every entry whose key begins so."""
        return [(key, self._entries[key].value) for key in sorted(self._entries) if key.startswith(prefix)]

    def _page(self, prefix: str, after: str, limit: int) -> Page:
        keys = sorted(key for key in self._entries if key.startswith(prefix) and key > after)
        found = [(key, Stored(self._entries[key].value, self._entries[key].version)) for key in keys[:limit]]
        return Page(found, found[-1][0] if len(keys) > limit else "")

    def _put(self, key: str, new: Entry, if_version: int | None) -> tuple[Any, "Store"]:
        before = self._entries.get(key)
        if self._differs(before, if_version):
            return Raised(Conflict(f"state {key}: another version is there")), self
        entry = new._replace(version=self._counts.get(key, ABSENT) + 1)
        entries = {**self._entries, key: entry}
        return entry.version, self._with(entries, key, entry.version, before, mark((key, entry)))

    def _delete(self, key: str, if_version: int | None) -> tuple[Any, "Store"]:
        before = self._entries.get(key)
        if self._differs(before, if_version):
            return Raised(Conflict(f"state {key}: another version is there")), self
        if before is None:
            return None, self
        entries = {name: entry for name, entry in self._entries.items() if name != key}
        return None, self._with(entries, key, self._counts[key], before, 0)

    def _with(self, entries: Mapping[str, Entry], key: str, version: int, before: Entry | None, new: int) -> "Store":
        counts, digest = self._counts, self.digest ^ new
        if before is not None:
            digest ^= mark((key, before))
        if counts.get(key) != version:
            digest ^= mark((key, version)) ^ (mark((key, counts[key])) if key in counts else 0)
            counts = {**counts, key: version}
        return Store(entries, counts, digest)

    @staticmethod
    def _differs(found: Entry | None, if_version: int | None) -> bool:
        return if_version is not None and (found.version if found else ABSENT) != if_version


def mark(value: object) -> int:
    """A number of 128 bits that two different values do not share."""
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=16).digest())
