"""Runs a trace under a peer: the world, the arrivals, and the moments the peer looks at the cluster."""

from collections.abc import Sequence

import msgspec

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.workload import PodDemand
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.measure import Outcome, Sampler, result_of
from pilotlight.tools.replay.peers.always_on import always_on
from pilotlight.tools.replay.peers.base import Peer, holders
from pilotlight.tools.replay.peers.names import ALWAYS_ON, peer
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.trace_job import Bounds, Job
from pilotlight.tools.replay.world_jobs import demands_of
from pilotlight.units import HOUR, Seconds
from pilotlight.world.journal import Log
from pilotlight.world.machines import WorldPool
from pilotlight.world.scheduling.scoring import Scoring
from pilotlight.world.simulation import World

BESIDE = "-on-demand"
"""What the name of an on-demand pool ends in that stands beside a spot pool."""

STUCK_S = 32 * 24 * HOUR
"""A run ends too when all jobs have come, none runs and none has started for so long: as ours does."""

USUAL = Scenario()
"""On-demand as it is had, without shortages."""

LINGER_S = 24 * HOUR
"""How long after the last job a policy may keep nodes before the run is ended."""


def run_peer(
    name: str,
    jobs: Sequence[Job],
    catalog: Catalog,
    scenario: Scenario = USUAL,
    *,
    trace: str = "",
    bound: Bounds | None = None,
    log: Log | None = None,
) -> Outcome:
    """A peer's run of a trace, whose jobs are in the order of their submits.

    ``bound`` is worked out where it is not given; ``log`` receives the records of the run's log. Raises ``BadInput``
    for a name that is no peer.
    """
    policy = None if name == ALWAYS_ON else peer(name, scenario.seed)
    pools = pools_of(catalog, scenario.capacity_type)
    pools += tuple(apart(pool) for pool in pools_of(catalog, "on-demand")) if scenario.falls_back else ()
    bound, sample_s = bound or bounds(jobs, catalog, scenario.capacity_type), scenario.sample_s
    if policy is None:
        return always_on(jobs, catalog, pools, trace=trace, bound=bound, sample_s=sample_s)
    world = World(
        catalog,
        pools,
        seed=scenario.seed,
        zones=scenario.zones,
        faults=msgspec.structs.replace(
            scenario.faults(), registered_s=0.0
        ),  # No peer looks at a node before it is ready.
        scoring=scoring_of(policy, scenario.scoring),
        log=log,
    )
    sampler = Sampler(world, sample_s) if sample_s else None
    drive(world, policy, jobs, catalog, sampler)
    return Outcome(
        result=result_of(world, jobs, policy=name, trace=trace, bound=bound),
        waits=tuple(job.wait_s for job in world.finished),
        points=tuple(sampler.points) if sampler else (),
    )


def scoring_of(policy: Peer, scoring: Scoring) -> Scoring:
    """How a peer's cluster scores nodes: as the scenario's; where that packs, by the peer's own binding rule."""
    return "spread" if policy.spread and scoring == "most-allocated" else scoring


def pools_of(catalog: Catalog, capacity_type: CapacityType) -> tuple[WorldPool, ...]:
    """One pool for every type of a catalogue that is sold so, named as the type."""
    return tuple(
        WorldPool(name=name, instance_type=name, capacity_type=capacity_type)
        for name, kind in catalog.instance_types.items()
        if capacity_type in kind.prices
    )


def apart(pool: WorldPool) -> WorldPool:
    """An on-demand pool beside a spot one of the same type."""
    return msgspec.structs.replace(pool, name=f"{pool.name}{BESIDE}")


def drive(world: World, policy: Peer, jobs: Sequence[Job], catalog: Catalog, sampler: Sampler | None = None) -> None:
    """Let a policy run a trace until the last job is done and it has released every node, or 24 h have passed since."""
    world.on_change.append(policy.notice)
    arrivals = Arrivals(world, jobs, catalog, pinned=policy.pinned)
    moved_s = world.now_s
    while (at_s := _soonest(arrivals.next_s(), world.next_event_s(), policy.wake_s(world))) is not None:
        if arrivals.is_over() and (not world.nodes or at_s > arrivals.last_done_s() + LINGER_S):
            break
        if world.running or arrivals.next_s() is not None:
            moved_s = world.now_s
        elif at_s > moved_s + STUCK_S:
            break
        _pass(world, at_s, sampler)
        arrivals.submit()
        wake_s = policy.wake_s(world)
        if wake_s is not None and wake_s <= world.now_s:
            policy.act(world)
    if world.nodes and arrivals.is_over():
        _pass(world, arrivals.last_done_s() + LINGER_S, sampler)
    world.shut_down()


def _pass(world: World, to_s: Seconds, sampler: Sampler | None) -> None:
    """Let time pass, taking every sample that is due before."""
    while sampler and sampler.due_s() < to_s:
        world.advance(sampler.due_s())
        sampler.take()
    world.advance(to_s)


def _soonest(*moments: Seconds | None) -> Seconds | None:
    return min((m for m in moments if m is not None), default=None)


class Arrivals:
    """Submits a trace's jobs when their time comes. ``count`` of them are in the world."""

    def __init__(self, world: World, jobs: Sequence[Job], catalog: Catalog, *, pinned: bool) -> None:
        self.count = 0
        self._world = world
        self._jobs = jobs
        self._catalog = catalog
        self._pinned = pinned
        self._cheapest: dict[str, str] = {}

    def next_s(self) -> Seconds | None:
        """When the next job is submitted, or None after the last."""
        return self._jobs[self.count].submit_s if self.count < len(self._jobs) else None

    def submit(self) -> None:
        """Submit every job that is due."""
        while self.count < len(self._jobs) and self._jobs[self.count].submit_s <= self._world.now_s:
            job = self._jobs[self.count]
            self.count += 1
            self._world.submit(self._pods(job), job.duration_s, job=job.job_id)

    def is_over(self) -> bool:
        """True once every job has come and gone."""
        return self.count == len(self._jobs) == len(self._world.finished)

    def last_done_s(self) -> Seconds:
        """When the last job so far ended."""
        return (self._world.finished[-1].finish_s or 0.0) if self._world.finished else 0.0

    def _pods(self, job: Job) -> tuple[PodDemand, ...]:
        pods = demands_of(job, self._catalog)
        if not self._pinned:
            return pods
        key = pods[0].shape.key
        if key not in self._cheapest:
            self._cheapest[key] = holders(self._world, self._world.need(pods[0].shape))[0].pool.instance_type
        return demands_of(job, self._catalog, pinned=self._cheapest[key])
