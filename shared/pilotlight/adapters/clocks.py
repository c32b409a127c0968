"""Clocks: the wall's, and a served world's."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.adapters.world_client import WorldClient
    from pilotlight.codec.world_wire import Time


class SystemClock:
    """The machine's time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def stopwatch(self) -> Callable[[], Seconds]:
        """The larger of boot time and wall time passed: a frozen process has no monotonic clock."""
        boot_s, wall_s = _boot_s(), time.time()
        return lambda: max(_boot_s() - boot_s, time.time() - wall_s)


ASKED = 5
"""So many times a world that runs by itself is asked: the answer that was back first tells its time best."""


class ServedClock:
    """A served world's clock. A world that runs by itself is asked at first use: from then on it is reckoned.

    At 60 times the wall's speed an answer that takes 100 ms is six seconds old. So the shortest of a few exchanges
    counts, and the world's time is taken for that of its middle.
    """

    def __init__(self, client: "WorldClient") -> None:
        self._client = client
        self._asked: tuple[datetime, float, float] | None = None

    def now(self) -> datetime:
        if self._asked is None:
            told, at_s, took_s = self._ask()
            if not told.speed:
                return told.now
            for _ in range(ASKED - 1):
                told, at_s, took_s = min((told, at_s, took_s), self._ask(), key=lambda answer: answer[2])
            self._asked = (told.now, told.speed, at_s)
        then, speed, at_s = self._asked
        return then + timedelta(seconds=(time.monotonic() - at_s) * speed)

    def _ask(self) -> "tuple[Time, Seconds, Seconds]":
        """What the world tells, at the middle of the exchange, and how long that took."""
        sent_s = time.monotonic()
        told = self._client.time()
        took_s = time.monotonic() - sent_s
        return told, sent_s + took_s / 2, took_s

    def stopwatch(self) -> Callable[[], Seconds]:
        """In seconds of the wall's where the world runs by itself: a process stands still in those."""
        began = self.now()
        if self._asked is None:
            return lambda: (self.now() - began).total_seconds()
        return SystemClock().stopwatch()


def _boot_s() -> Seconds:
    """Seconds of this machine's life, those it slept among them; where they are not told, those it was awake."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()
