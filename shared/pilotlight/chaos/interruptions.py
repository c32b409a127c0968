"""Interruptions by seed: nodes are taken with notice, without, or perhaps, and what must never happen is counted.

=========================  ===========================================================================================
lost_checkpoints           a pod that had the time to save after the notice, and lost work from before it
broken_budgets             a node given back with pods on it before the deadline's margin: past every disruption budget
late_replacements          with a minute of notice or more, a pod evicted before a replacement was asked for
cordons_past_their_ttl     a node that still takes no pods when its cordon should have ended
double_replacements        more than one node launched in the place of one
relaunches_without_demand  with notice, a node launched in the place of one on which nothing ran
stranded_jobs              a job that is neither running nor finished when all is quiet
internal_errors            an answer 500
=========================  ===========================================================================================
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from random import Random
from typing import Literal, NamedTuple, get_args

import msgspec

from pilotlight.adapters.outbox.memory import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.chaos.scene import CATALOG
from pilotlight.chaos.setting import HEADERS
from pilotlight.codec.events import encode
from pilotlight.decide.deadline import CORDON_S, MARGIN_S
from pilotlight.doorway import Function
from pilotlight.errors import Unavailable
from pilotlight.facts.capacity import PoolState
from pilotlight.facts.interruption import NOTICE_S
from pilotlight.facts.messages import InterruptionNotice, Message, NoticeKind, Tick
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, shape
from pilotlight.settings import EMBEDDED_CLUSTER, Settings
from pilotlight.units import Seconds
from pilotlight.wiring import app
from pilotlight.world.cluster import WorldCluster
from pilotlight.world.faults import Faults
from pilotlight.world.nodes import WorldNode, WorldPool
from pilotlight.world.pools import WorldPools
from pilotlight.world.world import Change, World

Broken = Literal[
    "lost_checkpoints",
    "broken_budgets",
    "late_replacements",
    "cordons_past_their_ttl",
    "double_replacements",
    "relaunches_without_demand",
    "stranded_jobs",
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

_KINDS: tuple[NoticeKind, ...] = (
    *("spot-interruption",) * 5, "capacity-reservation", "lifecycle", "scheduled-change", "preempted", "preempted",
    *("rebalance",) * 2,
)  # fmt: skip
_FAILING = ("observe", "cordon", "tell", "evict", "grow", "describe", "release", "bound")


class Outcome(NamedTuple):
    """What one seed came to: what was broken, with a line each, and the log."""

    seed: int
    kind: NoticeKind
    broken: tuple[tuple[Broken, str], ...]
    lines: tuple[str, ...]
    lost_gpu_hours: float


class Total(NamedTuple):
    """The sum of many seeds."""

    seeds: int
    kinds: dict[str, int]
    counts: dict[str, int]
    lost_gpu_hours: float
    broken: tuple[Outcome, ...]


def sweep(seeds: Sequence[int], jobs: int, on_each: Callable[[], None] = lambda: None) -> Total:
    """All seeds, several at a time."""
    if jobs <= 1:
        return _total(map(run, seeds), on_each)
    with ProcessPoolExecutor(jobs) as pool:
        return _total(pool.map(run, seeds, chunksize=8), on_each)


def _total(outcomes: Iterable[Outcome], on_each: Callable[[], None]) -> Total:
    counts: dict[str, int] = dict.fromkeys(COUNTED, 0)
    kinds: dict[str, int] = dict.fromkeys(dict.fromkeys(_KINDS), 0)
    broken: list[Outcome] = []
    lost = 0.0
    for outcome in outcomes:
        kinds[outcome.kind] += 1
        lost += outcome.lost_gpu_hours
        broken += [outcome] if outcome.broken else []
        for name, _ in outcome.broken:
            counts[name] += 1
        on_each()
    return Total(sum(kinds.values()), kinds, counts, lost, tuple(broken))


def run(seed: int) -> Outcome:
    """One seed: a pool with work on it, one node of which goes."""
    ordeal = Ordeal(seed)
    ordeal.light()
    ordeal.strike()
    ordeal.judge()
    return Outcome(seed, ordeal.kind, tuple(ordeal.broken), tuple(ordeal.lines), ordeal.world.lost_gpu_seconds / 3600)


class _Cluster(WorldCluster):
    """Tells of evictions that came through."""

    def __init__(self, ordeal: "Ordeal") -> None:
        super().__init__(ordeal.world)
        self._ordeal = ordeal

    def evict(self, namespace: str, pod: str, uid: str) -> None:
        super().evict(namespace, pod, uid)
        self._ordeal.evicted(uid)


class _Pools(WorldPools):
    """Tells of growth that was asked for, and of what is given back."""

    def __init__(self, ordeal: "Ordeal") -> None:
        super().__init__(ordeal.world)
        self._ordeal = ordeal

    def grow(self, pool: str, to: int, zone: str = "") -> PoolState:
        self._ordeal.asked += self._ordeal.struck
        return super().grow(pool, to, zone)

    def release(self, pool: str, instance: str) -> None:
        self._ordeal.releasing(instance)
        super().release(pool, instance)


class Ordeal:
    """One seed's world, its one deployment, and what is noted of them."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.broken: list[tuple[Broken, str]] = []
        self.lines: list[str] = []
        self.struck = False
        self.asked = self.launches = 0
        self.demand = self.fits = False
        self.victim: WorldNode | None = None
        self.reached: dict[str, Seconds] = {}
        self.kind: NoticeKind = self.rng.choice(_KINDS)
        self.notice_s = _notice_s(self.rng, self.kind)
        self.policy, self.world = _setting(self.rng, seed)
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
            pods = _job(self.rng, n, self.world.clock.now(), self.world.fleet.machine("p").gpus)
            self.world.submit(pods, self.rng.choice((4000.0, 20_000.0, 40_000.0)))
        self._pass(self.rng.uniform(1500, 4000), rescues=False)

    def strike(self) -> None:
        """The cloud takes a node, and says so."""
        nodes = [n for n in self.world.nodes.values() if n.ready]
        if not nodes:
            return
        self.victim = victim = self.rng.choice(nodes)
        if self.rng.random() < 0.2:
            for job in list(victim.jobs.values()):
                self.world._workload.finish(job, self.world.now_s)
        self._fail(victim)
        self.demand, self.fits = bool(victim.jobs), self.world.fits_elsewhere(victim.id)
        self.reached = {job.id: job.reached_s(self.world.now_s) for job in victim.jobs.values()}
        self.launches, self.struck = self.world.launches, True
        self._say(f"{self.kind} of {victim.id}, {self.notice_s:.0f} s; on it {list(victim.jobs)}")
        self._notices(victim)
        self._pass(self.notice_s + QUIET_S)

    def judge(self) -> None:
        """What is left when all is quiet."""
        self._pass(CORDON_S if self.kind == "rebalance" else 0.0)
        came = self.world.launches - self.launches if self.struck else 0
        if self.struck and came > 1:
            self._broke("double_replacements", f"{came} nodes came in the place of {self._name}")
        if self.struck and came and self.notice_s and not self.demand and not self.world.pending:
            self._broke("relaunches_without_demand", f"{came} nodes came though nothing ran on {self._name}")
        for node in self.world.nodes.values():
            if node.cordoned:
                self._broke("cordons_past_their_ttl", f"{node.id} takes no pods though all is quiet")
        for job in self.world.pending.values():
            self._broke("stranded_jobs", f"{job.id} waits though all is quiet")

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
        self._deliver(victim, "rebalance", told, None)
        self._pass(self.rng.uniform(60, 600))
        if self.rng.random() < 0.3 and victim.id in self.world.nodes:
            self.world.interrupt(victim.id, 120.0)
            self._deliver(victim, "spot-interruption", self.world.clock.now(), None)

    def _deliver(self, victim: WorldNode, kind: NoticeKind, told: datetime, deadline: datetime | None) -> None:
        notice = InterruptionNotice(
            cluster=EMBEDDED_CLUSTER,
            instance=victim.id,
            kind=kind,
            cloud="world",
            at=told,
            deadline=deadline if kind in NOTICE_S else None,
        )
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            self._pass(self.rng.uniform(0, LATE_S))
            for _ in range(5):  # A 503 is delivered again.
                if self._post("spot_interruption", notice) != 503:
                    break
                self._pass(1.0)

    def _fail(self, victim: WorldNode) -> None:
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

    @property
    def _name(self) -> str:
        return self.victim.id if self.victim else "no node"

    def _say(self, line: str) -> None:
        self.lines.append(f"{self.world.now_s:9.1f} {line}")

    def _broke(self, kind: Broken, line: str) -> None:
        self.broken.append((kind, line))
        self._say(f"{kind}: {line}")


