"""The events of a run: each is sent once, doubled, late or never, and what was not acknowledged comes again."""

from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from pilotlight.chaos.setting import Setting
from pilotlight.doorway import Function
from pilotlight.units import Seconds
from pilotlight.world.world import Change

TICK_S = 60.0
ATTEMPTS = 5
"""A delivery that failed is sent again, at most so often."""


class Delivery(NamedTuple):
    """One event on its way to a function."""

    due_s: Seconds
    order: int
    function: Function
    body: bytes
    attempt: int = 1


class Post:
    """Sends what happens in a setting's world, and lets its time pass. Safe to use from many threads."""

    def __init__(self, setting: Setting, rng: Random) -> None:
        self._setting, self._rng, self._lock = setting, rng, setting.world.lock
        self._inbox: list[Delivery] = []
        self._order = 0
        self._jobs = 0
        self._tick_s = rng.uniform(0, TICK_S)
        setting.world.on_change.append(self._changed)

    @property
    def due(self) -> bool:
        """Whether a delivery is there."""
        return bool(self._inbox) and self._inbox[0].due_s <= self._setting.world.now_s

    def take(self) -> Delivery:
        """The delivery that is due first."""
        with self._lock:
            return heappop(self._inbox)

    def again(self, delivery: Delivery) -> None:
        """What was not acknowledged comes again after a while, unless it was tried often enough."""
        if delivery.attempt < ATTEMPTS:
            self._send(delivery.function, delivery.body, self._rng.uniform(1, 60), delivery.attempt + 1)

    def advance(self, to_s: Seconds) -> None:
        """Let time pass, and let come what comes until then."""
        world, jobs = self._setting.world, self._setting.scene.jobs
        while self._jobs < len(jobs) and jobs[self._jobs].at_s <= to_s:
            world.advance(jobs[self._jobs].at_s)
            self._jobs += 1
            self._setting.submit(self._jobs - 1)
        while self._tick_s <= to_s:
            world.advance(self._tick_s)
            self._emit("capacity_reconcile", self._setting.tick(f"t{self._tick_s:.0f}"))
            self._tick_s += TICK_S
        world.advance(to_s)

    def until_next_s(self) -> Seconds:
        """How long it is until something comes, if nobody does anything."""
        jobs, now_s = self._setting.scene.jobs, self._setting.world.now_s
        nexts = [
            self._tick_s,
            *(d.due_s for d in self._inbox[:1]),
            *(j.at_s for j in jobs[self._jobs : self._jobs + 1]),
        ]
        return max(0.0, min(nexts) - now_s)

    def _changed(self, change: Change) -> None:
        if change.what == "pending":
            self._order += 1
            self._emit("pod_pending", self._setting.pending(change.subject, f"e{self._order}"))
        elif change.what == "notice":
            self._emit("spot_interruption", self._setting.notice(change.subject))

    def _emit(self, function: Function, body: bytes) -> None:
        """An event is sent: lost, once or more often, at once or late."""
        copies = self._rng.choice((0, 1, 1, 1, 1, 1, 2, 3))
        for _ in range(copies):
            self._send(function, body, self._rng.choice((0.0, self._rng.uniform(0, 10), self._rng.uniform(0, 180))))

    def _send(self, function: Function, body: bytes, delay_s: Seconds, attempt: int = 1) -> None:
        with self._lock:
            self._order += 1
            due_s = self._setting.world.now_s + delay_s
            heappush(self._inbox, Delivery(due_s, self._order, function, body, attempt))
