"""One seed in parallel: workers that are real threads and real processes, on one store file and one world.

Every second worker is a process, which reaches the world over HTTP and is killed with kill -9. The seed draws the
setting and the chances; who comes first is the machine's choice, so no run repeats exactly. The world's time is led:
as in a serial run it waits for a worker that stands before one call, so that a slow machine is no broken promise; one
that stands still by its luck stands for up to ten leases.
"""

import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from queue import SimpleQueue
from random import Random
from shutil import rmtree
from tempfile import mkdtemp
from threading import Thread, Timer
from typing import Any

import msgspec

from harness.deliveries import ASIDE, Delivery, Post
from harness.deployment import Deployment, Site
from harness.faults.baton import Died
from harness.faults.hazard_ports import ON_ITS_WAY, HazardCluster
from harness.faults.luck import LEASE_S
from harness.hands import Hand, work
from harness.serial_run import STALL_S, SeedResult
from harness.setting import HEADERS, Setting, drawn
from harness.settle_down import settle_down
from pilotlight import wiring
from pilotlight.adapters import world_client
from pilotlight.adapters.cluster import world as served_cluster
from pilotlight.adapters.pools import world as served_pools
from pilotlight.adapters.state import sqlite
from pilotlight.facts.messages import Alert, Outgoing
from pilotlight.ports.clouds import CALL_S
from pilotlight.tools.serve.world_server import WorldServer
from pilotlight.units import Seconds
from pilotlight.wiring import App
from pilotlight.world.world_cluster import WorldCluster

STEP_S = 1.0
"""Seconds of the world that pass on average in a turn of the director, who looks a thousand times a second."""

STUCK_S = 60.0
"""Seconds of the wall's after which a run that goes nowhere is given up."""

GATED = ("grow ", "release ")
"""Calls that a process has let out before the world hears of them: it may stand still while they are on their way."""

IMPORTED = [wiring.__name__, sqlite.__name__, served_cluster.__name__, served_pools.__name__, world_client.__name__]
"""The part of `hands` that takes long to import. What is forked from finds the package, and this folder not yet."""

_forks = get_context("forkserver")
_forks.set_forkserver_preload(IMPORTED)


def run(seed: int, deliveries: int) -> SeedResult:
    """One seed from its first pod to the count. The log of a run that broke something stays in ``outcome.folder``."""
    folder = Path(mkdtemp(prefix=f"pilotlight-chaos-{seed}-"))
    parallel = ParallelRun(seed, deliveries, folder / "state.db")
    try:
        parallel.work()
    finally:
        parallel.end()
    deployment = Deployment((Site(parallel.setting, parallel.post),))
    settle_down(deployment)
    outcome = SeedResult.of(seed, deployment, parallel.delivered, parallel.deaths)
    if not outcome.violations:
        rmtree(folder)
        return outcome
    (folder / "log").write_text("\n".join((*outcome.lines, *map(str, outcome.violations))) + "\n")
    return outcome._replace(folder=str(folder))


