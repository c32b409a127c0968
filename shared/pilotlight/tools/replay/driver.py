"""Pilotlight over a recorded trace: every event through doorway, codec, flow and decision, on the world's clock."""

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from zlib import crc32

from pilotlight.codec.events import encode
from pilotlight.doorway import Function
from pilotlight.errors import Failed
from pilotlight.facts.messages import InterruptionNotice, PodPending, Tick
from pilotlight.facts.workload import Toleration
from pilotlight.tools.replay.measure import Sampler
from pilotlight.tools.replay.placement_shaping import Affinity
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.scheduling_gates import Gate
from pilotlight.tools.replay.traces.trace_job import Job, Point
from pilotlight.tools.replay.unfinished_jobs import reasons
from pilotlight.tools.replay.world_jobs import demands_of
from pilotlight.units import HOUR, Seconds
from pilotlight.wiring import App
from pilotlight.world.simulation import World
from pilotlight.world.world_events import Change

TICK_S = 60.0
"""A schedule ticks once a minute: what was done is looked at by then."""

LAST_S = 24 * HOUR
"""A run ends at the latest so long after its last job."""

STUCK_S = 32 * 24 * HOUR
"""A run ends too when only waiting jobs are left and none has started for so long: a month's budget has come round."""

HEADERS = {"content-type": "application/cloudevents+json"}


