"""The world: a discrete-event simulation of a cluster and its cloud, with pods, nodes, money and bad luck.

The rules are those of a replay: a node is paid from the launch request and takes work once booted; a job binds
at once to the ready node the scheduler chooses; what has started runs to its end unless its node is taken.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import RLock
from typing import Literal, NamedTuple

from pilotlight.errors import BadInput, BadRequest, Busy, Denied
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.facts.workload import PodDemand, PodShape
from pilotlight.units import Seconds, Usd
from pilotlight.world.agenda import Agenda
from pilotlight.world.evictions import Evictions, PodEnding
from pilotlight.world.faults import Faults
from pilotlight.world.fleet import Fleet
from pilotlight.world.journal import Journal, Log, StopReason
from pilotlight.world.machines import WorldPool
from pilotlight.world.residents import Residents
from pilotlight.world.scheduling.scheduler import Need
from pilotlight.world.spot_zones import MICRO_S, NOTICE_S, beyond
from pilotlight.world.world_clock import VirtualClock, WorldClock
from pilotlight.world.world_jobs import Workload
from pilotlight.world.world_nodes import WorldJob, WorldNode

REPLACE_AGAIN_S = 60.0
"""How soon a pool that could not replace a lost node asks again."""


What = Literal["pending", "done", "joined", "ready", "notice", "lost"]


class Change(NamedTuple):
    """Something that happened to a job (pending, done) or to a node (the others)."""

    t: Seconds
    what: What
    subject: str


class _Event(NamedTuple):
    kind: Literal["done", "join", "ready", "close", "notice", "reclaim", "replace", "saved", "stop", "fall"]
    node: WorldNode | None = None
    job: WorldJob | None = None
    start: int = 0
    zone: str = ""


class World:
    """A cluster with the cloud it runs on.

    Deterministic by ``seed`` and the calls made. Spot in ``zones`` is to be had as it was recorded there.
    ``log`` receives the records of a replay's log, in time order; ``on_change`` are called after each change and must
    not call back into the world. The collections are to be read, not written: ``nodes`` (live, by id), ``idle`` (ready,
    without a job), ``running``, ``pending``, ``resting`` (jobs by id) and ``finished``.
    """

    def __init__(
        self,
        catalog: Catalog,
        pools: Sequence[WorldPool],
        *,
        seed: int = 0,
        zones: Sequence[ZoneHistory] = (),
        faults: Faults | None = None,
        clock: WorldClock | None = None,
        spread: bool = False,
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
        self._agenda: Agenda[_Event] = Agenda(self._still)
        self._workload = Workload(
            self.faults,
            self._journal,
            spread=spread,
            there=lambda: [node for node in self.nodes.values() if node.joined],
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

    def submit(
        self,
        demands: PodDemand | Sequence[PodDemand],
        run_s: Seconds,
        *,
        job: str | None = None,
        since_s: Seconds | None = None,
        ttl_s: Seconds | None = None,
    ) -> WorldJob:
        """Create one pod, or all pods of one gang, that run ``run_s`` seconds. Binds at once where there is room.

        ``since_s`` is when the job was submitted, if it was held back until now: its wait begins there. For ``ttl_s``
        the pods are shown once they have finished: for ever where it is None; at 0 they vanish at their end.
        """
        pods = (demands,) if isinstance(demands, PodDemand) else tuple(demands)
        if not pods:
            raise BadInput("a job needs at least one pod")
        with self._lock:
            since_s = self.now_s if since_s is None else since_s
            return self._workload.submit(job or pods[0].uid, pods, run_s, since_s, self.now_s, ttl_s)

    def launch(self, pool: str, n: int = 1, zone: str = "") -> list[str]:
        """Request ``n`` nodes of a pool; their ids. What was launched before an error stays: nothing of an atomic one.

        Raises ``NoCapacity``, ``QuotaExceeded``, or ``BadRequest`` for a pool that is not there.
        """
        with self._lock:
            machine = self.fleet.machine(pool, zone)
            if machine.pool.atomic:
                self.fleet.admit(machine, self.now_s, n)
            return [self._light(pool, zone).id for _ in range(n)]

    def terminate(self, node_id: str, reason: str, *, evict: bool = False) -> None:
        """Give a node back. With ``evict`` its jobs return to the queue; without, they raise ``Busy``."""
        with self._lock:
            if node_id in self.fleet.standing:
                self._forget(self.fleet.standing[node_id], reason)
                return
            node = self._node(node_id)
            if node.jobs and not evict:
                raise Busy(f"node {node_id} runs {len(node.jobs)} jobs: let them end first")
            self.fleet.desired[node.pool] -= 1
            self._end(node, "evicted", reason)
            self._workload.bind(self.now_s)

    def stop(self, node_id: str) -> None:
        """Stop a node without work: it leaves the cluster and stands by. Raises ``Busy``, or ``BadRequest``."""
        with self._lock:
            node = self._node(node_id)
            if not node.machine.stops:
                raise BadRequest(f"node {node_id} cannot be stopped: its cloud can only give it back")
            if node.jobs:
                raise Busy(f"node {node_id} runs {len(node.jobs)} jobs: let them end first")
            self.fleet.desired[node.pool] -= 1
            self._workload.clear(node, "evicted", self.now_s)
            self.fleet.stop(node, self.now_s)
            self._journal.standby(self.now_s, node)

    def shut_down(self) -> None:
        """Give every node back, whatever runs there: a run is over."""
        with self._lock:
            for node_id in [*self.nodes, *self.fleet.standing]:
                self.terminate(node_id, "the run is over", evict=True)

    def finish(self, job: str) -> None:
        """A running job is done, sooner than it said."""
        with self._lock:
            self._workload.finish(self.running[job], self.now_s)

    def rest(self, job: WorldJob) -> None:
        """Put a job that runs or waits to rest: its pods go, and none come in their place."""
        with self._lock:
            self._workload.rest(job, self.now_s)
            self._workload.bind(self.now_s)

    def delete(self, job: WorldJob) -> None:
        """Delete a job that runs or waits: a scale-down by KEDA or an HPA, a rollout's old pods, a stopped notebook."""
        with self._lock:
            self._workload.delete(job, self.now_s)
            self._workload.bind(self.now_s)

    def wake(self, job: WorldJob) -> None:
        """New pods for a job that rests."""
        with self._lock:
            self._workload.wake(job, self.now_s, self.moment(self.now_s))

    def interrupt(self, node_id: str, notice_s: Seconds) -> Seconds:
        """The cloud says that it takes a node after ``notice_s``; when that is. A node it takes sooner stays so."""
        with self._lock:
            node = self._node(node_id)
            if node.doomed_s is None or node.doomed_s > self.now_s + notice_s:
                node.doomed_s = self.now_s + notice_s
                self._agenda.add(node.doomed_s, _Event("reclaim", node))
                self._tell("notice", node.id)
                self.advance(self.now_s)
            return node.doomed_s

    def recommend(self, node_id: str) -> None:
        """The cloud says that it may take a node soon."""
        with self._lock:
            self._node(node_id).at_risk = True

    def kept_at(self, job: WorldJob) -> datetime | None:
        """When the work was done that a running job's last checkpoint keeps; None before the first of this run."""
        kept_s = job.kept_s(self.now_s, self._workload.checkpoint_s(job))
        return self.moment(job.start_s + job.restore_s + kept_s - job.saved_s) if kept_s > job.saved_s else None

    def kept_until_s(self, node: WorldNode) -> Seconds:
        """Until when what a node shows stays so, if nothing else happens: last checkpoints, and pods that finished."""
        telling = [job for job in node.jobs.values() if job.tells]
        soonest_s = [job.next_kept_s(self.now_s, self._workload.checkpoint_s(job)) - MICRO_S for job in telling]
        return min([*soonest_s, *(until_s for _, until_s in node.ends if until_s > self.now_s)], default=math.inf)

    def cordon(self, node_id: str, on: bool = True) -> None:
        """Let nothing new bind to a node, or let it bind again. Raises ``BadRequest`` for a node that is not there."""
        with self._lock:
            node = self._node(node_id)
            node.cordoned = on
            self._turn(node)

    def shut(self, node_id: str, on: bool = True) -> None:
        """The same by a person's hand, beside our own mark."""
        with self._lock:
            node = self._node(node_id)
            node.shut = on
            self._turn(node)

    def steer(self, node_id: str, on: bool = True) -> None:
        """The same by our placement taint."""
        with self._lock:
            node = self._node(node_id)
            node.steered = on
            self._turn(node)

    def need(self, shape: PodShape) -> Need:
        """What a shape needs, to ask machines and rooms with."""
        return self._workload.scheduler.need(shape)

    def fits_elsewhere(self, node_id: str) -> bool:
        """Whether all pods of a node would find room on the other nodes now."""
        with self._lock:
            return self._workload.fits_elsewhere(self._node(node_id))

    def set_faults(self, faults: Faults) -> None:
        """Let other things go wrong from now on; what was drawn before stays drawn."""
        with self._lock:
            self.faults = self.fleet.faults = self._workload.faults = faults
            self._errors = list(faults.api_errors)
            for node in self.nodes.values():
                node.value = None

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

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """One call of an API: alone, at the clock's moment, and failing first where the faults say so."""
        with self._lock:
            self.sync()
            for index, (method, error) in enumerate(self._errors):
                if method == name:
                    del self._errors[index]
                    raise error
            yield

    @property
    def lock(self) -> RLock:
        """Held by every call: whoever holds it sees one moment, and nothing happens meanwhile."""
        return self._lock

    @property
    def pending(self) -> Mapping[str, WorldJob]:
        """Jobs that wait, by id."""
        return self._workload.waiting.jobs

    @property
    def booting(self) -> list[WorldNode]:
        """Instances that the cluster does not have yet."""
        return [n for n in self.nodes.values() if not n.joined]

    @property
    def launches(self) -> int:
        """Nodes requested so far."""
        return self.fleet.launches

    @property
    def terminations(self) -> int:
        """Nodes that have ended so far."""
        return self.fleet.terminations

    @property
    def used_milli(self) -> int:
        """Thousandths of GPUs in use."""
        return self._workload.used_milli

    @property
    def interruptions(self) -> int:
        """Runs stopped before their end so far."""
        return self._workload.interruptions

    @property
    def lost_gpu_seconds(self) -> float:
        """Run time since the last checkpoint of every interrupted run, plus restores."""
        return self._workload.lost_gpu_seconds

    @property
    def wakes(self) -> int:
        """Stopped nodes that were started so far."""
        return self.fleet.wakes

    def standby_cost(self) -> Usd:
        """Dollars for the disks of stopped nodes so far, which are part of ``cost``."""
        return self.fleet.standby_cost(self.now_s)

    def cost(self) -> Usd:
        """Dollars for every node so far."""
        return self.fleet.cost(self.now_s)

    def gpu_seconds_paid(self) -> float:
        """GPU-seconds paid for so far."""
        return self.fleet.gpu_seconds(self.now_s)

    def moment(self, at_s: Seconds) -> datetime:
        """A second of the world as a moment."""
        return self.clock.start + timedelta(seconds=at_s)

    def _turn(self, node: WorldNode) -> None:
        """Open or close it as it says. Binds that are on their way to it may still land."""
        node.value = None
        if node.kept and self.faults.bind_s:
            self._agenda.add(self.now_s + self.faults.bind_s, _Event("close", node))
        else:
            self._close(node)

    def _close(self, node: WorldNode) -> None:
        node.closed = node.kept
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

    def _tell(self, what: What, subject: str) -> None:
        for listener in self.on_change:
            listener(Change(self.now_s, what, subject))

    def _still(self, event: _Event) -> bool:
        if event.job is not None:
            return event.job.id in self.running and event.job.starts == event.start
        # A node that was stopped and started again is another than the one that the event was of.
        return event.kind in ("replace", "fall") or (
            event.node is not None and self.nodes.get(event.node.id) is event.node
        )

    def _happen(self, event: _Event) -> None:
        match event:
            case _Event("done", job=WorldJob() as job):
                self._workload.finish(job, self.now_s)
                self._tell("done", job.id)
            case _Event("join", node=WorldNode() as node):
                self._join(node)
            case _Event("ready", node=WorldNode() as node):
                self._ready(node)
            case _Event("saved", job=WorldJob() as job):
                self.evictions.saved(job)
            case _Event("stop", job=WorldJob() as job):
                self.evictions.stop(job, self.now_s, self.moment(self.now_s))
            case _Event("close", node=WorldNode() as node):
                self._close(node)
            case _Event("notice", node=WorldNode() as node):
                node.doomed_s = min(node.doomed_s or math.inf, self.now_s + self.faults.notice_s)
                self._tell("notice", node.id)
            case _Event("reclaim", node=WorldNode() as node):
                self._lose(node)
            case _Event("replace", node=WorldNode() as node):
                self._replace(node)
            case _Event("fall", zone=zone):
                self._fall(zone)

    def _light(self, pool: str, zone: str) -> WorldNode:
        """Start a stopped node where there is one, else launch."""
        able = self.fleet.able(self.fleet.machine(pool, zone), self.now_s) if self.fleet.standing else []
        if not able:
            return self._launch(pool, zone)
        node = self.fleet.wake(able[0], self.now_s)
        self.fleet.desired[pool] += 1
        self._journal.wake(self.now_s, node)
        self._agenda.add(self.now_s + (node.machine.wake_s or 0.0), _Event("join", node))
        return node

    def _forget(self, stopped: WorldNode, reason: str) -> None:
        self.fleet.forget(stopped, self.now_s)
        self.fleet.terminations += 1
        self._journal.terminate(self.now_s, stopped, reason)

    def _launch(self, pool: str, zone: str) -> WorldNode:
        node = self.fleet.begin(self.fleet.machine(pool, zone), self.now_s)
        self.fleet.desired[pool] += 1
        self._journal.launch(self.now_s, node)
        self._agenda.add(node.launched_s + self.fleet.boot_s(node.machine), _Event("join", node))
        taken_at_s = self.fleet.taken_at_s(node)
        if taken_at_s is not None:
            self._agenda.add(taken_at_s, _Event("reclaim", node))
            if self.faults.notice_s:
                self._agenda.add(max(self.now_s, taken_at_s - self.faults.notice_s), _Event("notice", node))
        return node

    def _join(self, node: WorldNode) -> None:
        node.joined = True
        self._tell("joined", node.id)
        if node.ready_s <= self.now_s:
            self._ready(node)
        else:
            self._agenda.add(node.ready_s, _Event("ready", node))

    def _ready(self, node: WorldNode) -> None:
        node.ready = True
        node.value = None
        self._journal.ready(self.now_s, node)
        self._workload.arrive(node, self.now_s)
        self._tell("ready", node.id)
        self._workload.bind(self.now_s)

    def _watch(self, zone: str) -> None:
        """Look when a zone next has less room."""
        at_s = self.fleet.zones.next_fall_s(zone, self.now_s)
        if at_s is not None:
            self._agenda.add(at_s, _Event("fall", zone=zone))

    def _fall(self, zone: str) -> None:
        """A zone has less room now: ready nodes beyond it get their notice, those that boot go at once."""
        for node in beyond(self.nodes.values(), zone, self.fleet.zones.most(zone, self.now_s)):
            if not node.ready:
                self._lose(node)
                continue
            node.doomed_s = self.now_s + NOTICE_S
            self._agenda.add(node.doomed_s, _Event("reclaim", node))
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
            self._agenda.add(self.now_s + REPLACE_AGAIN_S, _Event("replace", lost))
        else:
            self.fleet.desired[lost.pool] -= 1

    def _end(self, node: WorldNode, why: StopReason, reason: str) -> None:
        stopped = self._workload.clear(node, why, self.now_s)
        self.fleet.end(node, self.now_s)
        self._journal.terminate(self.now_s, node, reason)
        self._workload.resume(stopped, self.now_s, self.moment(self.now_s))

    def _due(self, kind: PodEnding, job: WorldJob, in_s: Seconds) -> None:
        self._agenda.add(self.now_s + in_s, _Event(kind, job=job, start=job.starts))
        self.advance(self.now_s)

    def _started(self, job: WorldJob) -> None:
        self._agenda.add(job.due_s, _Event("done", job=job, start=job.starts))

    def _waits(self, job: WorldJob) -> None:
        self._tell("pending", job.id)
