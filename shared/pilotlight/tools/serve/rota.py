"""Rota of a served deployment's ticks: which of many clusters is due, the longest waiting first, by a crew of threads.

Each worker keeps one. It asks nobody before a turn is due, so a hundred clusters cost a worker one thread that looks.
A turn that takes long, as of a cluster that hangs, is left to itself: it holds no hand of the crew for longer than
``SLOW_S``, and is not begun again before it is over.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Lock, Thread
from typing import Literal, NamedTuple

from pilotlight.errors import PilotlightError
from pilotlight.units import Seconds

CREW = 8
"""Turns of a worker at once, those left to themselves apart: more of them gain nothing from one interpreter."""

SLOW_S: Seconds = 5.0
"""A turn that takes longer waits for its cluster, its cloud or nodes on their way; another takes its place."""

AGAIN = timedelta(seconds=0.5)
"""A turn that failed is due again so much later, and one whose interval is shorter."""

Ticked = Literal["reconcile", "billing", "bills"]


class Turn(NamedTuple):
    """A tick of a cluster."""

    cluster: str
    what: Ticked


class Rota:
    """Turns, each due for the first time at once. ``take`` takes one and returns when it is due next, None if soon.

    ``now`` is the store's time, of which a world's may run faster than the wall's.
    """

    def __init__(
        self, turns: Iterable[Turn], take: Callable[[Turn], datetime | None], now: Callable[[], datetime]
    ) -> None:
        self._take, self._now, self._lock = take, now, Lock()
        self._due = dict.fromkeys(turns, datetime.min.replace(tzinfo=UTC))
        self._began: dict[Turn, float] = {}

    def look(self) -> None:
        """Begin what is due, as far as there are hands for it. Raises what ``now`` raises."""
        now, wall = self._now(), time.monotonic()
        with self._lock:
            hands = CREW - sum(wall - began < SLOW_S for began in self._began.values())
            waiting = [turn for turn, due in self._due.items() if due <= now and turn not in self._began]
            waiting.sort(key=self._due.__getitem__)
            begun = waiting[: max(0, hands)]
            self._began |= dict.fromkeys(begun, wall)
        for turn in begun:
            Thread(target=self._run, args=(turn, now), name=f"{turn.what}-{turn.cluster}", daemon=True).start()

    def _run(self, turn: Turn, now: datetime) -> None:
        due = None
        try:
            due = self._take(turn)
        finally:
            with self._lock:
                self._due[turn] = max(due or now, now + AGAIN)
                del self._began[turn]
        with suppress(PilotlightError):
            self.look()  # Its hand is free: the one that has waited longest is next.
