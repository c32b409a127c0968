"""A state that counts what is asked of it: for the figures, and for nothing else."""

from collections import Counter
from datetime import datetime
from threading import Lock

from pilotlight.errors import Conflict
from pilotlight.ports.state import KnowsLooks, Page, State, Stored
from pilotlight.units import Seconds


class CountedState:
    """The state given, with a count of ``read``, ``scan`` (a page each), ``write`` and ``conflict``."""

    def __init__(self, state: State) -> None:
        self.inner, self._counts, self._lock = state, Counter[str](), Lock()
        self._looks: dict[str, datetime] = {}

    def operations(self) -> dict[str, int]:
        """Number of operations of each kind since this was last asked."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return dict(counts)

    def last_look(self, cluster: str) -> datetime | None:
        """As this process remembers it, or the state tells beside its records: the later one."""
        told = self.inner.last_look(cluster) if isinstance(self.inner, KnowsLooks) else None
        return max(filter(None, (told, self._looks.get(cluster))), default=None)

    def note_look(self, cluster: str, at: datetime) -> None:
        """Remember it for the life of this process, and wherever the state does."""
        self._looks[cluster] = at
        if isinstance(self.inner, KnowsLooks):
            self.inner.note_look(cluster, at)

    def now(self) -> datetime:
        """The store's own time."""
        return self.inner.now()

    def get(self, key: str) -> Stored | None:
        """As the state does."""
        self._count("read")
        return self.inner.get(key)

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """As the state does."""
        self._count("write")
        try:
            return self.inner.put(key, value, if_version=if_version, ttl_s=ttl_s)
        except Conflict:
            self._count("conflict")
            raise

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        """As the state does."""
        self._count("write")
        try:
            self.inner.delete(key, if_version=if_version)
        except Conflict:
            self._count("conflict")
            raise

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        """As the state does."""
        self._count("scan")
        return self.inner.scan(prefix, after=after, limit=limit)

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1
