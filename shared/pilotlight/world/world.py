"""The world: a discrete-event simulation of a cluster and its cloud, with pods, nodes, money and bad luck.

The rules are those of a replay: a node is paid from the launch request and takes work once booted; a job binds
at once to the ready node the scheduler chooses; what has started runs to its end unless its node is taken.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import RLock
from typing import Literal, NamedTuple

from pilotlight.errors import BadInput, BadRequest, Busy, Denied
from pilotlight.facts.catalog import Catalog
from pilotlight.facts.workload import PodDemand, PodShape
from pilotlight.units import Seconds, Usd
from pilotlight.world.agenda import Agenda
from pilotlight.world.clock import VirtualClock, WorldClock
from pilotlight.world.faults import Faults
from pilotlight.world.fleet import Fleet
from pilotlight.world.journal import Journal, Log, StopReason
from pilotlight.world.nodes import Placement, WorldJob, WorldNode, WorldPool
from pilotlight.world.scheduler import Need, Scheduler
from pilotlight.world.waiting import Waiting

REPLACE_AGAIN_S = 60.0
"""How soon a pool that could not replace a lost node asks again."""


class Change(NamedTuple):
    """Something that happened to a job (pending, done) or to a node (the others)."""

    t: Seconds
    what: Literal["pending", "done", "joined", "ready", "notice", "lost"]
    subject: str


class _Event(NamedTuple):
    kind: Literal["done", "join", "ready", "notice", "reclaim", "replace"]
    node: WorldNode | None = None
    job: WorldJob | None = None
    start: int = 0


class World:
    """A cluster with the cloud it runs on.

    Deterministic by ``seed`` and the calls made. ``log`` receives the records of a replay's log, in time order;
    ``on_change`` are called after each change and must not call back into the world. The collections are to be
    read, not written: ``nodes`` (live, by id), ``idle`` (ready, without a job), ``running``, ``pending`` (jobs
    by id) and ``finished``. ``lost_gpu_seconds`` is run time since the last checkpoint, plus restores;
    ``interruptions`` counts runs that were stopped before their end.
    """

    def __init__(
        self,
        catalog: Catalog,
        pools: Sequence[WorldPool],
        *,
        seed: int = 0,
        faults: Faults | None = None,
        clock: WorldClock | None = None,
        spread: bool = False,
        log: Log | None = None,
    ) -> None:
        self.faults = faults or Faults()
        self.clock: WorldClock = clock or VirtualClock(catalog.as_of)
        self.now_s: Seconds = self.clock.elapsed_s()
        self.fleet = Fleet(catalog, pools, self.faults, seed)
        self.nodes = self.fleet.nodes
        self.idle: dict[str, WorldNode] = {}
        self.running: dict[str, WorldJob] = {}
        self.finished: list[WorldJob] = []
        self.interruptions = 0
        self.lost_gpu_seconds = 0.0
        self.used_milli = 0
        self.on_change: list[Callable[[Change], None]] = []
        self._journal = Journal(log)
        self._lock = RLock()
        self._agenda: Agenda[_Event] = Agenda(self._still)
        self._scheduler = Scheduler(spread=spread)
        self._waiting = Waiting()
        self._submits = 0
        self._roomier: list[WorldNode] = []
        self._errors = list(self.faults.api_errors)

    def submit(
        self,
        demands: PodDemand | Sequence[PodDemand],
        run_s: Seconds,
        *,
        job: str | None = None,
        since_s: Seconds | None = None,
    ) -> WorldJob:
        """Create one pod, or all pods of one gang, that run ``run_s`` seconds. Binds at once where there is room.

        ``since_s`` is when the job was submitted, if it was held back until now: its wait begins there.
        """
        pods = (demands,) if isinstance(demands, PodDemand) else tuple(demands)
        if not pods:
            raise BadInput("a job needs at least one pod")
        with self._lock:
            name = job or pods[0].uid
            if name in self.running or name in self._waiting.jobs:
                raise BadInput(f"job {name} is in the world already: name it otherwise")
            self._submits += 1
            made = WorldJob(name, pods, run_s, self.now_s if since_s is None else since_s, self._submits)
            self._enter(made)
            return made

    def launch(self, pool: str, n: int = 1, zone: str = "") -> list[str]:
        """Request ``n`` nodes of a pool; their ids. What was launched before an error stays.

        Raises ``NoCapacity``, ``QuotaExceeded``, or ``BadRequest`` for a pool that is not there.
        """
        with self._lock:
            return [self._launch(pool, zone).id for _ in range(n)]

    def terminate(self, node_id: str, reason: str, *, evict: bool = False) -> None:
        """Give a node back. With ``evict`` its jobs return to the queue; without, they raise ``Busy``."""
        with self._lock:
            node = self._node(node_id)
            if node.jobs and not evict:
                raise Busy(f"node {node_id} runs {len(node.jobs)} jobs: let them end first")
            self.fleet.desired[node.pool] -= 1
            self._end(node, "evicted", reason)
            self._bind()

    def cordon(self, node_id: str, on: bool = True) -> None:
        """Let nothing new bind to a node, or let it bind again. Raises ``BadRequest`` for a node that is not there."""
        with self._lock:
            node = self._node(node_id)
            node.cordoned = on
            node.value = None
            self._open(node)
            self._bind()

    def need(self, shape: PodShape) -> Need:
        """What a shape needs, to ask machines and rooms with."""
        return self._scheduler.need(shape)

    def fits_elsewhere(self, node_id: str) -> bool:
        """Whether all pods of a node would find room on the other nodes now."""
        with self._lock:
            node = self._node(node_id)
            here = self._scheduler.has(node)
            self._scheduler.remove(node)
            pods = (p.demand for job in node.jobs.values() for p in job.placement if p.node is node)
            trial = self._scheduler.place(pods)
            for placement in trial or ():
                self._scheduler.free(placement)
            if here:
                self._scheduler.add(node)
            return trial is not None

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
                self._bind()
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
    def pending(self) -> Mapping[str, WorldJob]:
        """Jobs that wait, by id."""
        return self._waiting.jobs

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

    def cost(self) -> Usd:
        """Dollars for every node so far."""
        return self.fleet.cost(self.now_s)

    def gpu_seconds_paid(self) -> float:
        """GPU-seconds paid for so far."""
        return self.fleet.gpu_seconds(self.now_s)

    def moment(self, at_s: Seconds) -> datetime:
        """A second of the world as a moment."""
        return self.clock.start + timedelta(seconds=at_s)

    def _node(self, node_id: str) -> WorldNode:
        if node_id not in self.nodes:
            raise BadRequest(f"node {node_id} is not there")
        return self.nodes[node_id]

    def _pass(self, to_s: Seconds) -> None:
        self.now_s = max(self.now_s, to_s)
        if isinstance(self.clock, VirtualClock):
            self.clock.advance(self.now_s)

    def _tell(self, what: Literal["pending", "done", "joined", "ready", "notice", "lost"], subject: str) -> None:
        for listener in self.on_change:
            listener(Change(self.now_s, what, subject))

    def _still(self, event: _Event) -> bool:
        if event.job is not None:
            return event.job.id in self.running and event.job.starts == event.start
        return event.kind == "replace" or (event.node is not None and event.node.id in self.nodes)

    def _happen(self, event: _Event) -> None:
        match event:
            case _Event("done", job=WorldJob() as job):
                self._finish(job)
            case _Event("join", node=WorldNode() as node):
                self._join(node)
            case _Event("ready", node=WorldNode() as node):
                self._ready(node)
            case _Event("notice", node=WorldNode() as node):
                self._tell("notice", node.id)
            case _Event("reclaim", node=WorldNode() as node):
                self._lose(node)
            case _Event("replace", node=WorldNode() as node):
                self._replace(node)

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
        node.idle_since_s = self.now_s
        self.idle[node.id] = node
        self._journal.ready(self.now_s, node)
        self._open(node)
        self._tell("ready", node.id)

    def _open(self, node: WorldNode) -> None:
        self._scheduler.remove(node)
        if node.ready and not node.cordoned:
            self._scheduler.add(node)
            self._roomier.append(node)

    def _lose(self, node: WorldNode) -> None:
        self._end(node, "reclaimed", "reclaimed")
        self._tell("lost", node.id)
        if self.faults.replace_lost:
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
        self._scheduler.remove(node)
        stopped = list(node.jobs.values())
        for job in stopped:
            self._interrupt(job, why)
        self.idle.pop(node.id, None)
        self.fleet.end(node, self.now_s)
        self._journal.terminate(self.now_s, node, reason)
        for job in stopped:
            self._enter(job)

    def _enter(self, job: WorldJob) -> None:
        needs = tuple(self._scheduler.need(d.shape) for d in job.demands)
        if not self._start(job):
            self._waiting.add(needs, job)
            self._tell("pending", job.id)

    def _bind(self) -> None:
        roomier = [n for n in self._roomier if self._scheduler.has(n)]
        self._roomier.clear()

        def start(needs: tuple[Need, ...], job: WorldJob) -> bool:
            helps = any(needs[0].allows(n.machine) and needs[0].fits(n.room) for n in roomier)
            return helps and self._start(job)

        if roomier and self._waiting.jobs:
            self._waiting.serve(start)

    def _start(self, job: WorldJob) -> bool:
        placement = self._scheduler.place(job.demands)
        if placement is None:
            return False
        job.begin(self.now_s, placement, self.faults.restore_s)
        self.running[job.id] = job
        self.used_milli += job.milli
        for node in _nodes(placement):
            node.jobs[job.id] = job
            node.idle_since_s = None
            self.idle.pop(node.id, None)
        self._agenda.add(job.due_s, _Event("done", job=job, start=job.starts))
        self._journal.start(self.now_s, job)
        return True

    def _finish(self, job: WorldJob) -> None:
        self._leave(job)
        job.finish_s = self.now_s
        self.finished.append(job)
        self._journal.stop(self.now_s, job, "done")
        self._tell("done", job.id)

    def _interrupt(self, job: WorldJob, why: StopReason) -> None:
        self._leave(job)
        self.lost_gpu_seconds += job.interrupt(self.now_s, self.faults.checkpoint_s) * job.milli / 1000
        self.interruptions += 1
        self._journal.stop(self.now_s, job, why)
        job.respawn(self.moment(self.now_s))

    def _leave(self, job: WorldJob) -> None:
        del self.running[job.id]
        self.used_milli -= job.milli
        for placement in job.placement:
            self._scheduler.free(placement)
        for node in _nodes(job.placement):
            del node.jobs[job.id]
            self._roomier.append(node)
            if not node.jobs:
                node.idle_since_s = self.now_s
                self.idle[node.id] = node
        job.placement = []


def _nodes(placement: Sequence[Placement]) -> list[WorldNode]:
    return list({p.node.id: p.node for p in placement}.values())
