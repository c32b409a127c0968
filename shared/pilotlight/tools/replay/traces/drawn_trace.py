"""Drawing a trace that is like a measured one: equal statistics and seed give equal jobs.

Every burst is drawn once, at a random moment of its slot; gaps and run times come from its own quantiles, one from
each equal slice of them, and are scaled to its mean. So the total work differs little from seed to seed, and the
moments, the order and who runs beside whom are random.
"""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.tools.replay.traces.trace_stats import Burst, Quantiles, Rest, Stats
from pilotlight.units import Seconds


class _Drawn(NamedTuple):
    submit_s: float
    shape: int
    duration_s: float


def synthesise(stats: Stats, seed: int = 0) -> tuple[Job, ...]:
    """The jobs of one drawn trace, in order of submit; times are whole seconds."""
    rng = Random(seed)
    drawn = [job for burst in stats.bursts for job in _burst(burst, stats.slot_s, rng)]
    drawn += [job for rest in stats.rest for job in _rest(rest, stats.slot_s, rng)]
    return tuple(_job(i, job, stats) for i, job in enumerate(sorted(drawn)))


def _job(number: int, drawn: _Drawn, stats: Stats) -> Job:
    shape = stats.shapes[drawn.shape]
    return Job(
        job_id=f"s{number:06d}",
        submit_s=float(int(drawn.submit_s)),
        duration_s=float(max(1, round(drawn.duration_s))),
        gpus=shape.gpus,
        gpu_milli=shape.gpu_milli,
        models=shape.models,
        team=shape.team,
        priority=shape.priority,
        group=shape.group,
    )


def _burst(burst: Burst, slot_s: Seconds, rng: Random) -> Iterator[_Drawn]:
    span = burst.gap_s.mean * (burst.jobs - 1)
    moment = burst.slot * slot_s + rng.random() * max(0.0, slot_s - span)
    gaps = [0.0, *_sample(burst.gap_s, burst.jobs - 1, rng)]
    for gap, duration in zip(gaps, _sample(burst.duration_s, burst.jobs, rng), strict=True):
        moment += gap
        yield _Drawn(moment, burst.shape, duration)


def _rest(rest: Rest, slot_s: Seconds, rng: Random) -> Iterator[_Drawn]:
    slots = [slot for slot, jobs in rest.slots for _ in range(jobs)]
    for slot, duration in zip(slots, _sample(rest.duration_s, len(slots), rng), strict=True):
        yield _Drawn((slot + rng.random()) * slot_s, rest.shape, duration)


def _sample(quantiles: Quantiles, count: int, rng: Random) -> list[Seconds]:
    """``count`` values in random order: one from each equal slice of the quantile function, scaled to its mean."""
    values = [_at(quantiles, (i + rng.random()) / count) for i in range(count)]
    rng.shuffle(values)
    total = sum(values)
    return [value * quantiles.mean * count / total for value in values] if total else values


def _at(quantiles: Quantiles, share: float) -> Seconds:
    """The quantile function at ``share`` in [0, 1), straight between its points."""
    points = quantiles.points
    place = share * (len(points) - 1)
    low = int(place)
    high = min(low + 1, len(points) - 1)
    return points[low] + (points[high] - points[low]) * (place - low)
