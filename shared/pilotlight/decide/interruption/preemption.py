"""Preemption of work that runs by work that waits: whether one should give way, with reasons and both costs.

Article 003's rule, corrected: never for the same or a higher priority, and only where the one that waits is short
beside what the other has left (under 0.3 of it). Beside the rule stand both costs: what waiting costs the one until any
place comes free, and what the other loses that it did not save, with the time to start again, on all its GPUs, and to
wait in its turn.
"""

from decimal import Decimal
from typing import NamedTuple

from pilotlight.units import HOUR, Seconds, Usd, UsdPerHour, count_of, human, round_usd

SHORT = 0.3
"""Of the time that is left to the one that runs."""


class Contender(NamedTuple):
    """A job as it stands: ``left_s`` to run (all of it, for one that waits), ``unsaved_s`` lost if it stops now."""

    name: str
    priority: int
    left_s: Seconds
    gpus: int
    usd_per_gpu_hour: UsdPerHour
    unsaved_s: Seconds = 0.0
    restart_s: Seconds = 0.0
    never_preempts: bool = False
    """Its PriorityClass has preemptionPolicy Never."""
    worth: UsdPerHour | None = None
    """Dollars an hour of its own waiting; None: as the other's."""


class Preemption(NamedTuple):
    """The advice, its reason, and dollars both ways."""

    preempt: bool
    why: str
    waiting_usd: Usd
    preempting_usd: Usd


class Queue(NamedTuple):
    """The queue that both wait in: a place comes free within ``next_s`` though nobody leaves, and a job that leaves
    comes back ``behind_s`` after its place is free again: others of its priority wait already."""

    next_s: Seconds = float("inf")
    behind_s: Seconds = 0.0


ALONE = Queue()


def should_preempt(
    waiting: Contender, running: Contender, value_of_wait: UsdPerHour, queue: Queue = ALONE
) -> Preemption:
    """``value_of_wait``: dollars an hour of waiting, of the job that waits. Where nothing is to be had by it: no."""
    waits = _usd(value_of_wait, min(running.left_s, queue.next_s))
    lost_s = running.unsaved_s + running.restart_s
    worth = value_of_wait if running.worth is None else running.worth
    away_s = waiting.left_s + lost_s + queue.behind_s
    loses = _usd(running.usd_per_gpu_hour * running.gpus, lost_s) + _usd(worth, away_s)
    return Preemption(*_judged(waiting, running, waits, loses), waits, loses)


def _judged(waiting: Contender, running: Contender, waits: Usd, loses: Usd) -> tuple[bool, str]:
    if waiting.never_preempts:
        return False, f"{waiting.name}'s priority class never preempts"
    if waiting.priority <= running.priority:
        return False, f"{running.name} has priority {running.priority}, {waiting.name} no more ({waiting.priority})"
    if running.gpus < waiting.gpus:
        return False, f"{running.name} holds {count_of(running.gpus, 'GPU')}, {waiting.name} needs {waiting.gpus}"
    times = f"{waiting.name} needs {human(waiting.left_s)}, {running.name} has {human(running.left_s)} left"
    if waiting.left_s >= SHORT * running.left_s:
        return False, f"{times}: not under {SHORT:g} of it"
    if loses >= waits:
        return False, f"{times}, but waiting costs ${waits} and preempting ${loses}"
    return True, f"{times}; waiting costs ${waits}, preempting ${loses}"


def _usd(per_hour: UsdPerHour, seconds: Seconds) -> Usd:
    return round_usd(per_hour * Decimal(repr(seconds)) / Decimal(repr(HOUR)))
