"""One seed: deliveries to workers that take turns at every call of a port, then it settles down, and the count.

The seed says which events are sent, doubled, late or lost; which worker goes on; which one dies; and how time passes.
A worker may stand still for ten leases before a call, before its answer, or while its request drips to the cloud;
one that does not is waited for no longer than ``STALL_S``. Where it is asked for, deliveries go on and the faults with
them while pods wait that could be served: so most is bought amid faults.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.deliveries import ASIDE, Delivery
from harness.deployment import Deployment, drawn_deployment
from harness.faults.baton import Worker
from harness.faults.hazard_ports import ON_ITS_WAY
from harness.faults.luck import LEASE_S
from harness.judges.invariants import Violation
from harness.setting import HEADERS
from harness.settle_down import settle_down, unserved
from pilotlight.ports.clouds import CALL_S
from pilotlight.units import Seconds
from pilotlight.wiring import App

STALL_S = 20.0
TURN_S, BRISK_S, THINNER = 4.0, 0.4, 6.0
"""So much time goes by on average in every fifth turn; by so much deaths, stalls and errors are rarer. At the first a
look takes minutes, and hardly any buys: its lease ends before, or it dies. At the others most come to their end."""


LOOKED = ("done", "seen", "stopped", "nothing")
"""How an answer ends whose worker looked at all that is lit."""
ELSEWHERE = ("alert_fanout", "billing_tick")
"""They tell and meter: what they answer ends no look."""
NOTICES = "spot_interruption"
"""It sees to single nodes, and to no budget, where it makes no decision."""


def is_look(function: str, answer: Mapping[str, object]) -> bool:
    """Whether an answer ends a look at all that is lit."""
    elsewhere = function in ELSEWHERE or (function == NOTICES and not answer.get("decision"))
    return answer.get("outcome") in LOOKED and not elsewhere


class SeedResult(NamedTuple):
    """What became of one seed. ``lines`` is the schedule, a line a call; ``folder`` is where what broke was kept;
    ``amid`` are the launches before the faults stopped."""

    seed: int
    violations: tuple[Violation, ...]
    deliveries: int
    deaths: int
    launches: int
    jobs: int
    lines: tuple[str, ...]
    folder: str = ""
    apart: tuple[tuple[str, int], ...] = ()
    amid: int = 0

    @staticmethod
    def of(seed: int, deployment: Deployment, deliveries: int, deaths: int) -> "SeedResult":
        """What became of a run's clusters."""
        settings = [site.setting for site in deployment.sites]
        return SeedResult(
            seed=seed,
            violations=tuple(violation for setting in settings for violation in setting.invariants.violations),
            deliveries=deliveries,
            deaths=deaths,
            launches=sum(setting.world.launches for setting in settings),
            jobs=sum(len(setting.scene.jobs) for setting in settings),
            lines=tuple(deployment.first.lines),
            apart=tuple(sum((setting.invariants.apart for setting in settings), Counter()).items()),
            amid=sum(setting.invariants.amid for setting in settings),
        )


def run(seed: int, deliveries: int, more: int = 0) -> SeedResult:
    """One seed from its first pod to the count. While pods wait that could be served, ``more`` deliveries are made."""
    with TemporaryDirectory(prefix="pilotlight-chaos-") as folder:
        serial = SerialRun(seed, deliveries, Path(folder) / "state.db", more)
        try:
            serial.go()
        finally:
            serial.end()
        settle_down(serial.deployment)
    return SeedResult.of(seed, serial.deployment, serial.delivered, serial.deaths)


