"""Interruptions by seed: nodes are taken with notice, without, or perhaps, and what must never happen is counted.

=========================  ===========================================================================================
lost_checkpoints           a pod that had the time to save after the notice, and lost work from before it
broken_budgets             a node given back with pods on it before the deadline's margin: past every disruption budget
late_replacements          with a minute of notice or more, a pod evicted before a replacement was asked for
cordons_past_their_ttl     a node that still takes no pods when its cordon should have ended
double_replacements        more than one node launched in the place of one
relaunches_without_demand  with notice, a node launched in the place of one on which nothing ran
stranded_jobs              a job that is neither running nor finished when all is quiet
false_evictions            a pod evicted though none of its job's nodes goes: a notice was not true
internal_errors            an answer 500
=========================  ===========================================================================================
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from harness.interruptions.interruption_run import COUNTED, Broken, InterruptionRun
from harness.interruptions.interruption_scene import KINDS
from pilotlight.facts.messages import NoticeKind
from pilotlight.tools.replay.worker_processes import workers
from pilotlight.units import HOUR


class SeedOutcome(NamedTuple):
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
    broken: tuple[SeedOutcome, ...]


def sweep(seeds: Sequence[int], jobs: int, on_each: Callable[[], None] = lambda: None) -> Total:
    """All seeds, several at a time."""
    if jobs <= 1:
        return _total(map(run, seeds), on_each)
    with workers(jobs, lambda pool: pool.map(run, seeds, chunksize=8)) as outcomes:
        return _total(outcomes, on_each)


def _total(outcomes: Iterable[SeedOutcome], on_each: Callable[[], None]) -> Total:
    counts: dict[str, int] = dict.fromkeys(COUNTED, 0)
    kinds: dict[str, int] = dict.fromkeys(dict.fromkeys(KINDS), 0)
    broken: list[SeedOutcome] = []
    lost = 0.0
    for outcome in outcomes:
        kinds[outcome.kind] += 1
        lost += outcome.lost_gpu_hours
        broken += [outcome] if outcome.broken else []
        for name, _ in outcome.broken:
            counts[name] += 1
        on_each()
    return Total(sum(kinds.values()), kinds, counts, lost, tuple(broken))


def run(seed: int) -> SeedOutcome:
    """One seed: a pool with work on it, one node of which goes, or all of a zone."""
    run = InterruptionRun(seed)
    run.light()
    run.strike()
    run.judge()
    return SeedOutcome(seed, run.kind, tuple(run.broken), tuple(run.lines), run.world.lost_gpu_seconds / HOUR)
