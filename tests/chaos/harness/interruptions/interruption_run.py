"""A node is taken from under its work, or a zone's nodes at once, by seed; what is noted of it on the way."""

from datetime import datetime
from random import Random
from typing import Literal, get_args

import msgspec

from harness.interruptions.interruption_scene import KINDS, job, notice_s, setting, zones_of
from harness.scene import CATALOG
from harness.setting import HEADERS
from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import encode
from pilotlight.decide.interruption.drain_plan import CORDON_S
from pilotlight.doorway import Function
from pilotlight.errors import NoCapacity, Unavailable
from pilotlight.facts.interruption.drain_times import MARGIN_S
from pilotlight.facts.interruption.interruption import NOTICE_S
from pilotlight.facts.messages import InterruptionNotice, Message, NoticeKind, Tick
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, SizeGate
from pilotlight.settings import EMBEDDED_CLUSTER, Settings
from pilotlight.units import Seconds
from pilotlight.wiring import app
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_events import Change
from pilotlight.world.world_nodes import WorldJob, WorldNode
from pilotlight.world.world_pools import WorldPools

Broken = Literal[
    "lost_checkpoints",
    "broken_budgets",
    "late_replacements",
    "cordons_past_their_ttl",
    "double_replacements",
    "relaunches_without_demand",
    "stranded_jobs",
    "false_evictions",
    "internal_errors",
]
COUNTED: tuple[Broken, ...] = get_args(Broken)

RESCUE_S: Seconds = 5.0
"""How often rescues are carried on."""
TICK_S: Seconds = 60.0
LATE_S: Seconds = 5.0
"""A notice reaches us so late at most."""
SLACK_S: Seconds = 2 * LATE_S + RESCUE_S + MARGIN_S
"""A checkpoint that takes no more than the notice less this can be saved; one call may fail meanwhile."""
ENOUGH_S: Seconds = 60.0
"""With so much notice a replacement is asked for before the drain."""
QUIET_S: Seconds = 1500.0

_FAILING = ("observe", "cordon", "tell", "evict", "grow", "describe", "release", "bound_pods")
"""Calls that may fail once."""


class _Cluster(WorldCluster):
    """Tells of evictions that came through."""

    def __init__(self, run: "InterruptionRun") -> None:
        super().__init__(run.world)
        self._run = run

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        self._run.evicting(uid)
        super().evict(namespace, pod, uid, grace_s)
        self._run.evicted(uid)


class _Pools(WorldPools):
    """Tells of growth that was asked for, and of what is given back."""

    def __init__(self, run: "InterruptionRun") -> None:
        super().__init__(run.world)
        self._run = run

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        self._run.asked += self._run.struck
        if zone in self._run.down:
            raise NoCapacity(f"nothing is left in {zone}")
        return super().grow(pool, to, zone, gate=gate, token=token, most=most)

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        self._run.releasing(instance)
        super().release(pool, instance, gate=gate)


