"""Clocks: the wall's, a stopped one, and a served world's."""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilotlight.adapters.world_client import WorldClient


class SystemClock:
    """The machine's time."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class StoppedClock:
    """One moment, for looking at what was written down then."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def now(self) -> datetime:
        return self._moment


class ServedClock:
    """A served world's clock. A world that runs by itself is asked once: from then on it is reckoned."""

    def __init__(self, client: "WorldClient") -> None:
        self._client = client
        self._asked: tuple[datetime, float, float] | None = None

    def now(self) -> datetime:
        if self._asked is None:
            told = self._client.time()
            if not told.speed:
                return told.now
            self._asked = (told.now, told.speed, time.monotonic())
        then, speed, at_s = self._asked
        return then + timedelta(seconds=(time.monotonic() - at_s) * speed)
