"""Shortage of the type that costs least: wait for it, or buy the next. By the one price.

A shortage is expected to last as long again as it has lasted, from the next try on. So one that goes on comes to where
the next type is cheaper than more waiting, and waiting is never worth more than the dollars it was to save.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from pilotlight.decide.offers.selection import Candidate, Eligible
from pilotlight.facts.memory import Memory
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodShape
from pilotlight.units import HOUR, Seconds, Usd, cents, human, per_hour


def better_waited_for(
    next_: Candidate,
    short: Iterable[Candidate],
    shape: PodShape,
    count: int,
    run_s: Seconds,
    policy: Policy,
    memory: Memory,
    now: datetime,
) -> str:
    """Why pods of a shape wait for one of ``short`` rather than are bought the next type, or empty.

    ``count`` of them are expected to run ``run_s``. A type of the same $/GPU is bought at once, as is what a class
    falls back to from spot: its owner said so. Where waiting has no price the next type is bought.
    """
    wait = policy.wait(shape.workload_class) / (shape.gang.size if shape.gang else 1)
    for candidate in short if wait else ():
        resting = memory.live_backoff(candidate.offering.name, now)
        if resting is None or resting.short_since is None or not _nexts(candidate, next_):
            continue
        to_the_next_try, so_far = resting.until - now, now - resting.short_since
        longer_s = (to_the_next_try + so_far).total_seconds() + candidate.offering.boot_s - next_.offering.boot_s
        waited, more = per_hour(wait, longer_s), _usd(next_, count, run_s) - _usd(candidate, count, run_s)
        if waited < more:
            return (
                f"{candidate.offering.name} is short: waiting {human(max(0.0, longer_s))} longer for it costs "
                f"{cents(waited)} at {cents(wait)}/h, {next_.offering.name} {cents(more)} more for "
                f"{run_s / HOUR:.1f} h of running"
            )
    return ""


def _nexts(candidate: Candidate, next_: Candidate) -> bool:
    """True where another type costs more a GPU, and is no fall-back."""
    return candidate.offering.capacity_type == next_.offering.capacity_type and candidate.rate < next_.rate


def _usd(candidate: Candidate, count: int, run_s: Seconds) -> Usd:
    """Dollars of one of ``count`` pods that share nodes of a candidate, for its run and the boot."""
    offering, runs_s = candidate.offering, run_s / candidate.throughput
    return per_hour(offering.usd_per_hour, offering.boot_s + runs_s) / Decimal(min(count, candidate.per_node))


def short_zones(eligible_: Eligible) -> list[Candidate]:
    """Candidates that rest for want of capacity in their zone, of pools that are sold in several."""
    resting = [c for c, code, _ in eligible_.held if code == "backoff"]
    if not resting:
        return []
    zones = Counter(c.offering.pool for c in (*eligible_.candidates, *(c for c, _, _ in eligible_.held)))
    return [c for c in resting if zones[c.offering.pool] > 1]
