"""A fixed fleet large enough for the busiest moment, kept for the whole trace."""

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

from pilotlight.facts.offers.catalog import Catalog
from pilotlight.tools.replay.measure import Outcome
from pilotlight.tools.replay.peers.base import holders
from pilotlight.tools.replay.peers.names import ALWAYS_ON
from pilotlight.tools.replay.traces.trace_job import Bounds, Job, Point, Result, Spread
from pilotlight.tools.replay.world_jobs import demands_of
from pilotlight.units import HOUR, MILLI_PER_GPU, Seconds, per_hour
from pilotlight.world.faults import Faults
from pilotlight.world.machines import Machine, WorldPool
from pilotlight.world.simulation import World


def always_on(
    jobs: Sequence[Job],
    catalog: Catalog,
    pools: Sequence[WorldPool],
    *,
    trace: str,
    bound: Bounds,
    sample_s: Seconds | None = None,
) -> Outcome:
    """Cost of a fleet that is lit until the last job ends. By its definition no job waits."""
    fleet, until_s = standing_fleet(jobs, catalog, pools)
    gpus = sum(machine.gpus * count for machine, count in fleet)
    price = sum((machine.price * count for machine, count in fleet), Decimal(0))
    nodes = sum(count for _, count in fleet)
    waits = (0.0,) * len(jobs)
    result = Result(
        policy=ALWAYS_ON,
        trace=trace,
        jobs=len(jobs),
        jobs_done=len(jobs),
        cost_usd=per_hour(price, until_s),
        gpu_hours=sum(job.gpu_seconds for job in jobs) / HOUR,
        gpu_hours_paid=gpus * until_s / HOUR,
        wait_s=Spread.of_waits(list(waits)),
        delay_s=Spread.of_waits(list(waits)),
        launches=nodes,
        terminations=nodes,
        interruptions=0,
        lost_gpu_hours=0.0,
        bound_usd=bound,
    )
    points = tuple(
        Point(t=t, gpus_paid=gpus, gpus_used=used, usd=per_hour(price, t), waiting=0)
        for t, used in (_usage(jobs, sample_s, until_s) if sample_s else ())
    )
    return Outcome(result=result, waits=waits, points=points)


def standing_fleet(
    jobs: Sequence[Job], catalog: Catalog, pools: Sequence[WorldPool]
) -> tuple[list[tuple[Machine, int]], Seconds]:
    """For each pool the most nodes in use at once in an ideal run without boot and idle time, and when that ends.

    Each job goes on the fullest node it fits, else on a new node of its cheapest type.
    """
    world = World(catalog, pools, faults=Faults(boot_s=0.0, reclaim=False))
    most: Counter[str] = Counter()
    for job in jobs:
        _clear_until(world, job.submit_s)
        demands = demands_of(job, catalog)
        world.submit(demands, job.duration_s, job=job.job_id)
        while world.pending:
            world.launch(holders(world, world.need(demands[0].shape))[0].pool.name)
            world.advance(world.now_s)
        most |= Counter(world.fleet.desired)
    while (at_s := world.next_event_s()) is not None:
        world.advance(at_s)
    return [(world.fleet.machine(name), count) for name, count in most.items()], world.now_s


def _clear_until(world: World, to_s: Seconds) -> None:
    """Let time pass; a node goes the moment it is empty."""
    while (at_s := world.next_event_s()) is not None and at_s <= to_s:
        world.advance(at_s)
        for node in list(world.idle.values()):
            world.terminate(node.id, "idle")
    world.advance(to_s)


def _usage(jobs: Sequence[Job], step_s: Seconds, until_s: Seconds) -> Iterator[tuple[Seconds, float]]:
    """GPUs in use at evenly spaced moments when every job starts at its submit."""
    begun = [(job.submit_s, job.gpus * job.gpu_milli) for job in jobs]
    ended = [(job.submit_s + job.duration_s, -job.gpus * job.gpu_milli) for job in jobs]
    changes = sorted(begun + ended)
    at = used = 0
    for n in range(int(until_s // step_s) + 1):
        while at < len(changes) and changes[at][0] <= n * step_s:
            used += changes[at][1]
            at += 1
        yield n * step_s, used / MILLI_PER_GPU
