"""The last 24 hours of a cluster, of the decisions in them: dollars an hour, and nodes bought and released."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from pilotlight.facts.decisions import Buy, Record
from pilotlight.tools.serve.live.live_view import HalfHour
from pilotlight.units import UsdPerHour

HALF = timedelta(minutes=30)
HALVES = 48


class Moment(NamedTuple):
    """A decision: when, dollars an hour before and after it, and nodes that came and went by it."""

    at: datetime
    before: UsdPerHour
    after: UsdPerHour
    bought: int
    released: int


def moment(record: Record) -> Moment:
    """What a decision did to what is paid."""
    done = [(call, step) for call, step in record.calls_with_steps if step.state == "done" and step.code != "there"]
    bought = sum(step.count for call, step in done if isinstance(call, Buy))
    plan = record.plan
    after = plan.usd_per_hour_after if done else plan.usd_per_hour_before
    return Moment(record.at, plan.usd_per_hour_before, after, bought, len(done) - _buys(done))


def _buys(done: Iterable[tuple[object, object]]) -> int:
    return sum(isinstance(call, Buy) for call, _ in done)


def strip(moments: Iterable[Moment], now: datetime, usd_per_hour: UsdPerHour) -> tuple[HalfHour, ...]:
    """Half hours up to now, the oldest first. Before the first decision nodes cost what it found."""
    ordered = sorted(moments)
    begins = now.replace(minute=now.minute // 30 * 30, second=0, microsecond=0) - (HALVES - 1) * HALF
    earlier = [one for one in ordered if one.at < begins]
    later = [one for one in ordered if one.at >= begins]
    rate = earlier[-1].after if earlier else later[0].before if later else usd_per_hour
    found, at = [], 0
    for n in range(HALVES):
        start = begins + n * HALF
        bought = released = 0
        while at < len(later) and later[at].at < start + HALF:
            one, at = later[at], at + 1
            rate, bought, released = one.after, bought + one.bought, released + one.released
        usd = usd_per_hour if n == HALVES - 1 else rate
        found.append(HalfHour(at=start, usd=usd, bought=bought, released=released))
    return tuple(found)
