"""A job with a deadline, played tick by tick against when spot was up, by any rule."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from pilotlight.decide.job_deadlines.deadline_capacity import DOWN_S, PRIOR, UP_S, Capacity, Chances
from pilotlight.units import Seconds


class DeadlineJob(NamedTuple):
    """Ticks of work, until the deadline, and of each start on other capacity."""

    work: int
    time: int
    restart: int


class Now(NamedTuple):
    """A rule's knowledge: ticks left of work, of time and of the start under way; where it runs; which zones are up."""

    work: int
    time: int
    restart_left: int
    where: Capacity
    zone: int
    up: tuple[bool, ...]


Step = tuple[Capacity, int]
"""Where it runs for a tick, and in which zone (of spot)."""
Rule = Callable[[Now], Step]


class Played(NamedTuple):
    """Actions of every tick, and the work that was left."""

    log: list[Step]
    work_left: int


def play(up: Sequence[Sequence[bool]], job: DeadlineJob, rule: Rule) -> Played:
    """Play a rule until the work is done or the time is over. ``up``: a row a zone; each wraps at its end."""
    work, left, zone = job.work, 0, 0
    where: Capacity = "none"
    log: list[Step] = []
    for tick in range(job.time):
        now = tuple(row[tick % len(row)] for row in up)
        if where == "spot" and not now[zone]:
            where, left = "none", 0
        step = rule(Now(work, job.time - tick, left, where, zone, now))
        log.append(step)
        if step[0] == "none":
            where = "none"
            continue
        if step[0] != where or (where == "spot" and step[1] != zone):
            left = job.restart
        where, zone = step
        if left:
            left -= 1
        else:
            work -= 1
        if not work:
            break
    return Played(log, work)


MOST = 0.95


def chance(changes: int, ticks: int, prior_ticks: float, weight: float = PRIOR) -> float:
    """Of one tick: ``changes`` in ``ticks``, with a prior of one in ``prior_ticks`` that weighs ``weight`` changes."""
    return min(MOST, (changes + weight) / (ticks + weight * max(1.0, prior_ticks)))


def learnt(history: Sequence[Sequence[bool]], zone: int, tick_s: Seconds) -> Chances:
    """Chances that the last ticks of every zone give a job that runs in ``zone``. Rows are equally long."""
    own = history[zone]
    some = [any(row) for row in zip(*history, strict=True)]
    lost_at = [n + 1 for n in range(len(own) - 1) if own[n] and not own[n + 1]]
    with_others = sum(some[n] for n in lost_at)
    others = (with_others + 0.5) / (len(lost_at) + 1) if len(history) > 1 else 0.0
    return Chances(
        lost=_changes(own, True, UP_S / tick_s),
        back=_changes(some, False, DOWN_S / tick_s),
        gone=_changes(some, True, UP_S / tick_s),
        elsewhere=others,
    )


def _changes(row: Sequence[bool], value: bool, prior_ticks: float) -> float:
    pairs = [(a, b) for a, b in pairwise(row) if a == value]
    return chance(sum(b != value for _, b in pairs), len(pairs), prior_ticks)
