"""Time and state as the flows see them: the clock, and the key-value store with compare-and-set.

Errors are those of ``errors.py``: ``Retry`` kinds when asking again can help, ``Denied`` kinds when it cannot."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable

from pilotlight.units import Seconds


class Clock(Protocol):
    """The time."""

    def now(self) -> datetime:
        """The aware UTC moment."""
        ...

    def stopwatch(self) -> Callable[[], Seconds]:
        """A watch that begins now: how long it has run, also while this process or its machine stood still."""
        ...


@runtime_checkable
class CountsOperations(Protocol):
    """A state that counts what is asked of it."""

    def operations(self) -> Mapping[str, int]:
        """Number of each kind since this was last asked."""
        ...


@runtime_checkable
class KnowsLooks(Protocol):
    """A state that knows beside its records when each cluster was last looked at: a restored backup does not bring that
    back."""

    def last_look(self, cluster: str) -> datetime | None:
        """When a look last began; None where that is not known."""
        ...

    def note_look(self, cluster: str, at: datetime) -> None:
        """A look begins."""
        ...


class Stored(NamedTuple):
    """A value and the version that a compare-and-set names."""

    value: bytes
    version: int


ABSENT = 0
"""As ``if_version``: only when there is no such key."""

LARGEST = 300 * 1024
"""Bytes of the largest value: below what every backend takes (DynamoDB items end at 400 KB)."""


class Page(NamedTuple):
    """A part of a scan: keys in order, and the key to go on after, or empty at the end."""

    items: Sequence[tuple[str, Stored]]
    next: str


class State(Protocol):
    """A small key-value store with compare-and-set. Keys are paths with ``/``; values up to 300 KB.

    An expired key is absent, even where the backend has not deleted it yet. That is judged by the store's own time.
    """

    def now(self) -> datetime:
        """The store's own time, the same for all its workers whatever their clocks say."""
        ...

    def get(self, key: str) -> Stored | None:
        """The value with its version, or None."""
        ...

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """Write, and return the new version.

        ``if_version`` None writes whatever is there, ``ABSENT`` only where nothing is, else only over that version;
        otherwise raises ``Conflict``. Larger than 300 KB raises ``BadInput``. No ``ttl_s`` keeps it for ever.
        """
        ...

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        """Delete. Absent is no error without ``if_version``; with it, another version raises ``Conflict``."""
        ...

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        """Live keys that begin with ``prefix`` and are greater than ``after``, in order, at most ``limit``."""
        ...