class SerialRun:
    """The director: everything that happens is one of its choices."""

    def __init__(self, seed: int, deliveries: int, file: Path, more: int = 0) -> None:
        self._rng, self.deployment = drawn_deployment(seed, deliveries, file)
        self._more, self._turn_s = more, BRISK_S if more else TURN_S
        self.setting = self.deployment.first
        self.delivered = 0
        self.deaths = 0
        self._left = deliveries * len(self.deployment.sites)
        for site in self.deployment.sites if more else ():
            site.setting.luck.thin(THINNER)
            site.setting.outages = site.setting.luck.outages
            if site.people is not None:
                site.post.on_minute.append(site.people.attend)
        self._workers = [Process(self.deployment, n) for n in range(len(self.setting.scene.skews))]

    def go(self) -> None:
        """Until every delivery has been made and every worker is done or dead."""
        while self._left or any(w.busy for w in self._workers):
            self._step()

    def end(self) -> None:
        """End the workers' threads."""
        for worker in self._workers:
            worker.end()

    def _step(self) -> None:
        now_s, due = self.deployment.now_s, self.deployment.due
        busy = [w for w in self._workers if w.busy and w.until_s <= now_s]
        free = [w for w in self._workers if not w.busy] if self._left else []
        if free and due and (not busy or self._rng.random() < 0.3):
            self._deliver(self._rng.choice(free), (self._rng.choice(due) if due[1:] else due[0]).take())
        elif busy:
            self._turn(self._rng.choice(busy))
            if self._rng.random() < 0.2:
                self._pass(self._rng.expovariate(1 / self._turn_s))
        else:
            self._pass(self.deployment.until_next_s() if self._left and not due else STALL_S)

    def _turn(self, process: "Process") -> None:
        if self._rng.random() < process.at_work_for.luck.death:
            self.deaths += 1
            self.setting.say(f"{process.name} dies before {process.at}")
            process.kill()
            self.deployment.died(process.name)
            self._again(process)
        else:
            process.resume()
            self._stall(process)
            if not process.busy and process.status != 200:
                self._again(process)

    def _stall(self, process: "Process") -> None:
        """It may stand still where it is now, while the others go on."""
        at = process.at_work_for
        luck, now_s = at.luck, at.world.now_s
        if process.at.endswith(ON_ITS_WAY):
            stall_s = luck.drip_s(self._rng)
            if stall_s > CALL_S:
                at.invariants.unguarded(process.name, process.at)
        else:
            stall_s = luck.stall_s(self._rng) if process.busy else 0.0
        process.until_s = now_s + stall_s
        if process.at.startswith("deliver ") and stall_s > LEASE_S / 2:
            at.invariants.tellings.overslept.add(process.name)
        if stall_s > STALL_S:
            self.setting.say(f"{process.name} stands still for {stall_s:.1f} s before {process.at}")

    def _again(self, process: "Process") -> None:
        if process.delivery is not None:
            self.deployment.of(process.delivery).post.again(process.delivery)

    def _deliver(self, process: "Process", delivery: Delivery) -> None:
        self.delivered += 1
        self._left -= delivery.function not in ASIDE
        if not self._left and self._more and any(unserved(site) for site in self.deployment.sites):
            self._left, self._more = 1, self._more - 1
        at = self.deployment.of(delivery).setting
        at.say(f"{process.name} receives {delivery.function} (attempt {delivery.attempt})")
        process.receive(delivery)

    def _pass(self, seconds: Seconds) -> None:
        """Let time pass, no further than a worker may stand."""
        to_s = self.deployment.now_s + seconds
        self.deployment.advance(min([to_s, *(max(w.until_s, w.since_s + STALL_S) for w in self._workers if w.busy)]))


class Process(Worker):
    """A worker with its app: after a death a new one is made."""

    def __init__(self, deployment: Deployment, index: int) -> None:
        self._deployment, self._index = deployment, index
        self.at_work_for = deployment.first
        self._app: App | None = None
        self.delivery: Delivery | None = None
        self.status = 0
        self.since_s = self.began_s = self.until_s = 0.0
        super().__init__(f"w{index}")

    def receive(self, delivery: Delivery) -> None:
        """Begin a delivery."""
        self.delivery, self.status = delivery, 0
        self.at_work_for = self._deployment.of(delivery).setting
        self.since_s = self.began_s = self._deployment.now_s
        self.start(self._handle)

    def resume(self) -> None:
        self.since_s = self._deployment.now_s
        super().resume()

    def kill(self) -> None:
        if self.delivery is not None and self.delivery.meters:
            self.at_work_for.invariants.spend.broke_off(self.began_s, self.at_work_for.world.now_s)
        self._app = None
        super().kill()

    def _handle(self) -> None:
        if self._app is None:
            self._app = self._deployment.app(self._index, self.pause, lambda: self.delivery)
        delivery, at = self.delivery, self.at_work_for
        assert delivery is not None
        answer = self._app.receive(delivery.function, delivery.body, HEADERS)
        self.pause("answer")
        self.status = answer.status
        at.say(f"{self.name} answers {answer.status}: {answer.body.get('why') or answer.body}")
        if delivery.meters:
            spend = at.invariants.spend
            (spend.note_look if answer.status == 200 else spend.broke_off)(self.began_s, at.world.now_s)
        if is_look(delivery.function, answer.body):
            at.looked_s.append(at.world.now_s)
        if answer.status == 500:
            at.invariants.broke("internal_errors", f"{delivery.function} answered {answer.body}")
