"""One seed: deliveries to workers that take turns at every call of a port, then the quiet and the count.

The seed says which events are sent, doubled, late or lost; which worker goes on; which one dies; and how time passes.
No worker stands before one call for longer than ``STALL_S``: what a client's time-out allows, and less than a lease.
"""

from heapq import heappop, heappush
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.chaos.baton import Worker
from pilotlight.chaos.quiet import settle
from pilotlight.chaos.setting import HEADERS, Setting, drawn
from pilotlight.chaos.watch import Violation
from pilotlight.doorway import Function
from pilotlight.units import Seconds
from pilotlight.wiring import App
from pilotlight.world.world import Change

STALL_S = 20.0
TICK_S = 60.0
ATTEMPTS = 5
"""A delivery that failed is sent again, at most so often."""


class Outcome(NamedTuple):
    """What became of one seed. ``lines`` is the schedule, a line a call."""

    seed: int
    violations: tuple[Violation, ...]
    deliveries: int
    deaths: int
    launches: int
    jobs: int
    lines: tuple[str, ...]


class _Delivery(NamedTuple):
    due_s: Seconds
    order: int
    function: Function
    body: bytes
    attempt: int = 1


def run(seed: int, deliveries: int) -> Outcome:
    """One seed from its first pod to the count."""
    with TemporaryDirectory(prefix="pilotlight-chaos-") as folder:
        storm = Storm(seed, deliveries, Path(folder) / "state.db")
        try:
            storm.blow()
        finally:
            storm.end()
        setting = storm.setting
        settle(setting, SqliteState(Path(folder) / "state.db", setting.world.clock))
    return Outcome(
        seed=seed,
        violations=tuple(setting.watch.violations),
        deliveries=storm.delivered,
        deaths=storm.deaths,
        launches=setting.world.launches,
        jobs=len(setting.scene.jobs),
        lines=tuple(setting.lines),
    )


class Storm:
    """The director: everything that happens is one of its choices."""

    def __init__(self, seed: int, deliveries: int, file: Path) -> None:
        self._rng, scene, luck = drawn(seed, deliveries)
        self.setting = Setting(seed, scene, luck, file)
        self.delivered = 0
        self.deaths = 0
        self._most = deliveries
        self._workers = [_Process(self.setting, n) for n in range(len(scene.skews_s))]
        self._inbox: list[_Delivery] = []
        self._order = 0
        self._jobs = 0
        self._tick_s = self._rng.uniform(0, TICK_S)
        self.setting.world.on_change.append(self._changed)

    def blow(self) -> None:
        """Until every delivery has been made and every worker is done or dead."""
        while self.delivered < self._most or any(w.busy for w in self._workers):
            self._step()

    def end(self) -> None:
        """End the workers' threads."""
        for worker in self._workers:
            worker.end()

    def _step(self) -> None:
        busy = [w for w in self._workers if w.busy]
        free = [w for w in self._workers if not w.busy] if self.delivered < self._most else []
        due = bool(self._inbox) and self._inbox[0].due_s <= self.setting.world.now_s
        if free and due and (not busy or self._rng.random() < 0.3):
            self._deliver(self._rng.choice(free), heappop(self._inbox))
        elif busy:
            self._turn(self._rng.choice(busy))
            if self._rng.random() < 0.2:
                self._pass(self._rng.expovariate(1 / 4))
        else:
            self._pass(self._until_next_s())

    def _turn(self, process: "_Process") -> None:
        if self._rng.random() < self.setting.luck.death:
            self.deaths += 1
            self.setting.say(f"{process.name} dies before {process.at}")
            process.kill()
            self._again(process)
        else:
            process.resume()
            if not process.busy and process.status != 200:
                self._again(process)

    def _again(self, process: "_Process") -> None:
        """What was not acknowledged comes again after a while, unless it was tried often enough."""
        delivery = process.delivery
        if delivery is not None and delivery.attempt < ATTEMPTS:
            self._send(delivery.function, delivery.body, self._rng.uniform(1, 60), delivery.attempt + 1)

    def _deliver(self, process: "_Process", delivery: _Delivery) -> None:
        self.delivered += 1
        self.setting.say(f"{process.name} receives {delivery.function} (attempt {delivery.attempt})")
        process.receive(delivery)

    def _pass(self, seconds: Seconds) -> None:
        """Let time pass, no further than a stopped worker may stand, and let come what comes then."""
        world = self.setting.world
        to_s = min([world.now_s + seconds, *(w.since_s + STALL_S for w in self._workers if w.busy)])
        jobs = self.setting.scene.jobs
        while self._jobs < len(jobs) and jobs[self._jobs].at_s <= to_s:
            world.advance(jobs[self._jobs].at_s)
            self._jobs += 1
            self.setting.submit(self._jobs - 1)
        while self._tick_s <= to_s:
            world.advance(self._tick_s)
            self._emit("capacity_reconcile", self.setting.tick(f"t{self._tick_s:.0f}"))
            self._tick_s += TICK_S
        world.advance(to_s)

    def _until_next_s(self) -> Seconds:
        jobs, now_s = self.setting.scene.jobs, self.setting.world.now_s
        nexts = [
            self._tick_s,
            *(d.due_s for d in self._inbox[:1]),
            *(j.at_s for j in jobs[self._jobs : self._jobs + 1]),
        ]
        return max(0.0, min(nexts) - now_s)

    def _changed(self, change: Change) -> None:
        if change.what == "pending":
            self._order += 1
            self._emit("pod_pending", self.setting.pending(change.subject, f"e{self._order}"))

    def _emit(self, function: Function, body: bytes) -> None:
        """An event is sent: lost, once or more often, at once or late."""
        copies = self._rng.choice((0, 1, 1, 1, 1, 1, 2, 3))
        for _ in range(copies):
            self._send(function, body, self._rng.choice((0.0, self._rng.uniform(0, 10), self._rng.uniform(0, 180))))

    def _send(self, function: Function, body: bytes, delay_s: Seconds, attempt: int = 1) -> None:
        self._order += 1
        due_s = self.setting.world.now_s + delay_s
        heappush(self._inbox, _Delivery(due_s, self._order, function, body, attempt))


class _Process(Worker):
    """A worker with its app: after a death a new one is made."""

    def __init__(self, setting: Setting, index: int) -> None:
        self._setting, self._index = setting, index
        self._app: App | None = None
        self.delivery: _Delivery | None = None
        self.status = 0
        self.since_s: Seconds = 0.0
        super().__init__(f"w{index}")

    def receive(self, delivery: _Delivery) -> None:
        """Begin a delivery."""
        self.delivery, self.status = delivery, 0
        self.since_s = self._setting.world.now_s
        self.start(self._handle)

    def resume(self) -> None:
        self.since_s = self._setting.world.now_s
        super().resume()

    def kill(self) -> None:
        self._app = None
        super().kill()

    def _handle(self) -> None:
        if self._app is None:
            self._app = self._setting.app(self._index, self.pause)
        delivery = self.delivery
        assert delivery is not None
        answer = self._app.receive(delivery.function, delivery.body, HEADERS)
        self.pause("answer")
        self.status = answer.status
        self._setting.say(f"{self.name} answers {answer.status}: {answer.body.get('why') or answer.body}")
        if answer.status == 500:
            self._setting.watch.broke("internal_errors", f"{delivery.function} answered {answer.body}")
