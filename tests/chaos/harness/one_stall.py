"""One worker stands still at one point of one delivery while another goes on: every such point in turn.

A point is before a call of a port, while a request that was let out is on its way, and before an answer.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.deliveries import Delivery, Post
from harness.deployment import Deployment, Site
from harness.faults.hazard_ports import ANSWERED, ON_ITS_WAY
from harness.faults.luck import LEASE_S, Luck
from harness.judges.invariants import Apart, Violation
from harness.scene import Scene
from harness.serial_run import Process
from harness.setting import Setting
from harness.settle_down import settle_down
from pilotlight.doorway import Function
from pilotlight.ports.clouds import CALL_S
from pilotlight.units import Seconds

STALLS_S = (LEASE_S + 2, 10 * LEASE_S)


class Stall(NamedTuple):
    """Where the worker stood, what was broken, and the log."""

    call: str
    violations: tuple[Violation, ...]
    lines: tuple[str, ...]


class Play:
    """A setting with two workers and no faults of its own: ``w0`` is the one that stands still."""

    def __init__(self, scene: Scene, file: Path) -> None:
        luck = Luck(Random(0))
        luck.calm()
        self.setting = Setting(0, scene, luck, file)
        self.post = Post(self.setting, Random(0))
        self._deployment = Deployment((Site(self.setting, self.post),))
        self.workers = Process(self._deployment, 0), Process(self._deployment, 1)
        self._sent = 0

    def tick(self) -> None:
        """A reconcile of the worker that goes on, from beginning to end."""
        self.deliver(self.setting.tick("reconcile", self._name()))

    def deliver(self, body: bytes, function: Function = "capacity_reconcile") -> None:
        """Any delivery to it."""
        worker = self.workers[1]
        worker.receive(Delivery(0, 0, function, body))
        while worker.busy:
            worker.resume()

    def wait(self, seconds: Seconds) -> None:
        """Time passes."""
        self.setting.world.advance(self.setting.world.now_s + seconds)

    def stand(self, point: int) -> str:
        """Let the other begin a reconcile and stop at so many-th point; where it stands, or nothing: it is done."""
        worker = self.workers[0]
        worker.receive(Delivery(0, 0, "capacity_reconcile", self.setting.tick("reconcile", self._name())))
        for _ in range(point + 1):
            if worker.busy:
                worker.resume()
        return worker.at

    def end(self) -> None:
        """It goes on, and all settles down."""
        while self.workers[0].busy:
            self.workers[0].resume()
        self.stop()
        settle_down(self._deployment)

    def stop(self) -> None:
        """End the workers, whatever they are at."""
        for worker in self.workers:
            worker.end()

    def _name(self) -> str:
        self._sent += 1
        return f"play{self._sent}"


def every_late_call(
    scene: Scene, before: Callable[[Play], None], meanwhile: Callable[[Play], None]
) -> Iterator[tuple[Stall, Counter[Apart]]]:
    """The same for a worker that stands still after its last check and before the first byte, at each such point of a
    reconcile: what is broken, and what came late."""
    for lasts_s in STALLS_S:
        point, call = 0, "begin"
        while call:
            with TemporaryDirectory(prefix="pilotlight-chaos-") as folder:
                play = Play(scene, Path(folder) / "state.db")
                before(play)
                call = play.stand(point)
                point += 1
                if not call.endswith(ON_ITS_WAY):
                    play.stop()
                    continue
                seen = play.setting.invariants
                seen.unguarded(play.workers[0].name, call)
                play.wait(lasts_s)
                meanwhile(play)
                play.end()
            yield Stall(call, tuple(seen.violations), tuple(play.setting.lines)), seen.apart


def every_stall(
    scene: Scene, before: Callable[[Play], None], meanwhile: Callable[[Play], None], stride: int = 1
) -> Iterator[Stall]:
    """What one stall breaks, at each point of a reconcile that begins after ``before``; ``meanwhile`` happens in it.

    With a ``stride`` it is at each so-manyth point only. A stall lasts little over a lease and ten leases in turn. A
    request that was let out arrives within its deadline: later is the one stall that nobody can guard against.
    """
    point, lasts = 0, cycle(STALLS_S)
    while True:
        with TemporaryDirectory(prefix="pilotlight-chaos-") as folder:
            play = Play(scene, Path(folder) / "state.db")
            before(play)
            call = play.stand(point)
            point += stride
            if call.endswith(ANSWERED):  # To the code the same as before its next call.
                play.stop()
                continue
            if call:
                play.wait(CALL_S if call.endswith(ON_ITS_WAY) else next(lasts))
                meanwhile(play)
            play.end()
        if not call:
            return
        yield Stall(call, tuple(play.setting.invariants.violations), tuple(play.setting.lines))
