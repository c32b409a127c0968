"""A pool that is acted on beside a control: the figures of both, and whether the canary has passed its bounds."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from pilotlight.facts.memory import Backoff
from pilotlight.facts.money.bill import MeterDay
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.facts.policy import CanaryPolicy
from pilotlight.units import Seconds, Usd, cents, human

LEAST_HOURS = Decimal(1)
"""GPU-hours that must have been used in both pools before their dollars are compared."""
MOST_REFUSALS = 3
"""So many purchases in a row that its cloud refused."""


class Side(NamedTuple):
    """One pool in the days compared. ``wait_s`` is for how long its oldest purchase has been on its way, ``refusals``
    how often in a row its cloud has refused one.
    """

    pool: str
    usd: Usd
    idle_usd: Usd
    used_gpu_hours: Decimal
    wait_s: Seconds
    refusals: int

    @property
    def usd_per_used_hour(self) -> Usd | None:
        """Dollars a GPU-hour that was used, idle and boot among them; None where too little was used to tell."""
        return self.usd / self.used_gpu_hours if self.used_gpu_hours >= LEAST_HOURS else None


def side(
    pool: str, days: Iterable[MeterDay], flights: Iterable[InFlight], backoffs: Iterable[Backoff], now: datetime
) -> Side:
    """The figures of a pool."""
    lines = [line for day in days for line in day.lines if line.pool == pool]
    waits = [(now - one.requested_at).total_seconds() for one in flights if one.pool == pool]
    refused = [one.tries for one in backoffs if one.offering.partition("/")[0] == pool and one.until > now]
    return Side(
        pool=pool,
        usd=sum((line.usd for line in lines), Decimal(0)),
        idle_usd=sum((line.usd for line in lines if line.kind == "idle"), Decimal(0)),
        used_gpu_hours=sum((line.gpu_hours for line in lines if line.kind == "used"), Decimal(0)),
        wait_s=max(waits, default=0.0),
        refusals=max(refused, default=0),
    )


def passed_bound(canary: Side, control: Side, bounds: CanaryPolicy) -> str:
    """Which bound the canary has passed, with its figures; or nothing."""
    if canary.wait_s > bounds.max_wait:
        return f"a purchase is on its way for {human(canary.wait_s)}, more than max_wait {human(bounds.max_wait)}"
    if canary.refusals >= MOST_REFUSALS:
        return f"its cloud refused {canary.refusals} purchases in a row"
    ours, theirs = canary.usd_per_used_hour, control.usd_per_used_hour
    if ours is None or theirs is None or ours <= theirs * Decimal(repr(bounds.max_usd_ratio)):
        return ""
    return (
        f"a GPU-hour that was used cost {cents(ours)}, and {cents(theirs)} in {control.pool}: more than "
        f"max_usd_ratio {bounds.max_usd_ratio:g}"
    )