class InterruptionRun:
    """One seed's world, its one deployment, and what is noted of them."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.broken: list[tuple[Broken, str]] = []
        self.lines: list[str] = []
        self.struck = False
        self.asked = self.launches = 0
        self.demand = self.fits = False
        self.victims: list[WorldNode] = []
        self.zones = zones_of(seed)
        self.down: frozenset[str] = frozenset()
        self.reached: dict[str, Seconds] = {}
        self.kind: NoticeKind = self.rng.choice(KINDS)
        self.notice_s = notice_s(self.rng, self.kind)
        self.policy, self.world = setting(self.rng, seed)
        self.world.on_change.append(self._changed)
        self.app = app(
            Settings(mode="act"),
            cluster=_Cluster(self),
            pools=_Pools(self),
            state=MemoryState(self.world.clock),
            outbox=MemoryOutbox(),
            clock=self.world.clock,
            policy=self.policy,
            catalog=CATALOG,
        )

    def light(self) -> None:
        """Jobs are created, bought for, and run."""
        for n in range(self.rng.randint(1, 4)):
            pods = job(self.rng, n, self.world.clock.now(), self.world.fleet.machine("p").gpus)
            self.world.submit(pods, self.rng.choice((4000.0, 20_000.0, 40_000.0)))
            if self.zones:  # Each job finds another zone short, so that nodes are in several.
                self.down = frozenset([self.rng.choice(self.zones)])
                self._pass(300, rescues=False)
        self.down = frozenset()
        self._pass(self.rng.uniform(1500, 4000), rescues=False)

    def strike(self) -> None:
        """The cloud takes a node, or all of its zone, and says so."""
        nodes = [n for n in self.world.nodes.values() if n.ready]
        if not nodes:
            return
        victim = self.rng.choice(nodes)
        whole = bool(self.zones) and self.kind == "spot-interruption"
        self.victims = [n for n in nodes if n.zone == victim.zone] if whole else [victim]
        if self.rng.random() < 0.2:
            for each in list(victim.jobs):
                self.world.finish(each)
        self._fail()
        jobs = {each.id: each for node in self.victims for each in node.jobs.values()}
        self.demand, self.fits = bool(jobs), any(self.world.fits_elsewhere(node.id) for node in self.victims)
        self.reached = {each.id: each.reached_s(self.world.now_s) for each in jobs.values()}
        self.launches, self.struck = self.world.launches, True
        self._say(f"{self.kind} of {self._name}, {self.notice_s:.0f} s; on it {list(jobs)}")
        if whole:
            self._zone_goes()
        else:
            self._notices(victim)
        self._pass(self.notice_s + QUIET_S)

    def judge(self) -> None:
        """What is left when all is quiet."""
        self._pass(CORDON_S if self.kind == "rebalance" else 0.0)
        came = self.world.launches - self.launches if self.struck else 0
        if self.struck and came > len(self.victims):
            self._broke("double_replacements", f"{came} nodes came in the place of {self._name}")
        if self.struck and came and self.notice_s and not self.demand and not self.world.pending:
            self._broke("relaunches_without_demand", f"{came} nodes came though nothing ran on {self._name}")
        for node in self.world.nodes.values():
            if node.cordoned:
                self._broke("cordons_past_their_ttl", f"{node.id} takes no pods though all is quiet")
        for each in self.world.pending.values():
            self._broke("stranded_jobs", f"{each.id} waits though all is quiet")

    def evicting(self, uid: str) -> None:
        """A pod is to leave: some node of its job goes, or may go."""
        found = (each for each in self.world.running.values() if any(pod.uid == uid for pod in each.demands))
        for each in found:
            if self.kind != "rebalance" and not any(placed.node.doomed_s for placed in each.placement):
                self._broke("false_evictions", f"{uid} was evicted though nothing takes {self._where(each)}")

    def evicted(self, uid: str) -> None:
        """A pod was evicted: with notice enough a replacement must have been asked for."""
        self._say(f"evicted {uid}")
        if self.notice_s >= ENOUGH_S and not self.asked and self.demand and not self.fits:
            self._broke("late_replacements", f"{uid} was evicted before a replacement of {self._name} was asked for")

    def releasing(self, instance: str) -> None:
        """An instance is given back: with pods on it only within the margin of its deadline."""
        node = self.world.nodes.get(instance)
        self._say(f"gave {instance} back")
        if node is None or not node.jobs:
            return
        if node.doomed_s is None or self.world.now_s < node.doomed_s - MARGIN_S - 0.001:
            self._broke("broken_budgets", f"{instance} was given back with {list(node.jobs)} on it")

    def _notices(self, victim: WorldNode) -> None:
        """The notice is delivered late, and perhaps again; a rebalance may become an order."""
        told = self.world.clock.now()
        if self.kind != "rebalance":
            deadline = self.world.moment(self.world.interrupt(victim.id, self.notice_s))
            self._deliver(
                victim, self.kind, told, deadline if self.rng.random() < 0.7 or self.notice_s != 120 else None
            )
            return
        self.world.recommend(victim.id)
        self._deliver(victim, "rebalance", told, None)
        self._pass(self.rng.uniform(60, 600))
        if self.rng.random() < 0.3 and victim.id in self.world.nodes:
            self.world.interrupt(victim.id, 120.0)
            self._deliver(victim, "spot-interruption", self.world.clock.now(), None)

    def _zone_goes(self) -> None:
        """Notices of all of a zone's nodes, in any order, each late, and perhaps more than once; no more is had there.

        Among them is one that is not true, of a node of another zone.
        """
        self.down = frozenset(node.zone for node in self.victims)
        told = self.world.clock.now()
        ends = {node.id: self.world.moment(self.world.interrupt(node.id, self.notice_s)) for node in self.victims}
        late = [(self.rng.uniform(0, LATE_S), id) for id in ends for _ in range(self.rng.choice((1, 1, 2, 3)))]
        others = [id for id, node in self.world.nodes.items() if node.zone not in self.down]
        forged = self.rng.choice(others) if others else ""
        late += [(self.rng.uniform(0, LATE_S), forged)] if forged else []
        ends[forged] = next(iter(ends.values()))
        begun_s = self.world.now_s
        for after_s, id in sorted(late):
            self._pass(max(0.0, begun_s + after_s - self.world.now_s))
            self._send(self._notice(id, self.kind, told, ends[id]))

    def _deliver(self, victim: WorldNode, kind: NoticeKind, told: datetime, deadline: datetime | None) -> None:
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            self._pass(self.rng.uniform(0, LATE_S))
            self._send(self._notice(victim.id, kind, told, deadline))

    def _notice(self, instance: str, kind: NoticeKind, told: datetime, deadline: datetime | None) -> InterruptionNotice:
        return InterruptionNotice(
            cluster=EMBEDDED_CLUSTER,
            instance=instance,
            kind=kind,
            cloud="world",
            at=told,
            deadline=deadline if kind in NOTICE_S else None,
        )

    def _send(self, notice: InterruptionNotice) -> None:
        """A 503 is delivered again."""
        for _ in range(5):
            if self._post("spot_interruption", notice) != 503:
                break
            self._pass(1.0)

    def _fail(self) -> None:
        """A call or two may fail once: not so that a victim without a second chance is judged by it."""
        if self.rng.random() < 0.4:
            names = self.rng.sample(_FAILING, self.rng.randint(1, 2))
            faults = msgspec.structs.replace(
                self.world.faults, api_errors=tuple((name, Unavailable(f"{name} timed out")) for name in names)
            )
            self.world.set_faults(faults)
            self._say(f"will fail once: {', '.join(names)}")

    def _pass(self, seconds: Seconds, *, rescues: bool = True) -> None:
        """So long passes, with a tick a minute and, while interruptions are at work, one every few seconds."""
        world = self.world
        end_s = world.now_s + seconds
        while world.now_s < end_s:
            open_ = rescues and bool(self.app.state.scan(f"rescue/{EMBEDDED_CLUSTER}/").items)
            step_s = RESCUE_S if open_ else TICK_S
            next_s = min(end_s, (world.now_s // step_s + 1) * step_s)
            world.advance(next_s)
            if next_s % TICK_S == 0:
                self._post("capacity_reconcile", Tick(cluster=EMBEDDED_CLUSTER, at=world.clock.now()))
            elif open_:
                self._post("spot_interruption", Tick(cluster=EMBEDDED_CLUSTER, what="rescue", at=world.clock.now()))

    def _post(self, function: Function, message: Message) -> int:
        identity = f"{self.world.now_s:.3f}/{len(self.lines)}"
        answer = self.app.receive(function, encode(message, id=identity), HEADERS)
        if answer.body.get("did") or answer.status != 200:
            self._say(f"{function}: {answer.status} {answer.body.get('did') or answer.body}")
        if answer.status == 500:
            self._broke("internal_errors", f"{function} answered {answer.body}")
        return answer.status

    def _changed(self, change: Change) -> None:
        if self.struck and change.what == "pending" and change.subject in self.reached:
            self._judge_saved(self.world.pending[change.subject].saved_s, change.subject)

    def _judge_saved(self, saved_s: Seconds, job: str) -> None:
        """A job was stopped: with time enough it kept all that it had reached when the notice came."""
        reached_s = self.reached.pop(job)
        pods = self.world.pending[job].demands
        takes_s = max(pod.checkpoint_takes_s for pod in pods)
        able = all(pod.checkpoint_takes_s for pod in pods) and takes_s + SLACK_S <= self.notice_s
        if self.kind in NOTICE_S and able and saved_s < reached_s:
            self._broke("lost_checkpoints", f"{job} kept {saved_s:.0f} s of the {reached_s:.0f} s it had run")

    @staticmethod
    def _where(job: WorldJob) -> str:
        return ", ".join(sorted({placed.node.id for placed in job.placement}))

    @property
    def _name(self) -> str:
        return ", ".join(node.id for node in self.victims) or "no node"

    def _say(self, line: str) -> None:
        self.lines.append(f"{self.world.now_s:9.1f} {line}")

    def _broke(self, kind: Broken, line: str) -> None:
        self.broken.append((kind, line))
        self._say(f"{kind}: {line}")