class Driver:
    """Submits the jobs of a trace to a world and carries the events a cluster would send to the front door.

    ``detect_s`` passes between a pod's wait beginning and its event, between a notice and ours, and between any other
    change and a look at it. A look that could change nothing is skipped: nothing happened since the last, and no answer
    named this moment. Of the share ``vanish`` of jobs the pods are deleted at their end: nothing shows that they were.
    """

    def __init__(
        self,
        world: World,
        app: App,
        jobs: Sequence[Job],
        scenario: Scenario,
        *,
        affinity: Affinity,
        sampler: Sampler | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self.world = world
        self.app = app
        self.jobs = deque(jobs)
        self.affinity = affinity
        self.placement = scenario.placement
        self.detect_s = scenario.detect_s
        self.sampler = sampler
        self.on_progress = on_progress
        self.vanish = scenario.vanish
        self.gate = Gate(world, app.deps, self._ttl_s) if scenario.placement == "gated" else None
        # Where nodes are taken back pods tell that they save: without it long ones are refused spot.
        spot = any(pool.capacity_type == "spot" for pool in world.fleet.pools.values())
        self._saves_s = world.faults.checkpoint_s if spot else 0.0
        self._tolerations = _tolerations(world)
        self.why: dict[str, str] = {}
        self.events = 0
        self.ticks = 0
        self._names = {j.job_id: j for j in jobs}
        self._waits: list[tuple[Seconds, int, str]] = []
        self._order = 0
        self._notices: list[tuple[Seconds, int, str]] = []
        self._stirred_s = self._look_at_s = self._after_s = self._rescue_s = math.inf
        self._stirred = True
        faults = world.faults
        self._sure = not (faults.shortage or faults.api_errors or app.policy.budgets or world.fleet.zones.names)
        self._preempts = any("preempt" in rules.may_move for rules in app.policy.classes.values())
        self._moved_s = 0.0
        world.on_change.append(self._changed)

    def run(self) -> None:
        """Until the last job is done and every idle node is released, at the latest a day after.

        ``why`` then says of every job that is left what it waits for.
        """
        last_s: Seconds | None = None
        while True:
            at_s = self._next_s()
            if not self.jobs and not self._waits and not self.world.running and not self.world.pending:
                last_s = self.world.now_s if last_s is None else last_s
                if not self.world.nodes:
                    break
            if at_s == math.inf or self._stuck(at_s) or (last_s is not None and at_s > last_s + LAST_S):
                break
            self._reach(at_s)
        if last_s is not None and self.world.nodes:
            self._reach(last_s + LAST_S)
        self.why = reasons(self.app.deps, self.world.pending)
        self.world.shut_down()

    def _stuck(self, at_s: Seconds) -> bool:
        return not self.jobs and not self.world.running and at_s > self._moved_s + STUCK_S

    def _next_s(self) -> Seconds:
        return min(
            self.jobs[0].submit_s if self.jobs else math.inf,
            self._waits[0][0] if self._waits else math.inf,
            self._notices[0][0] if self._notices else math.inf,
            self._rescue_s,
            self._tick_due_s(),
            self._after_s,
            self.world.next_event_s() or math.inf,
        )

    def _tick_due_s(self) -> Seconds:
        return min(self._stirred_s, self._look_at_s)

    def _reach(self, at_s: Seconds) -> None:
        if self.sampler is not None:
            while self.sampler.due_s() < at_s:
                self.world.advance(self.sampler.due_s())
                self.sampler.take()
        self.world.advance(at_s)
        while self.jobs and self.jobs[0].submit_s <= at_s:
            self._submit(self.jobs.popleft())
        while self._waits and self._waits[0][0] <= at_s:
            self._detected(heapq.heappop(self._waits)[2])
        self._rescues(at_s)
        after = self._after(at_s)
        if self._tick_due_s() <= at_s or after:
            self._look()

    def _after(self, at_s: Seconds) -> bool:
        """True where the tick that comes after something was done is due and has anything to look at.

        It has not where all of it came about and nothing happened since. Where the cloud or a budget may refuse
        something a tick tries it again.
        """
        if self._after_s > at_s:
            return False
        self._after_s = math.inf
        return self._stirred or not self._sure or bool(self.world.pending)

    def _submit(self, job: Job) -> None:
        chosen = self.affinity.types_of(job) if self.placement in ("affinity", "gated") else None
        catalog, start = self.affinity.catalog, self.world.clock.start
        demands = demands_of(
            job, catalog, pinned=chosen, start=start, checkpoint_s=self._saves_s, tolerations=self._tolerations
        )
        self._moved_s = self.world.now_s
        if self.gate is not None:
            self.gate.hold(job, demands)
            self._wait(job.job_id)
        else:
            self.world.submit(demands, job.duration_s, job=job.job_id, ttl_s=self._ttl_s(job.job_id))
            if job.job_id in self.world.running:  # An idle node that was taken is history to learn from.
                self._stir(self.detect_s)

    def _ttl_s(self, job: str) -> Seconds | None:
        """For how long a job's pods are shown once they have finished."""
        return 0.0 if crc32(job.encode()) < self.vanish * 2**32 else None

    def _changed(self, change: Change) -> None:
        self._stirred = True
        if change.what == "pending":
            self._wait(change.subject)
        elif change.what == "done":
            self._moved_s = change.t
            if self.world.idle or self.world.pending:
                self._stir(self.detect_s)
            if self.on_progress is not None:
                self.on_progress(len(self.world.finished))
        elif change.what in ("ready", "lost") or (change.what == "joined" and self.placement == "homes"):
            self._stir(self.detect_s)
        elif change.what == "notice":
            self._order += 1
            heapq.heappush(self._notices, (self.world.now_s + self.detect_s, self._order, change.subject))

    def _stir(self, after_s: Seconds) -> None:
        """Schedule a look so much after what happened, together with what happens until then."""
        self._stirred = True
        self._stirred_s = min(self._stirred_s, self.world.now_s + after_s)

    def _rescues(self, at_s: Seconds) -> None:
        """Notices arrive, and what is done about them is carried on where that is due."""
        told: set[str] = set()
        while self._notices and self._notices[0][0] <= at_s:
            told.add(heapq.heappop(self._notices)[2])
        for node in sorted(told):
            self._noticed(node)
        if self._rescue_s <= at_s:
            self._rescue_s = math.inf
            now = self.world.clock.now()
            self._send("spot_interruption", Tick(cluster=self.app.settings.cluster_name, what="rescue", at=now))

    def _noticed(self, node_id: str) -> None:
        """The cloud's notice that it takes a node arrives, if the node is still there."""
        node = self.world.nodes.get(node_id)
        if node is not None and node.doomed_s is not None:
            cluster, now, at = self.app.settings.cluster_name, self.world.clock.now(), self.world.moment(node.doomed_s)
            self._send(
                "spot_interruption",
                InterruptionNotice(
                    cluster=cluster, instance=node_id, kind="spot-interruption", cloud="world", at=now, deadline=at
                ),
            )

    def _wait(self, job: str) -> None:
        self._order += 1
        heapq.heappush(self._waits, (self.world.now_s + self.detect_s, self._order, job))

    def _detected(self, job: str) -> None:
        """A pod still waits: the cluster's event about it arrives."""
        if self.gate is not None and self.gate.holds(job):
            self._send("pod_pending", self._pending(job, self.gate.show(job)[0].uid))
            self.gate.open(job)
        elif job in self.world.pending:
            self._send("pod_pending", self._pending(job, self.world.pending[job].demands[0].uid))

    def _pending(self, job: str, uid: str) -> PodPending:
        team = self._names[job].team or "default"
        return PodPending(
            cluster=self.app.settings.cluster_name, namespace=team, name=job, uid=uid, at=self.world.clock.now()
        )

    def _look(self) -> None:
        self._stirred_s = self._look_at_s = self._after_s = math.inf
        self._stirred = False
        self.ticks += 1
        self._send("capacity_reconcile", Tick(cluster=self.app.settings.cluster_name, at=self.world.clock.now()))
        if self._preempts and self.world.pending:  # A pod may be asked to give way, and each step is a tick's.
            self._look_at_s = min(self._look_at_s, self.world.now_s + TICK_S)

    def _send(self, function: Function, message: PodPending | Tick | InterruptionNotice) -> None:
        self.events += 1
        answer = self.app.receive(function, encode(message, id=f"e{self.events}"), HEADERS)
        if answer.status != 200 or "why" not in answer.body:
            raise Failed(f"{function} answered {answer.status} at {self.world.now_s:.0f} s: {answer.body}")
        if answer.body["did"]:
            self._after_s = min(self._after_s, self.world.now_s + TICK_S)
        again = answer.body.get("look_again_at")
        if again is not None and function == "spot_interruption":
            self._rescue_s = min(self._rescue_s, max(self._second(again), self.world.now_s + 1))
        elif again is not None:
            self._look_at_s = min(self._look_at_s, max(self._second(again), self.world.now_s + 1))

    def _second(self, moment: str) -> Seconds:
        return (datetime.fromisoformat(moment) - self.world.clock.start).total_seconds()

    def points(self) -> list[Point]:
        """The samples taken."""
        return self.sampler.points if self.sampler is not None else []


def _tolerations(world: World) -> tuple[Toleration, ...]:
    """Those of the pods that a cluster with these pools would have: they bear the pools' own taints."""
    keys = {taint.key for pool in world.fleet.pools.values() for taint in pool.taints}
    return tuple(Toleration(key=key, operator="Exists") for key in sorted(keys))
