"""Runs a trace under a peer: the world, the arrivals, and the moments the peer looks at the cluster."""

from collections.abc import Callable, Sequence

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.catalog import Catalog
from pilotlight.facts.trace import Bounds, Job, Result, Spread
from pilotlight.facts.workload import PodDemand
from pilotlight.replay.bounds import bounds
from pilotlight.replay.peers.always_on import always_on
from pilotlight.replay.peers.base import Peer, holders
from pilotlight.replay.peers.names import ALWAYS_ON, peer
from pilotlight.replay.peers.samples import Sample, Sampler
from pilotlight.units import HOUR, Seconds
from pilotlight.world.faults import Faults
from pilotlight.world.jobs import demands_of
from pilotlight.world.nodes import WorldPool
from pilotlight.world.world import World

DAY = 24 * HOUR
PROGRESS_EVERY = 200
"""Arrivals between two calls of ``on_progress``."""

Progress = Callable[[int, int], None]
"""Called with how many jobs have arrived, and how many there are."""


def run_peer(
    name: str,
    jobs: Sequence[Job],
    catalog: Catalog,
    *,
    trace: str = "",
    seed: int = 0,
    capacity_type: CapacityType = "on-demand",
    faults: Faults | None = None,
    bound: Bounds | None = None,
    on_progress: Progress | None = None,
    sample: Sample | None = None,
) -> Result:
    """What a peer makes of a trace, whose jobs are in the order of their submits.

    ``bound`` is worked out where it is not given. Raises ``BadInput`` for a name that is no peer.
    """
    policy = None if name == ALWAYS_ON else peer(name, seed)
    pools = pools_of(catalog, capacity_type)
    bound = bound or bounds(jobs, catalog, capacity_type)
    if policy is None:
        return always_on(jobs, catalog, pools, trace=trace, bound=bound, sample=sample)
    world = World(catalog, pools, seed=seed, faults=faults, spread=policy.spread)
    drive(world, policy, jobs, catalog, on_progress=on_progress, sample=sample)
    return result_of(world, jobs, policy=name, trace=trace, bound=bound)


def pools_of(catalog: Catalog, capacity_type: CapacityType) -> tuple[WorldPool, ...]:
    """One pool for every type of a catalogue that is sold so, named as the type."""
    return tuple(
        WorldPool(name=name, instance_type=name, capacity_type=capacity_type)
        for name, kind in catalog.instance_types.items()
        if capacity_type in kind.prices
    )


def result_of(world: World, jobs: Sequence[Job], *, policy: str, trace: str, bound: Bounds) -> Result:
    """The figures of a run that is over. Waits and delays are those of the jobs that have finished."""
    by_id = {job.job_id: job for job in jobs}
    return Result(
        policy=policy,
        trace=trace,
        jobs=len(jobs),
        jobs_done=len(world.finished),
        cost_usd=world.cost(),
        gpu_hours=sum(by_id[done.id].gpu_seconds for done in world.finished) / HOUR,
        gpu_hours_paid=world.gpu_seconds_paid() / HOUR,
        wait_s=Spread.of([done.wait_s for done in world.finished]),
        delay_s=Spread.of([done.delay_s for done in world.finished]),
        launches=world.launches,
        terminations=world.terminations,
        interruptions=world.interruptions,
        lost_gpu_hours=world.lost_gpu_seconds / HOUR,
        bound_usd=bound,
    )


def drive(
    world: World,
    policy: Peer,
    jobs: Sequence[Job],
    catalog: Catalog,
    *,
    on_progress: Progress | None = None,
    sample: Sample | None = None,
) -> None:
    """Let a policy run a trace until the last job is done and it has released every node, or 24 h have passed since."""
    world.on_change.append(policy.notice)
    arrivals = Arrivals(world, jobs, catalog, pinned=policy.pinned)
    sampler = Sampler(world, jobs, sample)
    while (at_s := _soonest(arrivals.next_s(), world.next_event_s(), policy.wake_s(world))) is not None:
        if arrivals.over() and (not world.nodes or at_s > arrivals.last_done_s() + DAY):
            break
        sampler.until(at_s)
        world.advance(at_s)
        arrivals.submit()
        wake_s = policy.wake_s(world)
        if wake_s is not None and wake_s <= world.now_s:
            policy.act(world)
        if on_progress and arrivals.count % PROGRESS_EVERY == 0:
            on_progress(arrivals.count, len(jobs))
    if world.nodes and arrivals.over():
        world.advance(arrivals.last_done_s() + DAY)
    sampler.until(world.now_s)


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

    def over(self) -> bool:
        """Whether every job has come and gone."""
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
