"""Events of the world, each at its second: launches, boots, ends of jobs, notices and reclaims, and their effects."""

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from threading import RLock
from typing import Literal, NamedTuple

from pilotlight.errors import BadRequest, Denied
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.units import Seconds
from pilotlight.world.agenda import Agenda
from pilotlight.world.evictions import Evictions, PodEnding
from pilotlight.world.faults import Faults
from pilotlight.world.fleet import Fleet
from pilotlight.world.journal import Journal, Log, StopReason
from pilotlight.world.machines import WorldPool
from pilotlight.world.residents import Residents
from pilotlight.world.scheduling.scheduler import Scheduler
from pilotlight.world.scheduling.scoring import Scoring
from pilotlight.world.spot_zones import NOTICE_S, more_than_zone_holds
from pilotlight.world.world_clock import VirtualClock, WorldClock
from pilotlight.world.world_jobs import Workload
from pilotlight.world.world_nodes import WorldJob, WorldNode

REPLACE_AGAIN_S = 60.0
"""How soon a pool that could not replace a lost node asks again."""


ChangeKind = Literal["pending", "done", "joined", "ready", "notice", "lost"]


class Change(NamedTuple):
    """Something that happened to a job (pending, done) or to a node (the others)."""

    t: Seconds
    what: ChangeKind
    subject: str


class Event(NamedTuple):
    """Something that is due: of a node, of a job in its start-th run, or of a zone."""

    kind: Literal["done", "join", "ready", "untaint", "close", "notice", "reclaim", "replace", "saved", "stop", "fall"]
    node: WorldNode | None = None
    job: WorldJob | None = None
    start: int = 0
    zone: str = ""


