"""The events of a run: each is sent once, doubled, late or never, and what was not acknowledged comes again.

What goes out is sent on to ``alert_fanout`` as a queue does: at least once, and until it is acknowledged.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from harness.setting import REASONS, Setting
from pilotlight.codec.events import encode_outgoing
from pilotlight.doorway import Function
from pilotlight.facts.messages import Outgoing
from pilotlight.settings import EMBEDDED_CLUSTER
from pilotlight.units import Seconds
from pilotlight.world.world_events import Change

TICK_S = 60.0
ATTEMPTS = 5
"""A delivery that failed is sent again, at most so often; what goes out until it is acknowledged."""

ASIDE: tuple[Function, ...] = ("billing_tick", "alert_fanout")
"""Deliveries to these come on top of what a run is asked for."""

REFUSED, SPOKE, MAY_GO, GOES = 0.1, 0.1, 0.2, 0.4
"""How likely a cloud says in a minute that it could not launch, what is spent, that it may take a node, or does so."""
NOTICE_S = 120.0
FORGED = 0.3
"""How likely somebody sends a notice in a minute that is not true."""


class Delivery(NamedTuple):
    """One event on its way to a function."""

    due_s: Seconds
    order: int
    function: Function
    body: bytes
    attempt: int = 1
    cluster: str = EMBEDDED_CLUSTER

    @property
    def meters(self) -> bool:
        """Whether it makes the meter look."""
        return self.function == "billing_tick" and _TICK in self.body


_TICK = b"dev.pilotlight.tick."


class Post:
    """Sends what happens in a setting's world, and lets its time pass. Safe to use from many threads."""

    def __init__(self, setting: Setting, rng: Random) -> None:
        self._setting, self._rng, self._lock = setting, rng, setting.world.lock
        self._inbox: list[Delivery] = []
        self._order = 0
        self._jobs = 0
        self._tick_s = rng.uniform(0, TICK_S)
        self.on_minute: list[Callable[[], None]] = []
        setting.world.on_change.append(self._changed)
        setting.invariants.on_sent.append(self._sent)

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
        if delivery.attempt < ATTEMPTS or delivery.function == "alert_fanout":
            self._send(delivery.function, delivery.body, self._rng.uniform(1, 60), delivery.attempt + 1)

    def advance(self, to_s: Seconds) -> None:
        """Let time pass, and let come what comes until then."""
        world = self._setting.world
        while (next_s := self.next_s()) <= to_s:
            world.advance(next_s)
            self._come()
        world.advance(to_s)

    @property
    def tells(self) -> bool:
        """Whether something is still to be told."""
        return any(delivery.function == "alert_fanout" for delivery in self._inbox)

    def left(self) -> Iterator[Delivery]:
        """What is still to be told, at once; whatever else is on its way comes no more."""
        while self._inbox:
            with self._lock:
                delivery = heappop(self._inbox)
            if delivery.function == "alert_fanout":
                yield delivery

    def until_next_s(self) -> Seconds:
        """How long it is until something comes, if nobody does anything."""
        nexts = [self.next_s(), *(d.due_s for d in self._inbox[:1])]
        return max(0.0, min(nexts) - self._setting.world.now_s)

    def next_s(self) -> Seconds:
        """When the next job, tick or late request comes."""
        late_s = self._setting.next_late_s()
        jobs = self._setting.scene.jobs[self._jobs : self._jobs + 1]
        return min([self._tick_s, *(job.at_s for job in jobs), *([] if late_s is None else [late_s])])

    def _come(self) -> None:
        now_s = self._setting.world.now_s
        self._setting.arrive()
        for job in self._setting.scene.jobs[self._jobs : self._jobs + 1]:
            if job.at_s <= now_s:
                self._jobs += 1
                self._setting.submit(self._jobs - 1)
        if self._tick_s <= now_s:
            self._minute(f"t{self._tick_s:.0f}")
            self._tick_s += TICK_S

    def _changed(self, change: Change) -> None:
        if change.what == "pending":
            self._order += 1
            self._emit("pod_pending", self._setting.pending(change.subject, f"e{self._order}"))
        elif change.what == "notice":
            self._emit("spot_interruption", self._setting.notice(change.subject))

    def _minute(self, name: str) -> None:
        """The schedules' ticks, and what a cloud has to say."""
        make, rng = self._setting, self._rng
        self._emit("capacity_reconcile", make.tick("reconcile", name))
        self._emit("billing_tick", make.tick("billing", name))
        self._emit("spot_interruption", make.tick("rescue", name))
        self._emit("alert_fanout", make.tick("alerts", name))
        if rng.random() < REFUSED:
            pool = rng.choice([*make.scene.policy.pools, "no-pool-of-ours"])
            self._emit("capacity_reconcile", make.refusal(pool, rng.choice(REASONS), f"refusal-{name}"))
        if rng.random() < SPOKE:
            self._emit("billing_tick", make.spending(rng.choice((None, 0.5, 1.0)), f"spending-{name}"))
        if rng.random() < FORGED:
            body = make.forged(rng, f"forged-{name}")
            for _ in range(rng.choice((1, 1, 2))):
                self._emit("spot_interruption", body)
        spot = [n.id for n in make.world.nodes.values() if n.capacity_type == "spot" and n.ready and not n.doomed_s]
        if spot and rng.random() < MAY_GO:
            self._emit("spot_interruption", make.notice(rng.choice(spot)))
        if spot and rng.random() < GOES:
            make.world.interrupt(rng.choice(spot), NOTICE_S)
        for do in self.on_minute:
            do()

    def _sent(self, message: Outgoing) -> None:
        if message.topic == "alerts":
            for _ in range(self._rng.choice((1, 1, 1, 2))):
                self._send("alert_fanout", encode_outgoing(message), self._rng.choice((0.0, self._rng.uniform(0, 60))))

    def _emit(self, function: Function, body: bytes) -> None:
        """An event is sent: lost, once or more often, at once or late."""
        copies = self._rng.choice((0, 1, 1, 1, 1, 1, 2, 3))
        for _ in range(copies):
            self._send(function, body, self._rng.choice((0.0, self._rng.uniform(0, 10), self._rng.uniform(0, 180))))

    def _send(self, function: Function, body: bytes, delay_s: Seconds, attempt: int = 1) -> None:
        with self._lock:
            self._order += 1
            due_s = self._setting.world.now_s + delay_s
            heappush(self._inbox, Delivery(due_s, self._order, function, body, attempt, self._setting.cluster))
