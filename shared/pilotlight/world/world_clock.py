"""Two clocks for the world: one that moves when told to, and one that runs beside the wall's."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from pilotlight.units import Seconds


class WorldClock(Protocol):
    """A Clock that also counts seconds since the world began.

    ``speed`` is its seconds per second of the wall's: 0 where it moves only when told to.
    """

    start: datetime
    speed: float

    def now(self) -> datetime:
        """The aware UTC moment."""
        ...

    def elapsed_s(self) -> Seconds:
        """Seconds since ``start``."""
        ...

    def stopwatch(self) -> Callable[[], Seconds]:
        """A watch that begins now."""
        ...


class VirtualClock:
    """Stands still until ``advance``; never goes back."""

    def __init__(self, start: datetime) -> None:
        self.start = start
        self.speed = 0.0
        self._elapsed_s: Seconds = 0.0
        self._now = start

    def now(self) -> datetime:
        return self._now

    def elapsed_s(self) -> Seconds:
        return self._elapsed_s

    def stopwatch(self) -> Callable[[], Seconds]:
        began_s = self._elapsed_s
        return lambda: self._elapsed_s - began_s

    def advance(self, to_s: Seconds) -> None:
        """Move to ``to_s`` seconds after the start; an earlier moment changes nothing."""
        if to_s > self._elapsed_s:
            self._elapsed_s = to_s
            self._now = self.start + timedelta(seconds=to_s)


class WallClock:
    """Begins at ``start`` and runs ``speed`` times as fast as the wall's clock."""

    def __init__(self, start: datetime, speed: float = 1.0) -> None:
        self.start = start
        self.speed = speed
        self._began = time.monotonic()

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.elapsed_s())

    def elapsed_s(self) -> Seconds:
        return (time.monotonic() - self._began) * self.speed

    def stopwatch(self) -> Callable[[], Seconds]:
        """In seconds of the wall's: a process stands still in those, however fast the world runs."""
        began_s = time.monotonic()
        return lambda: time.monotonic() - began_s