class WorldEvents:
    """A cluster and its cloud in the course of time; nothing is asked of them here."""

    def __init__(
        self,
        catalog: Catalog,
        pools: Sequence[WorldPool],
        *,
        seed: int = 0,
        zones: Sequence[ZoneHistory] = (),
        faults: Faults | None = None,
        clock: WorldClock | None = None,
        scoring: Scoring = "most-allocated",
        log: Log | None = None,
    ) -> None:
        self.faults = faults or Faults()
        self.clock: WorldClock = clock or VirtualClock(catalog.as_of)
        self.now_s: Seconds = self.clock.elapsed_s()
        self.fleet = Fleet(catalog, pools, self.faults, seed, zones)
        self.nodes = self.fleet.nodes
        self.on_change: list[Callable[[Change], None]] = []
        self._journal = Journal(log)
        self._lock = RLock()
        self._agenda: Agenda[Event] = Agenda(self._still)
        self._workload = Workload(
            self.faults,
            self._journal,
            scheduler=Scheduler(
                scoring=scoring, seed=seed, there=lambda: [node for node in self.nodes.values() if node.joined]
            ),
            on_start=self._started,
            on_wait=self._waits,
        )
        self.idle = self._workload.idle
        self.running = self._workload.running
        self.finished = self._workload.finished
        self.resting = self._workload.resting
        self._errors = list(self.faults.api_errors)
        self.evictions = Evictions(self._workload, self._due)
        self.residents = Residents()
        for zone in self.fleet.zones.names:
            self._watch(zone)

    def moment(self, at_s: Seconds) -> datetime:
        """A second of the world as a moment."""
        return self.clock.start + timedelta(seconds=at_s)

    @property
    def lock(self) -> RLock:
        """Held by every call: whoever holds it sees one moment, and nothing happens meanwhile."""
        return self._lock

    def next_event_s(self) -> Seconds | None:
        """When something next happens by itself, or None."""
        with self._lock:
            return self._agenda.next_s()

    def advance(self, to_s: Seconds) -> None:
        """Let time pass up to and including ``to_s``. The past stays as it is."""
        with self._lock:
            while (at_s := self._agenda.next_s()) is not None and at_s <= to_s:
                self._pass(at_s)
                for event in self._agenda.take(at_s):
                    self._happen(event)
                self._workload.bind(self.now_s)
            self._pass(to_s)

    def sync(self) -> None:
        """Catch up with the clock."""
        self.advance(self.clock.elapsed_s())

    def _turn(self, node: WorldNode) -> None:
        """Open or close it as it says. Binds that are on their way to it may still land."""
        node.value = None
        if node.keeps_closed and self.faults.bind_s:
            self._agenda.add(self.now_s + self.faults.bind_s, Event("close", node))
        else:
            self._close(node)

    def _close(self, node: WorldNode) -> None:
        node.closed = node.keeps_closed
        self._workload.open(node)
        self._workload.bind(self.now_s)

    def _node(self, node_id: str) -> WorldNode:
        if node_id not in self.nodes:
            raise BadRequest(f"node {node_id} is not there")
        return self.nodes[node_id]

    def _pass(self, to_s: Seconds) -> None:
        self.now_s = max(self.now_s, to_s)
        if isinstance(self.clock, VirtualClock):
            self.clock.advance(self.now_s)

    def _tell(self, what: ChangeKind, subject: str) -> None:
        for listener in self.on_change:
            listener(Change(self.now_s, what, subject))

    def _still(self, event: Event) -> bool:
        if event.job is not None:
            return event.job.id in self.running and event.job.starts == event.start
        # A node that was stopped and started again is another than the one that the event was of.
        return event.kind in ("replace", "fall") or (
            event.node is not None and self.nodes.get(event.node.id) is event.node
        )

    def _happen(self, event: Event) -> None:
        match event:
            case Event("done", job=WorldJob() as job):
                self._workload.finish(job, self.now_s)
                self._tell("done", job.id)
            case Event("join", node=WorldNode() as node):
                self._join(node)
            case Event("ready", node=WorldNode() as node):
                self._ready(node)
            case Event("untaint", node=WorldNode() as node):
                self._take_work(node)
            case Event("saved", job=WorldJob() as job):
                self.evictions.write_checkpoint(job)
            case Event("stop", job=WorldJob() as job):
                self.evictions.stop(job, self.now_s, self.moment(self.now_s))
            case Event("close", node=WorldNode() as node):
                self._close(node)
            case Event("notice", node=WorldNode() as node):
                node.doomed_s = min(node.doomed_s or math.inf, self.now_s + self.faults.notice_s)
                self._tell("notice", node.id)
            case Event("reclaim", node=WorldNode() as node):
                self._lose(node)
            case Event("replace", node=WorldNode() as node):
                self._replace(node)
            case Event("fall", zone=zone):
                self._fall(zone)

    def _light(self, pool: str, zone: str) -> WorldNode:
        """Start a stopped node where there is one, else launch."""
        able = self.fleet.able(self.fleet.machine(pool, zone), self.now_s) if self.fleet.standing else []
        if not able:
            return self._launch(pool, zone)
        node = self.fleet.wake(able[0], self.now_s)
        self.fleet.desired[pool] += 1
        self._journal.wake(self.now_s, node)
        self._agenda.add(self.fleet.joins_s(node), Event("join", node))
        return node

    def _forget(self, stopped: WorldNode, reason: str) -> None:
        self.fleet.forget(stopped, self.now_s)
        self.fleet.terminations += 1
        self._journal.terminate(self.now_s, stopped, reason)

    def _launch(self, pool: str, zone: str) -> WorldNode:
        node = self.fleet.begin(self.fleet.machine(pool, zone), self.now_s)
        self.fleet.desired[pool] += 1
        self._journal.launch(self.now_s, node)
        self._agenda.add(self.fleet.joins_s(node), Event("join", node))
        taken_at_s = self.fleet.taken_at_s(node)
        if taken_at_s is not None:
            self._agenda.add(taken_at_s, Event("reclaim", node))
            if self.faults.notice_s:
                self._agenda.add(max(self.now_s, taken_at_s - self.faults.notice_s), Event("notice", node))
        return node

    def _join(self, node: WorldNode) -> None:
        node.joined = True
        self._tell("joined", node.id)
        if node.ready_s <= self.now_s:
            self._ready(node)
        else:
            self._agenda.add(node.ready_s, Event("ready", node))

    def _ready(self, node: WorldNode) -> None:
        node.ready = True
        node.value = None
        self._journal.ready(self.now_s, node)
        node.fresh = self.faults.untaint_s > 0
        if node.fresh:
            self._agenda.add(self.now_s + self.faults.untaint_s, Event("untaint", node))
            self._tell("ready", node.id)
            return
        self._take_work(node)

    def _take_work(self, node: WorldNode) -> None:
        node.fresh = False
        node.value = None
        self._workload.arrive(node, self.now_s)
        self._tell("ready", node.id)
        self._workload.bind(self.now_s)

    def _watch(self, zone: str) -> None:
        """Look when a zone next has less room."""
        at_s = self.fleet.zones.next_fall_s(zone, self.now_s)
        if at_s is not None:
            self._agenda.add(at_s, Event("fall", zone=zone))

    def _fall(self, zone: str) -> None:
        """A zone has less room now: ready nodes beyond it get their notice, those that boot go at once."""
        for node in more_than_zone_holds(self.nodes.values(), zone, self.fleet.zones.most(zone, self.now_s)):
            if not node.ready:
                self._lose(node)
                continue
            node.doomed_s = self.now_s + NOTICE_S
            self._agenda.add(node.doomed_s, Event("reclaim", node))
            self._tell("notice", node.id)
        self._watch(zone)

    def _lose(self, node: WorldNode) -> None:
        self._end(node, "reclaimed", "reclaimed")
        self._tell("lost", node.id)
        if self.faults.replace_lost or node.machine.pool.relaunches:
            self._replace(node)
        else:
            self.fleet.desired[node.pool] -= 1

    def _replace(self, lost: WorldNode) -> None:
        try:
            self._launch(lost.pool, lost.zone)
        except Denied:
            self._agenda.add(self.now_s + REPLACE_AGAIN_S, Event("replace", lost))
        else:
            self.fleet.desired[lost.pool] -= 1

    def _end(self, node: WorldNode, why: StopReason, reason: str) -> None:
        stopped = self._workload.clear(node, why, self.now_s)
        self.fleet.end(node, self.now_s)
        self._journal.terminate(self.now_s, node, reason)
        self._workload.resume(stopped, self.now_s, self.moment(self.now_s))

    def _due(self, kind: PodEnding, job: WorldJob, in_s: Seconds) -> None:
        self._agenda.add(self.now_s + in_s, Event(kind, job=job, start=job.starts))
        self.advance(self.now_s)

    def _started(self, job: WorldJob) -> None:
        self._agenda.add(job.due_s, Event("done", job=job, start=job.starts))

    def _waits(self, job: WorldJob) -> None:
        self._tell("pending", job.id)
