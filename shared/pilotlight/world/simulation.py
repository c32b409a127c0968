"""The world: a discrete-event simulation of a cluster and its cloud, with pods, nodes, money and bad luck.

The rules are those of a replay: a node is paid from the launch request and takes work once booted; a job binds
at once to the ready node the scheduler chooses; what has started runs to its end unless its node is taken.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from pilotlight.errors import BadInput, BadRequest, Busy
from pilotlight.facts.workload import PodDemand, PodShape
from pilotlight.units import Seconds, Usd, count_of
from pilotlight.world.faults import Faults
from pilotlight.world.scheduling.scheduler import Need
from pilotlight.world.spot_zones import MICRO_S
from pilotlight.world.world_events import Event, WorldEvents
from pilotlight.world.world_nodes import WorldJob, WorldNode


class World(WorldEvents):
    """A cluster with the cloud it runs on.

    Deterministic by ``seed`` and the calls made. Spot in ``zones`` is to be had as it was recorded there.
    ``log`` receives the records of a replay's log, in time order; ``on_change`` are called after each change and must
    not call back into the world. The collections are to be read, not written: ``nodes`` (live, by id), ``idle`` (ready,
    without a job), ``running``, ``pending``, ``resting`` (jobs by id) and ``finished``.
    """

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
                raise Busy(f"node {node_id} runs {count_of(len(node.jobs), 'job')}: let them end first")
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
                raise Busy(f"node {node_id} runs {count_of(len(node.jobs), 'job')}: let them end first")
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
                self._agenda.add(node.doomed_s, Event("reclaim", node))
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
        """Until when what a node shows stays so, if nothing else happens: checkpoints, pulls, finished pods."""
        telling = [job for job in node.jobs.values() if job.tells]
        soonest_s = [job.next_kept_s(self.now_s, self._workload.checkpoint_s(job)) - MICRO_S for job in telling]
        soonest_s += [at_s for job in node.jobs.values() if (at_s := job.start_s + job.pull_s) > self.now_s]
        return min([*soonest_s, *(until_s for _, until_s in node.ends if until_s > self.now_s)], default=math.inf)

    def cordon(self, node_id: str, on: bool = True, by: str = "") -> None:
        """Let nothing new bind to a node, or let it bind again. Raises ``BadRequest`` for a node that is not there.

        ``by`` is noted on it, and goes with our mark: where a person takes that off it stays.
        """
        with self._lock:
            node = self._node(node_id)
            node.closed_by = (by or node.closed_by) if on else ("" if node.cordoned else node.closed_by)
            node.cordoned = on
            self._turn(node)

    def open_by_hand(self, node_id: str) -> None:
        """A person takes our mark and their own cordon off a node."""
        with self._lock:
            node = self._node(node_id)
            node.cordoned = node.shut = False
            self._turn(node)

    def forget_opened(self, node_id: str) -> None:
        """Take the note off a node, where a person took our mark off."""
        with self._lock:
            node = self._node(node_id)
            node.closed_by = node.closed_by if node.cordoned else ""
            self._turn(node)

    def cordon_by_hand(self, node_id: str, on: bool = True) -> None:
        """The same by a person's hand, beside our own mark."""
        with self._lock:
            node = self._node(node_id)
            node.shut = on
            self._turn(node)

    def set_home(self, node_id: str, home: str) -> None:
        """Our home taint on a node gets this value, by anybody's hand; where it is empty the taint is taken off."""
        with self._lock:
            self._workload.set_home(self._node(node_id), home)
            self._workload.bind(self.now_s)

    def tolerate(self, uid: str, home: str) -> None:
        """A pod that waits is given the toleration of a home, and is tried again at once. Any other stays as it is."""
        with self._lock:
            self._workload.tolerate(uid, home)
            self._workload.bind(self.now_s)

    def need(self, shape: PodShape) -> Need:
        """Needs of a shape, to ask machines and rooms with."""
        return self._workload.scheduler.need(shape)

    def fits_elsewhere(self, node_id: str) -> bool:
        """True where all pods of a node would find room on the other nodes now."""
        with self._lock:
            return self._workload.fits_elsewhere(self._node(node_id))

    def set_faults(self, faults: Faults) -> None:
        """Let other things go wrong from now on; what was drawn before stays drawn."""
        with self._lock:
            woken = self.faults.silent and not faults.silent
            self.faults = self.fleet.faults = self._workload.faults = faults
            self._errors = list(faults.api_errors)
            for node in self.nodes.values():
                node.value = None
            if woken:
                self._workload.look_again(self.nodes.values(), self.now_s)

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
