"""The cluster's jobs: those that wait, those that run and where, and those that have finished."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from pilotlight.errors import BadInput
from pilotlight.facts.workload import PodDemand
from pilotlight.units import MILLI_PER_GPU, Seconds
from pilotlight.world.faults import Faults
from pilotlight.world.journal import Journal, StopReason
from pilotlight.world.scheduling.scheduler import Scheduler
from pilotlight.world.scheduling.waiting_jobs import Asks, Needs, Waiting
from pilotlight.world.world_nodes import Binding, WorldJob, WorldNode


class Workload:
    """Jobs on the nodes of a world. ``on_start`` and ``on_wait`` are told of a job that begins to run or to wait.

    ``idle`` holds ready nodes without a job, in the order in which they became so.
    """

    def __init__(
        self,
        faults: Faults,
        journal: Journal,
        *,
        scheduler: Scheduler,
        on_start: Callable[[WorldJob], None],
        on_wait: Callable[[WorldJob], None],
    ) -> None:
        self.waiting = Waiting()
        self.running: dict[str, WorldJob] = {}
        self.finished: list[WorldJob] = []
        self.resting: dict[str, WorldJob] = {}
        self.idle: dict[str, WorldNode] = {}
        self.used_milli = 0
        self.interruptions = 0
        self.lost_gpu_seconds = 0.0
        self.scheduler = scheduler
        self.faults = faults
        self._journal = journal
        self._on_start = on_start
        self._on_wait = on_wait
        self._submits = 0
        self._roomier: list[WorldNode] = []
        self._minding = self._stirred = False

    def submit(
        self,
        name: str,
        pods: Sequence[PodDemand],
        run_s: Seconds,
        since_s: Seconds,
        now_s: Seconds,
        ttl_s: Seconds | None = None,
    ) -> WorldJob:
        """A new job, whose wait began at ``since_s``. Raises ``BadInput`` for a name in use."""
        if name in self.running or name in self.waiting.jobs or name in self.resting:
            raise BadInput(f"job {name} is in the world already: name it otherwise")
        self._submits += 1
        job = WorldJob(name, pods, run_s, since_s, self._submits)
        job.ttl_s = ttl_s
        self._enter(job, now_s)
        if self._stirred:
            self.bind(now_s)
        return job

    def finish(self, job: WorldJob, now_s: Seconds) -> None:
        """A job has run to its end."""
        for node in _nodes(job.placement):
            node.show_finished(now_s, job.ttl_s)
        self._leave(job, now_s)
        self.lost_gpu_seconds += job.restore_s * job.milli / MILLI_PER_GPU
        job.finish_s = now_s
        self.finished.append(job)
        self._journal.stop(now_s, job, "done")

    def arrive(self, node: WorldNode, now_s: Seconds) -> None:
        """A node takes work from now on."""
        node.idle_since_s = now_s
        self.idle[node.id] = node
        self.open(node)

    def open(self, node: WorldNode) -> None:
        """Let pods bind to a node, unless it is not ready; to a closed one those that tolerate everything."""
        self.scheduler.remove(node)
        if node.ready and not node.fresh:
            self.scheduler.add(node)
            self._roomier.append(node)

    def set_home(self, node: WorldNode, home: str) -> None:
        """A node takes the pods of this home from now on; all where it is empty."""
        self.scheduler.remove(node)
        node.home, node.value = home, None
        self.open(node)

    def tolerate(self, uid: str, home: str) -> None:
        """A pod that waits tolerates a home too; one that does not wait, or did before, stays as it is."""
        job = self.waiting.of_pod(uid)
        if job is None or any(d.uid == uid and home in d.homes for d in job.demands):
            return
        self.waiting.remove(job)
        job.tolerate(uid, home)
        self.waiting.add(self._asks(job), job)
        self._roomier.extend(self.scheduler.homes_of(home))

    def clear(self, node: WorldNode, why: StopReason, now_s: Seconds) -> list[WorldJob]:
        """Stop all that runs on a node that ends; the jobs that ``resume`` is to queue again."""
        self.scheduler.remove(node)
        stopped = list(node.jobs.values())
        for job in stopped:
            self._interrupt(job, why, now_s)
        self.idle.pop(node.id, None)
        self._stirred = self._minding
        return stopped

    def evict(self, job: WorldJob, now_s: Seconds, now: datetime) -> None:
        """Stop one job that runs, wherever its pods are, and queue it again."""
        self._interrupt(job, "evicted", now_s)
        self.resume([job], now_s, now)

    def rest(self, job: WorldJob, now_s: Seconds) -> None:
        """Its pods go, and none come in their place until it is woken."""
        if job.id in self.running:
            self._interrupt(job, "rested", now_s)
        else:
            self.waiting.remove(job)
        self.resting[job.id] = job

    def delete(self, job: WorldJob, now_s: Seconds) -> None:
        """Its pods are deleted before their end, and none come any more."""
        if job.id in self.running:
            self._interrupt(job, "deleted", now_s)
        else:
            self.waiting.remove(job)

    def wake(self, job: WorldJob, now_s: Seconds, now: datetime) -> None:
        """New pods for one that rests: somebody works with it again."""
        del self.resting[job.id]
        job.busy_s = None
        self.resume([job], now_s, now)

    def running_pod(self, which: Callable[[PodDemand], bool]) -> WorldJob | None:
        """The running job of a pod."""
        return next((job for job in self.running.values() if any(map(which, job.demands))), None)

    def checkpoint_s(self, job: WorldJob) -> Seconds:
        """The run time between a job's checkpoints: its own, else the world's."""
        return job.demands[0].shape.checkpoint_s or self.faults.checkpoint_s

    def resume(self, jobs: Sequence[WorldJob], now_s: Seconds, now: datetime) -> None:
        """New pods for jobs that were stopped: the scheduler tries those after all that wait (PrioritySort)."""
        self.bind(now_s)
        for job in jobs:
            self._submits += 1
            job.respawn(now, self._submits)
            self._enter(job, now_s)

    def bind(self, now_s: Seconds) -> None:
        """Start what waits and fits, now that some nodes have more room, or other pods near by."""
        while not self.faults.silent and (self._roomier or self._stirred):
            roomier = [n for n in self._roomier if self.scheduler.takes_pods(n)]
            stirred, self._stirred = self._stirred, False
            self._roomier.clear()
            if (roomier or stirred) and self.waiting.jobs:
                self._serve(roomier, now_s, stirred=stirred)

    def look_again(self, nodes: Iterable[WorldNode], now_s: Seconds) -> None:
        """The scheduler is back: all that waits is tried on all nodes."""
        self._roomier.extend(nodes)
        self.bind(now_s)
        for job in self.waiting.jobs.values():
            job.refuse()

    def _serve(self, roomier: Sequence[WorldNode], now_s: Seconds, *, stirred: bool) -> None:
        homes = dict.fromkeys(node.home for node in roomier if node.home)
        open_ = [node for node in roomier if not node.home]

        def helps(needs: Needs) -> bool:
            if (stirred and any(need.minds for need in needs)) or (homes and any(need.bears_all for need in needs)):
                return True
            return any(need.allows(n.machine) and need.fits(n.room) for need in dict.fromkeys(needs) for n in open_)

        def start(asks: Asks, job: WorldJob) -> bool:
            suits = any(ask.suits(node) for ask in dict.fromkeys(asks) for node in roomier)
            return (suits or (stirred and any(ask.need.minds for ask in asks))) and self._start(job, now_s)

        self.waiting.serve(start, helps, homes)

    def fits_elsewhere(self, node: WorldNode) -> bool:
        """True where all pods of a node would find room on the other nodes now."""
        here = self.scheduler.takes_pods(node)
        self.scheduler.remove(node)
        groups, node.groups = node.groups, Counter()
        trial = self.scheduler.place(p.demand for j in node.jobs.values() for p in j.placement if p.node is node)
        for placement in trial or ():
            self.scheduler.free(placement)
        node.groups = groups
        if here:
            self.scheduler.add(node)
        return trial is not None

    def _enter(self, job: WorldJob, now_s: Seconds) -> None:
        if not self._start(job, now_s):
            if not self.faults.silent:
                job.refuse()
            asks = self._asks(job)
            self._minding = self._minding or any(ask.need.minds for ask in asks)
            self.waiting.add(asks, job)
            self._on_wait(job)

    def _asks(self, job: WorldJob) -> Asks:
        return tuple(map(self.scheduler.ask, job.demands))

    def _start(self, job: WorldJob, now_s: Seconds) -> bool:
        placement = self.scheduler.place(job.demands) if not self.faults.silent else None
        if placement is None:
            return False
        job.begin(now_s, placement, self.faults.restore_s, self._pulled(placement) if self.faults.pulls else 0.0)
        self.running[job.id] = job
        self.used_milli += job.milli
        self._stirred = self._minding
        for node in _nodes(placement):
            node.jobs[job.id] = job
            node.idle_since_s = None
            self.idle.pop(node.id, None)
        self._journal.start(now_s, job)
        self._on_start(job)
        return True

    def _pulled(self, placement: Sequence[Binding]) -> Seconds:
        """Seconds until all nodes of a placement have the images of its pods, which they have from now on."""
        longest_s = 0.0
        for node, demand, _ in placement:
            if demand.image not in node.images:
                longest_s = max(longest_s, self.faults.pulls.get(demand.image, 0.0))
                node.images.add(demand.image)
        return longest_s

    def _interrupt(self, job: WorldJob, why: StopReason, now_s: Seconds) -> None:
        self._leave(job, now_s)
        lost_s = job.interrupt(now_s, self.checkpoint_s(job))
        self.lost_gpu_seconds += lost_s * job.milli / MILLI_PER_GPU
        self.interruptions += 1
        self._journal.stop(now_s, job, why)

    def _leave(self, job: WorldJob, now_s: Seconds) -> None:
        del self.running[job.id]
        self._stirred = self._minding
        self.used_milli -= job.milli
        for placement in job.placement:
            self.scheduler.free(placement)
        for node in _nodes(job.placement):
            del node.jobs[job.id]
            self._roomier.append(node)
            if not node.jobs:
                node.idle_since_s = now_s
                self.idle[node.id] = node
        job.placement = []


def _nodes(placement: Sequence[Binding]) -> list[WorldNode]:
    return list({p.node.id: p.node for p in placement}.values())
