"""Many seeds over several processes, and their sum."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from harness.judges.invariants import APART, KINDS
from harness.serial_run import SeedResult
from harness.serial_run import run as in_turns
from pilotlight.errors import BadInput
from pilotlight.tools.replay.worker_processes import workers

CHUNK = 8
"""Seeds that a process takes at a time."""


class Total(NamedTuple):
    """The sum of many runs. ``broken`` are those with a violation, in the order of their seeds; ``apart`` counts what
    no check could stop."""

    runs: int
    deliveries: int
    deaths: int
    launches: int
    jobs: int
    counts: dict[str, int]
    apart: dict[str, int]
    broken: tuple[SeedResult, ...]


def sweep(
    seeds: Sequence[int], deliveries: int, jobs: int, run: Callable[[int, int], SeedResult] = in_turns
) -> Iterator[SeedResult]:
    """The outcome of every seed, in order; the schedule's lines only where something broke.

    ``run`` is ``serial_run.run`` or ``parallel_run.run``.
    """
    one = partial(_brief, run=run, deliveries=deliveries)
    if jobs <= 1:
        yield from map(one, seeds)
        return
    with workers(jobs, lambda pool: pool.map(one, seeds, chunksize=CHUNK)) as outcomes:
        yield from outcomes


def total(outcomes: Iterable[SeedResult], on_each: Callable[[SeedResult], None] = lambda _: None) -> Total:
    """The sum; ``on_each`` is told of every outcome as it comes."""
    sums: Counter[str] = Counter()
    apart: Counter[str] = Counter(dict.fromkeys(map(str, APART), 0))
    counts = dict.fromkeys(map(str, KINDS), 0)
    broken: list[SeedResult] = []
    for outcome in outcomes:
        sums += Counter(
            runs=1,
            deliveries=outcome.deliveries,
            deaths=outcome.deaths,
            launches=outcome.launches,
            jobs=outcome.jobs,
        )
        apart.update(dict(outcome.apart))
        for violation in outcome.violations:
            counts[violation.kind] += 1
        if outcome.violations:
            broken.append(outcome)
        on_each(outcome)
    return Total(
        runs=sums["runs"],
        deliveries=sums["deliveries"],
        deaths=sums["deaths"],
        launches=sums["launches"],
        jobs=sums["jobs"],
        counts=counts,
        apart=dict(apart),
        broken=tuple(broken),
    )


def _brief(seed: int, *, run: Callable[[int, int], SeedResult], deliveries: int) -> SeedResult:
    outcome = run(seed, deliveries)
    return outcome if outcome.violations else outcome._replace(lines=())


def seed_range(text: str) -> range:
    """The seeds that "A..B" names, both ends included. Raises ``BadInput``."""
    first, dots, last = text.partition("..")
    if not (first.isdecimal() and last.isdecimal() and dots) or int(first) > int(last):
        raise BadInput(f"--seeds is {text!r}: write A..B, as in 0..199")
    return range(int(first), int(last) + 1)
