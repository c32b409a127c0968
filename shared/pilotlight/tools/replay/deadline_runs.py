"""A job with a deadline, played tick by tick against when spot was up, by any rule."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pilotlight.decide.job_deadlines.deadline_capacity import Capacity


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
