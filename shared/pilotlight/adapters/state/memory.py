"""State in this process, for replays and tests."""

from bisect import bisect_left, bisect_right, insort
from datetime import datetime
from itertools import count
from threading import Lock
from typing import ClassVar, NamedTuple

from pilotlight.adapters.state import too_large
from pilotlight.errors import Conflict
from pilotlight.ports.state import ABSENT, LARGEST, Clock, Page, Stored
from pilotlight.units import Seconds, clock_seconds


class _Entry(NamedTuple):
    stored: Stored
    expires: Seconds | None


class MemoryState:
    """Keys in order beside a dict; versions count up over the whole store, so that none comes twice."""

    roomy: ClassVar = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._keys: list[str] = []
        self._versions = count(ABSENT + 1)
        self._lock = Lock()

    def now(self) -> datetime:
        return self._clock.now()

    def get(self, key: str) -> Stored | None:
        entry = self._entries.get(key)
        return entry.stored if entry is not None and self._live(entry) else None

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        if len(value) > LARGEST and not self.roomy:
            raise too_large(key, value)
        expires = None if ttl_s is None else clock_seconds(self._clock.now()) + ttl_s
        with self._lock:
            self._expect(key, if_version)
            if key not in self._entries:
                insort(self._keys, key)
            version = next(self._versions)
            self._entries[key] = _Entry(Stored(bytes(value), version), expires)
        return version

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        with self._lock:
            self._expect(key, if_version)
            if self._entries.pop(key, None) is not None:
                del self._keys[bisect_left(self._keys, key)]

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        with self._lock:
            start = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
            found: list[tuple[str, Stored]] = []
            for index in range(start, len(self._keys)):  # Not islice: it walks all that comes before.
                key = self._keys[index]
                if not key.startswith(prefix):
                    break
                entry = self._entries[key]
                if not self._live(entry):
                    continue
                if len(found) == limit:
                    return Page(found, found[-1][0])
                found.append((key, entry.stored))
        return Page(found, "")

    def _expect(self, key: str, if_version: int | None) -> None:
        if if_version is None:
            return
        current = self.get(key)
        if (current.version if current else ABSENT) != if_version:
            raise Conflict(f"state {key}: another version is there")

    def _live(self, entry: _Entry) -> bool:
        return entry.expires is None or entry.expires > clock_seconds(self._clock.now())


class RoomyState(MemoryState):
    """Takes records of any size, and none is squeezed for it: a replay writes hundreds a second."""

    roomy = True