class ParallelRun:
    """The director: it sends, leads time, and kills."""

    def __init__(self, seed: int, deliveries: int, file: Path) -> None:
        self._rng, scene, luck = drawn(seed, deliveries)
        self.setting = Setting(seed, scene, luck, file)
        self.delivered = 0
        self._left = deliveries
        self.post = Post(self.setting, self._rng)
        self.setting.store()  # The file is there before the first worker.
        hand = Hand(seed, deliveries, 0, 0, "", file)
        kinds = (_Process, _Thread)
        self._workers = [kinds[n % 2](self, hand._replace(worker=n)) for n in range(len(scene.skews))]

    @property
    def deaths(self) -> int:
        """Workers that died so far."""
        return sum(worker.deaths for worker in self._workers)

    def work(self) -> None:
        """Until every delivery has been made and every worker is done or dead."""
        moved = time.monotonic()
        while self._left > 0 or any(w.busy for w in self._workers):
            before = self.setting.world.now_s, self.delivered
            self._turn()
            if before != (self.setting.world.now_s, self.delivered):
                moved = time.monotonic()
            elif time.monotonic() - moved > STUCK_S:
                self.setting.invariants.broke("internal_errors", f"no worker went on for {STUCK_S:.0f} s")
                return
            time.sleep(0.001)

    def end(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.end()

    def _turn(self) -> None:
        for worker in self._workers:
            if not worker.busy and self._left > 0 and self.post.due:
                delivery = self.post.take()
                self.delivered += 1
                self._left -= delivery.function not in ASIDE
                worker.receive(delivery)
        busy = [w for w in self._workers if w.busy]
        now_s = self.setting.world.now_s
        awake = [w for w in busy if w.until_s <= now_s]
        to_s = now_s + (self._rng.expovariate(1 / STEP_S) if awake else self.post.until_next_s() + STEP_S)
        self.post.advance(max(now_s, min([to_s, *(max(w.until_s, w.since_s + STALL_S) for w in busy)])))


class _Worker:
    """A thread of the director's process that sees to one worker, a delivery at a time."""

    def __init__(self, run: ParallelRun, hand: Hand) -> None:
        self.busy = False
        self.since_s: Seconds = 0.0
        self.until_s: Seconds = 0.0
        self.deaths = 0
        self._run, self._setting, self._hand = run, run.setting, hand
        self._name = f"w{hand.worker}"
        self._dice = Random(f"{hand.seed}/{hand.worker}")
        self._inbox: SimpleQueue[Delivery | None] = SimpleQueue()
        self._thread = Thread(target=self._live, name=self._name, daemon=True)
        self._thread.start()

    def receive(self, delivery: Delivery) -> None:
        """Begin a delivery."""
        self.busy, self.since_s = True, self._setting.world.now_s
        self._setting.say(f"{self._name} receives {delivery.function} (attempt {delivery.attempt})")
        self._inbox.put(delivery)

    def end(self) -> None:
        """Be no more."""
        self._inbox.put(None)
        self._thread.join()

    def _live(self) -> None:
        while (delivery := self._inbox.get()) is not None:
            began_s = self._setting.world.now_s
            try:
                status, why = self._handle(delivery)
            except Died:
                self.deaths += 1
                self._setting.invariants.died(self._name)
                status, why = 0, "died"
            except Exception as error:  # The harness itself is wrong: that must be seen.
                status, why = 500, f"{type(error).__name__}: {error}"
            self._setting.say(f"{self._name} answers {status}: {why}")
            if delivery.meters:
                spend = self._setting.invariants.spend
                (spend.note_look if status == 200 else spend.broke_off)(began_s, self._setting.world.now_s)
            if status == 500:
                self._setting.invariants.broke("internal_errors", f"{delivery.function} answered {why}")
            if status != 200:
                self._run.post.again(delivery)
            self.busy = False

    def _handle(self, delivery: Delivery) -> tuple[int, str]:
        raise NotImplementedError

    def _stand(self, call: str, *, beyond_gate: bool) -> None:
        """Wait while the world's time passes, as long as luck says. ``beyond_gate``: the call is let out already."""
        luck, world, seen = self._setting.luck, self._setting.world, self._setting.invariants
        stall_s = luck.drip_s(self._dice) if beyond_gate else luck.stall_s(self._dice)
        if beyond_gate and stall_s > CALL_S:
            seen.unguarded(self._name, call)
        if call.startswith("deliver ") and stall_s > LEASE_S / 2:
            seen.tellings.overslept.add(self._name)
        if stall_s > STALL_S:
            self._setting.say(f"{self._name} stands still for {stall_s:.1f} s before {call}")
        self.until_s = world.now_s + stall_s
        while world.now_s < self.until_s:
            time.sleep(0.0005)
        self.since_s = world.now_s

    def _doomed(self) -> bool:
        return self._dice.random() < self._setting.luck.death


class _Thread(_Worker):
    """A worker that is a thread. It dies before a call, and nothing it does after that has an effect."""

    _app: App | None = None
    _dying = False

    def _handle(self, delivery: Delivery) -> tuple[int, str]:
        if self._app is None:
            self._app = self._setting.app(self._hand.worker, self._pause)
        try:
            answer = self._app.receive(delivery.function, delivery.body, HEADERS)
            self._pause("answer")
        except Died:
            self._app, self._dying = None, False
            raise
        return answer.status, str(answer.body.get("why") or answer.body)

    def _pause(self, call: str) -> None:
        self.since_s = self._setting.world.now_s
        self._dying = self._dying or self._doomed()
        if self._dying:
            raise Died
        self._stand(call, beyond_gate=call.endswith(ON_ITS_WAY))
        time.sleep(self._dice.choice((0.0, 0.0, 0.0, 0.001)))


class _Process(_Worker):
    """A worker that is a process, and what it is told and tells. It is killed at any moment after a call begins."""

    def __init__(self, run: ParallelRun, hand: Hand) -> None:
        self._process: Any = None
        self._line: Any = None
        hazard = run.setting.hazard(hand.worker, self._pause)
        self._server = WorldServer(run.setting.world, 0)
        invariants, world, scene = run.setting.invariants, run.setting.world, run.setting.scene
        cluster = HazardCluster(WorldCluster(world), hazard, invariants, scene.cluster_s)
        self._server.service.cluster = cluster  # type: ignore[assignment]
        self._server.service.pools = run.setting.pools(hazard)  # type: ignore[assignment]
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self._hears: dict[str, Callable[..., None]] = {
            "at": self._pause,
            "say": lambda line: self._setting.say(f"{self._name} {line}"),
            "wrote": invariants.wrote,
            "failed": invariants.failed,
            "deleted": invariants.deleted,
            "published": lambda messages: invariants.published(msgspec.json.decode(messages, type=list[Outgoing])),
            "shown": lambda worker, alert: invariants.shown(worker, msgspec.json.decode(alert, type=Alert)),
            "unsure": lambda alert: invariants.unsure(msgspec.json.decode(alert, type=Alert)),
        }
        super().__init__(run, hand)

    def end(self) -> None:
        super().end()
        if self._process is not None:
            self._bury()
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, delivery: Delivery) -> tuple[int, str]:
        if self._process is None:
            self._begin()
        try:
            self._line.send((delivery.function, delivery.body))
            while True:
                what, *rest = self._line.recv()
                if what == "done":
                    return rest[0], rest[1]
                self._hears[what](*rest)
                self._line.send(self._setting.world.now_s)
        except (EOFError, OSError):
            self._bury()
            raise Died from None

    def _begin(self) -> None:
        self._hand = self._hand._replace(life=self._hand.life + 1, url=self._server.url)
        self._line, other = _forks.Pipe()
        self._process = _forks.Process(target=work, args=(self._hand, other), daemon=True)
        self._process.start()
        other.close()

    def _bury(self) -> None:
        self._line.close()
        self._process.kill()
        self._process.join()
        self._process = None

    def _pause(self, call: str) -> None:
        self.since_s = self._setting.world.now_s
        if self._process is not None and self._doomed():
            Timer(self._dice.uniform(0, 0.005), self._process.kill).start()
        elif call.endswith(ON_ITS_WAY) or not call.startswith(GATED):
            self._stand(call, beyond_gate=call.endswith(ON_ITS_WAY))
