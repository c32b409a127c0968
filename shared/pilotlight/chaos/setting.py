"""A run's world, store and invariants, and the apps its workers make: what serial and parallel runs share."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Literal, get_args

import msgspec

from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.chaos.books import Books
from pilotlight.chaos.invariants import Invariants
from pilotlight.chaos.luck import Luck
from pilotlight.chaos.ports import Hazard, HazardChannel, HazardCluster, HazardOutbox, HazardPools, HazardState
from pilotlight.chaos.scene import CATALOG, CHANNEL, START, Scene, draw
from pilotlight.codec.events import encode
from pilotlight.facts.messages import BudgetNotice, CapacityFailed, InterruptionNotice, PodPending, Tick
from pilotlight.facts.workload import PodDemand
from pilotlight.ports import Clock
from pilotlight.settings import EMBEDDED_CLUSTER, Settings
from pilotlight.units import Seconds
from pilotlight.wiring import App, app
from pilotlight.world.clock import WorldClock
from pilotlight.world.cluster import WorldCluster
from pilotlight.world.faults import Faults
from pilotlight.world.world import World

What = Literal["reconcile", "billing", "rescue", "alerts"]
Reason = Literal["no-capacity", "quota", "other"]
REASONS: tuple[Reason, ...] = get_args(Reason)

HEADERS = {"content-type": "application/cloudevents+json"}


class SkewedClock:
    """A clock that is wrong by so many seconds."""

    def __init__(self, clock: Clock, skew_s: Seconds) -> None:
        self._clock = clock
        self._skew = timedelta(seconds=skew_s)

    def now(self) -> datetime:
        return self._clock.now() + self._skew

    def stopwatch(self) -> Callable[[], Seconds]:
        return self._clock.stopwatch()


class Setting:
    """One world, one store file, its invariants with their books."""

    def __init__(self, seed: int, scene: Scene, luck: Luck, file: Path, clock: WorldClock | None = None) -> None:
        self.scene = scene
        self.luck = luck
        books = Books(scene.policy.budgets)
        faults = _with_notice(scene.faults, seed)
        self.world = World(CATALOG, scene.pools, seed=seed, faults=faults, clock=clock, log=books.log)
        self.invariants = Invariants(self.world, scene.policy, books)
        self.lines: list[str] = []
        self.file = file

    def app(self, worker: int, pause: Callable[[str], None]) -> App:
        """A new process of a worker: nothing of an earlier one is left but the store."""
        clock = SkewedClock(self.world.clock, self.scene.skews_s[worker])
        hazard = self.hazard(worker, pause)
        return app(
            Settings(mode="act"),
            cluster=HazardCluster(WorldCluster(self.world), hazard, self.invariants),
            pools=HazardPools(self.world, hazard, self.invariants),
            state=HazardState(SqliteState(self.file, self.world.clock), hazard, self.invariants),
            outbox=HazardOutbox(hazard, self.invariants),
            channels={CHANNEL: HazardChannel(hazard, self.invariants)},
            clock=clock,
            policy=self.scene.policy,
            catalog=CATALOG,
        )

    def hazard(self, worker: int, pause: Callable[[str], None]) -> Hazard:
        """A worker's way to the outside."""

        def before(call: str) -> Seconds:
            pause(call)
            return self.world.now_s

        return Hazard(f"w{worker}", self.luck, before, lambda line: self.say(f"w{worker} {line}"))

    def say(self, line: str) -> None:
        """A line of the log."""
        self.lines.append(f"{self.world.now_s:9.1f} {line}")

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
            cluster=EMBEDDED_CLUSTER,
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
        event = InterruptionNotice(
            cluster=EMBEDDED_CLUSTER,
            instance=instance,
            kind="rebalance" if deadline is None else "spot-interruption",
            cloud="world",
            at=self.world.clock.now(),
            deadline=deadline,
        )
        return encode(event, id=f"notice-{instance}-{event.kind}")

    def tick(self, what: What, identity: str) -> bytes:
        """The body of a schedule's tick."""
        tick = Tick(cluster=EMBEDDED_CLUSTER, what=what, identity=identity, at=self.world.clock.now())
        return encode(tick, id=f"{what}-{identity}")

    def refusal(self, pool: str, reason: Reason, identity: str) -> bytes:
        """The body of a cloud's word, later than its answer, that it could not launch what a pool asked for."""
        said = CapacityFailed(
            cluster=EMBEDDED_CLUSTER,
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
            cluster=EMBEDDED_CLUSTER,
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


def drawn(seed: int, deliveries: int) -> tuple[Random, Scene, Luck]:
    """A seed's generator, setting and faults."""
    rng = Random(seed)
    return rng, draw(rng, jobs=max(3, deliveries // 3), over_s=deliveries * 10.0), Luck(rng)


def _with_notice(faults: Faults, seed: int) -> Faults:
    """In every other seed the cloud says two minutes before that it takes a node."""
    return msgspec.structs.replace(faults, notice_s=120.0 if seed % 2 else 0.0)


def _born(demand: PodDemand, now: datetime) -> PodDemand:
    return msgspec.structs.replace(demand, created_at=now)
