"""A run's world, store and invariants, and the apps its workers make: what serial and parallel runs share."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args

import msgspec

from harness.faults.hazard_ports import Hazard, HazardChannel, HazardCluster, HazardOutbox, HazardPools, HazardState
from harness.faults.luck import Luck
from harness.judges.invariants import Invariants
from harness.judges.strangers_books import StrangersBooks
from harness.scene import CATALOG, CHANNEL, START, Scene, Skew, draw
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.codec.events import encode
from pilotlight.facts.messages import BudgetNotice, CapacityFailed, InterruptionNotice, PodPending, Tick
from pilotlight.facts.workload import PodDemand
from pilotlight.ports.state import Clock
from pilotlight.settings import EMBEDDED_CLUSTER, Settings
from pilotlight.units import Seconds
from pilotlight.wiring import App, app
from pilotlight.world.faults import Faults
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import WorldClock
from pilotlight.world.world_cluster import WorldCluster

What = Literal["reconcile", "billing", "rescue", "alerts"]
Reason = Literal["no-capacity", "quota", "other"]
REASONS: tuple[Reason, ...] = get_args(Reason)

HEADERS = {"content-type": "application/cloudevents+json"}

SILENT = 0.25
"""Shares of seeds whose cloud says nothing of single instances: what a notice says stays unconfirmed."""


class SkewedClock:
    """A clock that is wrong by so many seconds, and from a second of the world on by so many more."""

    def __init__(self, clock: Clock, skew: Skew) -> None:
        self._clock, self._skew = clock, skew

    def now(self) -> datetime:
        now = self._clock.now()
        jumped_s = self._skew.jump_s if (now - START).total_seconds() >= self._skew.jumps_at_s else 0.0
        return now + timedelta(seconds=self._skew.by_s + jumped_s)

    def stopwatch(self) -> Callable[[], Seconds]:
        """As on a real machine: the larger of the time since its boot and that of its wall clock."""
        began, wall = self._clock.now(), self.now()
        return lambda: max((self._clock.now() - began).total_seconds(), (self.now() - wall).total_seconds())


class Setting:
    """One world, one store file, its invariants with their books."""

    def __init__(
        self,
        seed: int,
        scene: Scene,
        luck: Luck,
        file: Path,
        clock: WorldClock | None = None,
        cluster: str = EMBEDDED_CLUSTER,
    ) -> None:
        self.cluster = cluster
        self.scene = scene
        self.luck = luck
        books = StrangersBooks(scene.policy)
        faults = _with_notice(scene.faults, seed)
        self.world = World(CATALOG, scene.pools, seed=seed, faults=faults, clock=clock, log=self._log)
        self.invariants = Invariants(self.world, scene.policy, books, cluster)
        self.lines: list[str] = []
        self.outages = luck.outages
        """While store, API server or cloud answer nothing, budgets may be passed by what is lit."""
        self.looked_s: list[Seconds] = []
        """When looks at this cluster came to their end: between two of them nobody sees to its budgets."""
        self._late: list[tuple[Seconds, Callable[[], object]]] = []
        self.file = file
        self.silent = Random(f"silent/{seed}").random() < SILENT

    def app(self, worker: int, pause: Callable[[str], None]) -> App:
        """A new process of a worker: nothing of an earlier one is left but the store."""
        clock = SkewedClock(self.world.clock, self.scene.skews[worker])
        hazard = self.hazard(worker, pause)
        return app(
            Settings(mode="act"),
            cluster=HazardCluster(WorldCluster(self.world), hazard, self.invariants, self.scene.cluster_s),
            pools=self.pools(hazard),
            state=HazardState(self.store(), hazard, self.invariants),
            outbox=HazardOutbox(hazard, self.invariants),
            channels={CHANNEL: HazardChannel(hazard, self.invariants)},
            clock=clock,
            policy=self.scene.policy,
            catalog=CATALOG,
        )

    def store(self) -> SqliteState:
        """The store, on a clock of its own."""
        return SqliteState(self.file, SkewedClock(self.world.clock, Skew(self.scene.store_s)))

    def pools(self, hazard: Hazard) -> HazardPools:
        """A worker's way to the cloud."""
        return HazardPools(self.world, hazard, self.invariants, self.scene.cloud_s, silent=self.silent)

    def hazard(self, worker: int, pause: Callable[[str], None]) -> Hazard:
        """A worker's way to the outside."""

        def before(call: str) -> Seconds:
            pause(call)
            return self.world.now_s

        return Hazard(f"w{worker}", self.luck, before, lambda line: self.say(f"w{worker} {line}"), self.later)

    def later(self, in_s: Seconds, effect: Callable[[], object]) -> None:
        """A request is on its way that nobody waits for any more."""
        with self.world.lock:
            self._late.append((self.world.now_s + in_s, effect))

    def next_late_s(self) -> Seconds | None:
        """When the next of those arrives."""
        return min((at_s for at_s, _ in self._late), default=None)

    def arrive(self) -> None:
        """Whatever of them is due arrives."""
        with self.world.lock:
            due = [late for late in self._late if late[0] <= self.world.now_s]
            self._late = [late for late in self._late if late[0] > self.world.now_s]
        for _, effect in sorted(due, key=lambda late: late[0]):
            effect()

    def _log(self, record: dict[str, Any]) -> None:
        self.invariants.books.log(record)
        self.invariants.late.log(record)

    def say(self, line: str) -> None:
        """A line of the log."""
        where = "" if self.cluster == EMBEDDED_CLUSTER else f"{self.cluster}: "
        self.lines.append(f"{self.world.now_s:9.1f} {where}{line}")

    def submit(self, index: int) -> None:
        """Create the pods of one of the scene's jobs."""
        job = self.scene.jobs[index]
        with self.world.lock:
            self.world.submit([_born(d, self.world.clock.now()) for d in job.demands], job.run_s)
        self.say(f"{len(job.demands)} x {job.demands[0].shape.gpu} created: {job.demands[0].uid}")

    def pending(self, job: str, identity: str) -> bytes:
        """The body of an event about a job's first pod."""
        demand = self.world.pending[job].demands[0]
        event = PodPending(
            cluster=self.cluster,
            namespace=demand.namespace,
            name=demand.name,
            uid=demand.uid,
            identity=f"{demand.uid}/{identity}",
            at=self.world.clock.now(),
        )
        return encode(event, id=identity)

    def notice(self, instance: str) -> bytes:
        """The body of the notice that an instance is taken; or may be, where the cloud has not said so."""
        doomed_s = self.world.nodes[instance].doomed_s
        deadline = None if doomed_s is None else self.world.moment(doomed_s)
        if deadline is None:
            self.invariants.evictions.may_go(instance)
            self.world.recommend(instance)
        event = InterruptionNotice(
            cluster=self.cluster,
            instance=instance,
            kind="rebalance" if deadline is None else "spot-interruption",
            cloud="world",
            at=self.world.clock.now(),
            deadline=deadline,
        )
        return encode(event, id=f"notice-{instance}-{event.kind}")

    def forged(self, rng: Random, identity: str) -> bytes:
        """The body of a notice that is not true."""
        return encode(self.invariants.forgeries.forge(rng, list(self.invariants.books.entries)), id=identity)

    def tick(self, what: What, identity: str) -> bytes:
        """The body of a schedule's tick."""
        tick = Tick(cluster=self.cluster, what=what, identity=identity, at=self.world.clock.now())
        return encode(tick, id=f"{what}-{identity}")

    def refusal(self, pool: str, reason: Reason, identity: str) -> bytes:
        """The body of a cloud's word, later than its answer, that it could not launch what a pool asked for."""
        said = CapacityFailed(
            cluster=self.cluster,
            group=pool,
            reason=reason,
            message="it could not be launched",
            identity=identity,
            at=self.world.clock.now(),
        )
        return encode(said, id=identity)

    def spending(self, threshold: float | None, identity: str) -> bytes:
        """The body of what a cloud says of its own budget."""
        said = BudgetNotice(
            cluster=self.cluster,
            budget="cloud",
            cost="80.00",
            limit="100.00",
            currency="USD",
            since=START,
            threshold=threshold,
            identity=identity,
            at=self.world.clock.now(),
        )
        return encode(said, id=identity)


def drawn(seed: int | str, deliveries: int) -> tuple[Random, Scene, Luck]:
    """A seed's generator, setting and faults."""
    rng = Random(seed)
    return rng, draw(rng, jobs=max(3, deliveries // 3), over_s=deliveries * 10.0), Luck(rng)


def _with_notice(faults: Faults, seed: int) -> Faults:
    """In every other seed the cloud says two minutes before that it takes a node."""
    return msgspec.structs.replace(faults, notice_s=120.0 if seed % 2 else 0.0)


def _born(demand: PodDemand, now: datetime) -> PodDemand:
    return msgspec.structs.replace(demand, created_at=now)
