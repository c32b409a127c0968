"""The store's own time, as its answers tell it: so that no two workers' wall clocks have to agree.

Each answer says the store's time at some moment between its request and itself. From there the time is carried on by
the clock that counts since the machine's boot, also while it sleeps (on Linux), never by the wall's.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock

from pilotlight.errors import Unavailable
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds

FRESH_S: Seconds = 60.0
"""An answer that is older is not carried on: the store is asked again."""


def since_boot_s() -> Seconds:
    """Seconds that the machine has been up; off Linux those that it was awake."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class StoreTime:
    """Time of the store now. ``ask`` makes a request whose answer is ``told``; ``coarse_s`` is by how much the store
    rounds down. On a ``clock`` that was given, as a world's, that one rules."""

    def __init__(self, clock: Clock | None, ask: Callable[[], object], *, coarse_s: Seconds = 0.0) -> None:
        self._clock, self._ask, self._coarse_s = clock, ask, coarse_s
        self._told: tuple[datetime, Seconds, Seconds] | None = None
        self._lock = Lock()

    def now(self) -> datetime:
        """The store's time. Raises what asking raises, where no answer is fresh."""
        if self._clock is not None:
            return self._clock.now()
        if not self._fresh():
            self._ask()
        return self._carried(since_boot_s())

    def learn(self, store: datetime, sent_s: Seconds) -> None:
        """An answer to a request sent at ``sent_s`` since boot says it is ``store``.

        What was carried on stays as it is, as far as the answer allows it: a clock that rounds to seconds is known
        ever better.
        """
        if self._clock is not None:
            return
        here_s = since_boot_s()
        latest = store + timedelta(seconds=self._coarse_s + here_s - sent_s)
        with self._lock:
            known = self._carried(here_s) if self._told is not None else store
            self._told = min(max(known, store), latest), here_s, time.time()

    def _fresh(self) -> bool:
        # A frozen process may have missed time that only the wall's clock counted: then the store is asked again.
        if self._told is None:
            return False
        _, at_s, wall_s = self._told
        return max(since_boot_s() - at_s, abs(time.time() - wall_s)) < FRESH_S

    def _carried(self, here_s: Seconds) -> datetime:
        if self._told is None:
            raise Unavailable("the store does not tell its time")
        then, at_s, _ = self._told
        return then + timedelta(seconds=here_s - at_s)
