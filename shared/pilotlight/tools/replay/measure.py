"""Measures of a run: its result, and samples over time for the charts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

import msgspec

from pilotlight.tools.replay.traces.trace_job import Bounds, IdleHour, Job, Point, Result, Spread, Unfinished
from pilotlight.units import HOUR, MILLI_PER_GPU, Seconds
from pilotlight.world.simulation import World

UNSERVED = "no node came that holds them"
NO_REASONS: Mapping[str, str] = {}


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A run's outcome: its result, every finished job's wait, and samples over time."""

    result: Result
    waits: tuple[Seconds, ...] = ()
    points: tuple[Point, ...] = ()


def result_of(
    world: World,
    jobs: Sequence[Job],
    *,
    policy: str,
    trace: str,
    bound: Bounds,
    why: Mapping[str, str] = NO_REASONS,
) -> Result:
    """The figures of a world whose run is over. Waits and delays are those of the jobs that have finished.

    ``why`` says of jobs that have not what kept them waiting.
    """
    by_id = {job.job_id: job for job in jobs}
    return Result(
        policy=policy,
        trace=trace,
        jobs=len(jobs),
        jobs_done=len(world.finished),
        cost_usd=world.cost(),
        gpu_hours=sum(by_id[done.id].gpu_seconds for done in world.finished) / HOUR,
        gpu_hours_paid=world.fleet.gpu_seconds(world.now_s) / HOUR,
        wait_s=Spread.of_waits([done.wait_s for done in world.finished]),
        delay_s=Spread.of_waits([done.delay_s for done in world.finished]),
        launches=world.launches,
        terminations=world.terminations,
        interruptions=world.interruptions,
        lost_gpu_hours=world.lost_gpu_seconds / HOUR,
        bound_usd=bound,
        wakes=world.wakes,
        standby_usd=world.standby_cost(),
        unfinished=_unfinished(world, jobs, why),
    )


def _unfinished(world: World, jobs: Sequence[Job], why: Mapping[str, str]) -> tuple[Unfinished, ...]:
    done = {job.id for job in world.finished}
    reasons = Counter(why.get(job.job_id, UNSERVED) for job in jobs if job.job_id not in done)
    return tuple(Unfinished(jobs=count, why=reason) for reason, count in reasons.most_common())


class Sampler:
    """Samples a world at equal steps of time."""

    def __init__(self, world: World, step_s: Seconds = 600.0) -> None:
        self.points: list[Point] = []
        self._world, self._step_s = world, step_s

    def due_s(self) -> Seconds:
        """When the next sample is due."""
        return len(self.points) * self._step_s

    def take(self) -> None:
        """Sample the world as it is now."""
        world = self._world
        self.points.append(
            Point(
                t=self.due_s(),
                gpus_paid=float(world.fleet.gpus_paid),
                gpus_used=world.used_milli / MILLI_PER_GPU,
                usd=world.cost(),
                waiting=len(world.pending),
            )
        )


def idle_hours(points: Sequence[Point], most: int = 12) -> list[IdleHour]:
    """The hours in which the most dollars went to GPUs that no job used, the dearest first."""
    hours: dict[int, list[tuple[Point, Point]]] = {}
    for a, b in pairwise(points):
        hours.setdefault(int(a.t // HOUR), []).append((a, b))
    out = [_idle_hour(hour, pairs) for hour, pairs in hours.items()]
    return sorted(out, key=lambda h: (-h.usd, h.start))[:most]


def _idle_hour(hour: int, pairs: list[tuple[Point, Point]]) -> IdleHour:
    usd, gpus = Decimal(0), 0.0
    for a, b in pairs:
        idle = max(0.0, a.gpus_paid - a.gpus_used)
        gpus += idle / len(pairs)
        if a.gpus_paid:
            usd += (b.usd - a.usd) * Decimal(str(round(idle / a.gpus_paid, 6)))
    return IdleHour(start=hour * HOUR, usd=usd, gpus=gpus)
