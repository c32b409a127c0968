"""Chaos around homes: one seed drawn and run, with faults and deaths at every call, and its judge.

Homes are named and tolerated by workers that die between purchase and patch and between node and patch, calls that
fail or are refused before or after their effect, outages, pods that are deleted, a person who pauses and one who takes
the taint off by hand, and a watchman who is away now and then. The judge looks at the world alone, not at plans.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from random import Random

import msgspec

from harness.faults.hazard_ports import HazardChannel, HazardCluster, HazardOutbox, HazardState
from harness.faults.refused_patches import NotedLuck
from harness.scene import ALERTS, CATALOG, CHANNEL, START, Job, Scene, Skew
from harness.setting import HEADERS, Setting, SkewedClock
from pilotlight.doorway import Function
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.labels import NEW_HOME
from pilotlight.facts.limits.brakes import ALL
from pilotlight.facts.money.money_policy import ApproveOver, Caps
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.records import brake_records
from pilotlight.settings import Settings
from pilotlight.units import Seconds
from pilotlight.wiring import App, app
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.scheduling.scheduler import Need
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_events import Change
from pilotlight.world.world_nodes import WorldNode

RUN_S: Seconds = 3600.0
CALM_S: Seconds = 900.0
"""So long faults and pauses go on, and so long it goes on without them."""
LET_IN_S, LOOKS = 15.0, 3
"""A pod that nothing comes for is let in within 15 s of so many looks: one may find that its purchase is refused, and
one that a node which another pod was given is not on its way to anybody any more."""
SILENT_S, WATCHED_S = 300.0, 900.0
"""The watchman opens all where nobody was awake for so long, and counts as there for so long."""


class Died(BaseException):
    """The worker is dead: nothing of it goes on."""


class Judge:
    """What must hold of homes. ``said`` is what was broken, in words."""

    def __init__(self, setting: Setting) -> None:
        self._setting, self._world = setting, setting.world
        self._out: dict[str, Seconds] = {}
        self._looks: dict[str, list[Seconds]] = {}
        self.paused: dict[str, Seconds] = {}
        self.said: list[str] = []
        self.ever_homed: set[str] = set()
        self.let_in = 0
        """Pods that run on a node that they were given."""
        self._started: set[str] = set()
        self._joined_s: dict[str, Seconds] = {}

    def watch(self) -> None:
        """Whom homes keep out now, and for how long since the looks that should have let it in; who runs where."""
        now_s = self._world.now_s
        self.ever_homed |= {n.id for n in self._world.nodes.values() if n.home not in ("", NEW_HOME)}
        self._joined_s = {n.id: self._joined_s.get(n.id, now_s) for n in self._world.nodes.values() if n.joined}
        self._runs_where_it_may()
        out = {job: node for job in self._world.pending if (node := self._shut_out(job))}
        self._out = {job: self._out.get(job, now_s) for job in out}
        self._looks = {job: self._looks.get(job, []) for job in out}
        for job, ends in self._looks.items():
            if len(ends) >= LOOKS and now_s > ends[LOOKS - 1] + LET_IN_S:
                self.said.append(f"{now_s:.0f}: {job} fits {out[job]} and is kept out of it since {self._out[job]:.0f}")
                ends.clear()

    def note_look(self, began_s: Seconds, watched: bool) -> None:
        """A look that began then is over, and no call of it failed."""
        self.watch()
        for job, since_s in self._out.items():
            if since_s <= began_s:
                self._looks[job].append(self._world.now_s)
        for node in self._world.nodes.values():
            since_s = min(self.paused.get(name, self._world.now_s) for name in (ALL, node.pool))
            kept = node.home and self._joined_s.get(node.id, self._world.now_s) <= began_s
            if kept and since_s <= began_s and since_s < self._world.now_s:
                self.said.append(f"{self._world.now_s:.0f}: {node.id} is closed, {node.pool} is paused: {since_s:.0f}")
            if kept and not watched:
                self.said.append(f"{self._world.now_s:.0f}: {node.id} is closed, and nobody would open it in our place")

    def silent(self, since_s: Seconds) -> None:
        """The watchman was there, and found nobody awake."""
        closed = [node.id for node in self._world.nodes.values() if node.joined and node.home]
        if closed:
            self.said.append(f"{self._world.now_s:.0f}: {closed} closed, nobody awake since {since_s:.0f}")

    def _shut_out(self, job: str) -> str:
        """The node that a lone pod would bind to but for the taint, where no node comes that it could use."""
        demands = self._world.pending[job].demands
        need = self._world.need(demands[0].shape)
        if len(demands) > 1 or any(need.allows(node.machine) for node in self._world.nodes.values() if not node.ready):
            return ""
        for node in self._world.nodes.values():
            open_but_for_it = node.home and not (node.cordoned or node.shut) and node.doomed_s is None
            if node.ready and open_but_for_it and need.allows(node.machine) and self._is_free(node, need):
                return node.id
        return ""

    def _is_free(self, node: WorldNode, need: Need) -> bool:
        """True where a node has room for one more pod beside all that wait with its toleration."""
        waiting = [demand for job in self._world.pending.values() for demand in job.demands]
        return need.fits(node.room) and not any(node.home in demand.homes for demand in waiting)

    def _runs_where_it_may(self) -> None:
        """Each pod that started is on a node that it tolerated then, or that somebody opened."""
        for name, job in self._world.running.items():
            for placed in () if name in self._started else job.placement:
                self.let_in += bool(placed.node.home)
                if placed.node.home not in ("", *placed.demand.homes):
                    self.said.append(f"{self._world.now_s:.0f}: {placed.demand.uid} runs on {placed.node.id} uninvited")
        self._started = set(self._world.running)


class LeasedCluster(HazardCluster):
    """A cluster with the Lease that is renewed at every look, and that says whether a watchman is there."""

    run: "HomesRun"

    def observe(self) -> ClusterView:
        """One read."""
        began_s = self.run.setting.world.now_s
        view = super().observe()
        self.run.look = (began_s, self.run.watched)
        return msgspec.structs.replace(view, watched=self.run.watched)

    def beat(self) -> None:
        """We are awake."""
        super().beat()
        self.run.awake_s = self.run.setting.world.now_s


@dataclass
class HomesRun:
    """One seed. ``look`` is when the last look began, and whether it found a watchman."""

    seed: int
    folder: Path
    awake_s: Seconds = 0.0
    watched_s: Seconds = 0.0
    look: tuple[Seconds, bool] | None = None
    clean: int = 0
    deaths: int = 0
    _agenda: list[tuple[Seconds, int, Callable[[], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = Random(f"homes/{self.seed}")
        self.luck = NotedLuck(self.rng)
        self.setting = Setting(self.seed, _scene(self.rng), self.luck, self.folder / "state.db")
        self.judge = Judge(self.setting)
        self.away = (self.rng.uniform(0, RUN_S), self.rng.choice((0.0, 0.0, 2000.0)))
        """When the watchman goes, and for how long."""
        self._order = count()
        self._app: App | None = None
        self.setting.world.on_change.append(self._changed)

    @property
    def watched(self) -> bool:
        """Whether a watchman was there lately."""
        return self.setting.world.now_s - self.watched_s <= WATCHED_S

    def go(self) -> Sequence[str]:
        """From the first pod to the end; what was broken."""
        for n, job in enumerate(self.setting.scene.jobs):
            self._at(job.at_s, lambda n=n: self.setting.submit(n))  # type: ignore[misc]
        for minute in range(int((RUN_S + CALM_S) / 60)):
            self._at(60.0 * minute, self._tick)
            self._at(60.0 * minute + 30, self._person)
            if minute % 2:
                self._at(60.0 * minute + 7, self._watchman)
        self._at(RUN_S, self._calm)
        while self._agenda and self._agenda[0][0] <= RUN_S + CALM_S:
            at_s, _, do = heappop(self._agenda)
            self._pass(max(at_s, self.setting.world.now_s))
            do()
            self.judge.watch()
        return self.judge.said

    def _at(self, at_s: Seconds, do: Callable[[], None]) -> None:
        heappush(self._agenda, (at_s, next(self._order), do))

    def _pass(self, to_s: Seconds) -> None:
        """Time passes, a few seconds at once: who is kept out is seen as it begins."""
        world = self.setting.world
        while world.now_s < to_s:
            world.advance(min(to_s, world.now_s + 5))
            self.setting.arrive()
            self.judge.watch()

    def _changed(self, change: Change) -> None:
        if change.what == "pending" and self.rng.random() < 0.8:
            job = change.subject
            self._at(change.t + self.rng.choice((1.0, 10.0, 40.0)), lambda: self._pending(job))

    def _pending(self, job: str) -> None:
        if job in self.setting.world.pending:
            self._deliver("pod_pending", self.setting.pending(job, f"e{next(self._order)}"))

    def _tick(self) -> None:
        if self.setting.world.now_s >= RUN_S or self.rng.random() < 0.9:
            self._deliver("capacity_reconcile", self.setting.tick("reconcile", f"t{next(self._order)}"))

    def _deliver(self, function: Function, body: bytes) -> None:
        self.look, self.luck.failed = None, 0
        try:
            self._app = self._app or self._new()
            answer = self._app.receive(function, body, HEADERS)
        except Died:
            self._app, self.deaths = None, self.deaths + 1
            return
        self.setting.say(f"{function}: {answer.status} {answer.body.get('why') or answer.body}")
        if answer.status == 500:
            self.judge.said.append(f"{function} answered {answer.body}")
        if answer.status == 200 and self.look is not None and not self.luck.failed:
            self.clean += 1
            self.judge.note_look(*self.look)

    def _new(self) -> App:
        setting, world = self.setting, self.setting.world
        hazard = setting.hazard(0, self._pause)
        cluster = LeasedCluster(WorldCluster(world), hazard, setting.invariants)
        cluster.run = self
        return app(
            Settings(mode="act"),
            cluster=cluster,
            pools=setting.pools(hazard),
            state=HazardState(setting.store(), hazard, setting.invariants),
            outbox=HazardOutbox(hazard, setting.invariants),
            channels={CHANNEL: HazardChannel(hazard, setting.invariants)},
            clock=SkewedClock(world.clock, setting.scene.skews[0]),
            policy=setting.scene.policy,
            catalog=CATALOG,
        )

    def _pause(self, call: str) -> None:
        if self.rng.random() < 0.1:
            self.setting.world.advance(self.setting.world.now_s + self.rng.expovariate(1 / 2))
        if self.rng.random() < self.luck.death:
            raise Died

    def _person(self) -> None:
        """Pauses a pool or all, and takes it back."""
        state, cluster = self.setting.store(), self.setting.cluster
        for name in list(self.judge.paused):
            if self.rng.random() < 0.3 or self.setting.world.now_s >= RUN_S:
                brake_records.resume(state, cluster, name)
                del self.judge.paused[name]
        if self.setting.world.now_s < RUN_S and self.rng.random() < 0.05:
            name = self.rng.choice((ALL, *self.setting.scene.policy.pools))
            brake_records.pause(state, cluster, name, "a person said so", state.now())
            self.judge.paused.setdefault(name, self.setting.world.now_s)
        if self.setting.world.now_s < RUN_S and self.rng.random() < 0.05:
            self._meddle()

    def _meddle(self) -> None:
        """Takes the taint off a node by hand, or deletes a pod that waits."""
        world = self.setting.world
        nodes = [node.id for node in world.nodes.values() if node.joined and node.home]
        if nodes and self.rng.random() < 0.5:
            world.set_home(self.rng.choice(nodes), "")
        elif world.pending:
            world.delete(world.pending[self.rng.choice(sorted(world.pending))])

    def _watchman(self) -> None:
        now_s, (from_s, for_s) = self.setting.world.now_s, self.away
        if from_s <= now_s < from_s + for_s:
            return
        self.watched_s = now_s
        if now_s - self.awake_s < SILENT_S:
            return
        for node in list(self.setting.world.nodes.values()):
            if node.joined and node.home:
                self.setting.world.set_home(node.id, "")
        self.judge.silent(self.awake_s)

    def _calm(self) -> None:
        self.luck.calm()


def _scene(rng: Random) -> Scene:
    """Cheap nodes for one GPU and dear ones for four and eight, few enough that caps bind, and pods for both."""
    pools = {"one": PoolPolicy(instance_type="one", max=rng.randint(1, 3))}
    for name in rng.choice((("four",), ("eight",), ("four", "eight"))):
        pools[name] = PoolPolicy(instance_type=name, max=rng.randint(1, 4), taints=(BIRTH_TAINT,))
    either = ClassPolicy(gpu_models="any", idle_timeout=rng.choice((30.0, 120.0, 600.0)), max_runtime=4 * 3600)
    nodes, usd = rng.choice((None, None, 2, 4)), rng.choice((None, None, Decimal(36)))
    over = ApproveOver(nodes=rng.choice((None, None, 1)))
    caps = Caps(nodes=nodes, usd_per_hour=usd, approve_over=over)
    policy = Policy(
        version=1,
        pools=pools,
        caps=caps,
        classes={"batch": either, "training": either},
        alerts=ALERTS,
    )
    faults = Faults(
        boot_s=rng.choice((60.0, 150.0)),
        registered_s=rng.choice((0.0, 20.0)),
        shortage=rng.choice((0.0, 0.3)),
        bind_s=rng.choice((0.0, 2.0)),
        reclaim=False,
    )
    jobs = sorted((_job(rng, n, rng.uniform(0, RUN_S)) for n in range(60)), key=lambda job: job.at_s)
    machines = tuple(WorldPool.from_policy(name, pool) for name, pool in pools.items())
    return Scene(policy, machines, faults, tuple(jobs), (Skew(rng.uniform(-2, 2)),))


def _job(rng: Random, n: int, at_s: Seconds) -> Job:
    """Most want one GPU or a share of one; some want a dear node, and stay for a while."""
    gpu = rng.choice((GpuRequest(count=1), GpuRequest(count=1, milli=500), GpuRequest(count=rng.choice((2, 3, 4, 8)))))
    run_s = rng.uniform(60, 600)
    pod = shape(gpu=gpu, max_run_s=run_s, priority=rng.choice((0, 0, 10)), workload_class="batch")
    made = PodDemand(uid=f"p{n}", namespace="default", name=f"p{n}", shape=pod, created_at=START)
    return Job(at_s, (made,), run_s, True)
