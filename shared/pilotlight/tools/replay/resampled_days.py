"""Resampled traces: a trace's days, drawn with replacement and laid end to end (a block bootstrap by day).

A day is a block, so that its own rhythm stays as it was (Carlstein, Annals of Statistics 14, 1986). A job keeps its
time of day and its whole duration. What is recommended on one trace is asked again on each of these.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from random import Random

import msgspec

from pilotlight.errors import Failed
from pilotlight.facts.policy import Policy
from pilotlight.tools.replay.compare import Done, Trial, apart
from pilotlight.tools.replay.measure import Outcome
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.tools.replay.wait_price_sweep import Setting, run_at
from pilotlight.units import HOUR, Seconds

DAY_S: Seconds = 24 * HOUR
FEWEST_DAYS = 3
"""Of fewer days with jobs a resampled trace is the trace itself, or one day again and again."""

Advise = Callable[[Sequence[Setting]], Decimal | None]
"""The value that a sweep recommends; None where none waits so little as was asked."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one recommendation on resampled traces. ``recommended`` are their own values, lowest first.

    ``wait_s`` and ``x_own`` are of the value asked about, by trace, lowest first: its mean wait, and its dollars
    in multiples of those of the trace's own recommendation.
    """

    value_of_wait: Decimal
    seeds: tuple[int, ...]
    recommended: tuple[Decimal | None, ...]
    wait_s: tuple[Seconds, ...]
    x_own: tuple[float, ...]

    @property
    def same(self) -> int:
        """Resampled traces that recommend the same value."""
        return self.recommended.count(self.value_of_wait)

    def too_slow(self, within_s: Seconds | None) -> int:
        """Resampled traces on which the value waits longer than was asked for."""
        return 0 if within_s is None else sum(wait_s > within_s for wait_s in self.wait_s)


def by_day(jobs: Sequence[Job]) -> list[tuple[Job, ...]]:
    """A trace's jobs by the day of their submits, the first day at second 0; days without jobs among them."""
    days: list[list[Job]] = [[] for _ in range(int(max((job.submit_s for job in jobs), default=-1) // DAY_S) + 1)]
    for job in jobs:
        days[int(job.submit_s // DAY_S)].append(job)
    return [tuple(day) for day in days]


def can_resample(jobs: Sequence[Job]) -> bool:
    """True for a trace of enough days."""
    return sum(bool(day) for day in by_day(jobs)) >= FEWEST_DAYS


def resample(jobs: Sequence[Job], seed: int) -> tuple[Job, ...]:
    """As many days as the trace has, drawn by ``seed``. Each job's id names the place of its day."""
    days, found = by_day(jobs), []
    for place, day in enumerate(Random(seed).choices(days, k=len(days))):
        for job in day:
            at = place * DAY_S + job.submit_s % DAY_S
            found.append(msgspec.structs.replace(job, job_id=f"{job.job_id}-day{place}", submit_s=at))
    return tuple(found)


def hold_up(
    value: Decimal,
    values: Sequence[Decimal],
    policy: Policy,
    trial: Trial,
    seeds: Sequence[int],
    advise: Advise,
    *,
    on_done: Done,
    processes: int | None = None,
) -> Held | None:
    """Run all values on each resampled trace, and see what becomes of the one that was recommended. None: no seeds.

    Raises ``Failed`` where a run leaves jobs undone: its dollars are not those of the work.
    """
    if not seeds:
        return None
    tasks = {resampled_name(seed, each): partial(_run, each, policy, trial, seed) for seed in seeds for each in values}
    _, found = apart(tasks, meanwhile=lambda: None, on_done=on_done, processes=processes)
    outcomes = iter(found)
    sweeps = [[Setting(value_of_wait=each, result=next(outcomes).result) for each in values] for _ in seeds]
    check_finished(seeds, sweeps)
    named = [(advise(one), {setting.value_of_wait: setting.result for setting in one}) for one in sweeps]
    dear = [
        float(by_value[value].cost_usd / by_value[own].cost_usd)
        for own, by_value in named
        if own is not None and by_value[own].cost_usd
    ]
    return Held(
        value_of_wait=value,
        seeds=tuple(seeds),
        recommended=tuple(sorted((own for own, _ in named), key=lambda own: (own is None, own))),
        wait_s=tuple(sorted(by_value[value].wait_s.mean for _, by_value in named)),
        x_own=tuple(sorted(dear)),
    )


def check_finished(seeds: Sequence[int], sweeps: Sequence[Sequence[Setting]]) -> None:
    """Raise ``Failed`` for the first run that leaves jobs undone."""
    for seed, one in zip(seeds, sweeps, strict=True):
        for value, result in ((setting.value_of_wait, setting.result) for setting in one):
            if not result.finished:
                raise Failed(
                    f"{resampled_name(seed, value)}: {result.jobs - result.jobs_done:,} of {result.jobs:,} jobs did "
                    "not finish; mend the policy's limits, or leave these days out by --resamples 0"
                )


def resampled_name(seed: int, value: Decimal) -> str:
    """Name of a run on a resampled trace."""
    return f"${value}/h, days drawn by seed {seed}"


def _run(value: Decimal, policy: Policy, trial: Trial, seed: int) -> Outcome:
    return run_at(value, policy, trial._replace(jobs=resample(trial.jobs, seed)), None)