def _notice_s(rng: Random, kind: NoticeKind) -> Seconds:
    if kind == "preempted":
        return 0.0
    return rng.choice((300.0, 1200.0)) if kind == "scheduled-change" else 120.0


def _setting(rng: Random, seed: int) -> tuple[Policy, World]:
    """One spot pool, with a disruption budget on its pods in most seeds."""
    name, relaunches = rng.choice(("one", "four", "eight")), rng.random() < 0.5
    rules = ClassPolicy(gpu_models="any", capacity_types=("spot",), idle_timeout=rng.choice((300.0, 600.0)))
    policy = Policy(
        version=1,
        pools={"p": PoolPolicy(instance_type=name, capacity_type="spot", max=20, relaunches=relaunches)},
        classes={"batch": rules, "training": rules},
    )
    pool = WorldPool(name="p", instance_type=name, capacity_type="spot", relaunches=relaunches)
    faults = Faults(reclaim=False, boot_s=rng.choice((60.0, 150.0, 300.0)), checkpoint_s=1e9, restore_s=30.0)
    world = World(CATALOG, (pool,), seed=seed, faults=faults)
    most = rng.choice((None, None, 0, 1, 2))
    if most is not None:
        world.disruptions["default"] = most
    return policy, world


def _job(rng: Random, n: int, now: datetime, gpus: int) -> list[PodDemand]:
    """Pods that save when asked, by themselves, or never; alone or as a gang of whole nodes."""
    size = rng.choice((1, 1, 1, 2, 3))
    count = gpus if size > 1 else rng.choice([g for g in (1, 2, 4, 8) if g <= gpus])
    made = shape(
        gpu=GpuRequest(count=count),
        gang=Gang(key=f"gang{n}", size=size) if size > 1 else None,
        workload_class="training" if size > 1 else "batch",
        checkpoint_s=rng.choice((0.0, 600.0, 7200.0)),
    )
    takes_s, grace_s = rng.choice((0.0, 5.0, 20.0, 45.0, 80.0)), rng.choice((5.0, 30.0, 60.0))
    return [
        PodDemand(
            uid=f"p{n}-{i}",
            namespace="default",
            name=f"p{n}-{i}",
            shape=made,
            created_at=now,
            grace_s=grace_s,
            checkpoint_takes_s=takes_s,
        )
        for i in range(size)
    ]
