"""Cost of an hour and the usual one then: median and median distance (MAD) of the same hour of the same weekday.

Until a weekday has enough weeks behind it the same hour of every day counts. Both hold their ground against a few odd
hours, so one bad night does not make the next one look usual.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from pilotlight.decide.money.reconciliation import median
from pilotlight.facts.money.bill import Anomaly, CostLine, HourCost, HourMark, HourSums, MeterDay
from pilotlight.units import Usd, cents

ZERO = Decimal(0)
IDLE, SHARED, OTHERS = "(idle)", "(shared)", "(others)"
LONGEST = timedelta(hours=3)
"""A span for which nobody looked at the meter is no hour."""
MOST_TEAMS = 60
"""So many teams are kept of an hour, the dearest; the rest is one."""
OF_WEEKDAY, OF_ANY_DAY = 4, 7
"""From so many hours of a weekday, or of any day, on something is usual."""
DISTANCES = Decimal(4)
MAD_TO_SIGMA = Decimal("1.4826")
"""For a normal distribution the standard deviation is so many times the median distance."""
SHARE = Decimal("0.25")
LEAST: Usd = Decimal(1)
"""An hour is odd once it is so many deviations, this share and these dollars above what is usual."""

WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")


def sums(lines: Iterable[CostLine]) -> HourSums:
    """A day's lines by pool, team and machine."""
    pools: dict[str, Usd] = defaultdict(Decimal)
    teams: dict[str, Usd] = defaultdict(Decimal)
    machines: dict[str, Decimal] = defaultdict(Decimal)
    for line in lines:
        pools[line.pool] += line.usd
        teams[{"idle": IDLE, "shared": SHARED}.get(line.kind) or line.team] += line.usd
        machines[f"{line.instance_type} {line.capacity_type}"] += line.gpu_hours
    return HourSums(pools=dict(pools), teams=dict(teams), machines=dict(machines))


def mark(today: MeterDay) -> HourMark:
    """Up to where hours are told, once this one is."""
    return HourMark(at=today.until, day=today.day, usd=sums(today.lines))


def hour_ended(was: HourMark, at: datetime) -> bool:
    """True where an hour has ended since a mark."""
    return (at.date(), at.hour) > (was.at.date(), was.at.hour)


def hour(was: HourMark, days: Sequence[MeterDay], at: datetime) -> HourCost | None:
    """Cost of an hour from a mark up to ``at``; None where nobody looked for longer.

    ``days`` are those from the mark's on. What became cheaper meanwhile, as time whose owner is known better, is 0.
    """
    span = at - was.at
    if not timedelta(0) < span <= LONGEST:
        return None
    now = sums(line for day in days for line in day.lines)
    hours = Decimal(span // timedelta(microseconds=1)) / 3_600_000_000
    rates = HourSums(
        pools=_rate(was.usd.pools, now.pools, hours),
        teams=_dearest(_rate(was.usd.teams, now.teams, hours)),
        machines=_rate(was.usd.machines, now.machines, hours),
    )
    return HourCost(at=at, hours=hours, rates=rates)


def _rate(was: dict[str, Decimal], now: dict[str, Decimal], hours: Decimal) -> dict[str, Decimal]:
    more = {name: amount - was.get(name, ZERO) for name, amount in now.items()}
    return {name: (amount / hours).quantize(Decimal("1e-9")) for name, amount in sorted(more.items()) if amount > 0}


def _dearest(teams: dict[str, Usd]) -> dict[str, Usd]:
    ordered = sorted(teams.items(), key=lambda one: (-one[1], one[0]))
    rest = sum((usd for _, usd in ordered[MOST_TEAMS:]), ZERO)
    return dict(ordered[:MOST_TEAMS]) | ({OTHERS: rest} if rest else {})


def begins(one: HourCost) -> datetime:
    """The hour of the clock that a cost is of: where the middle of its span lies."""
    middle = one.at - timedelta(hours=float(one.hours)) / 2
    return middle.replace(minute=0, second=0, microsecond=0)


def total(one: HourCost) -> Usd:
    """Dollars an hour."""
    return sum(one.rates.pools.values(), ZERO)


def anomaly(one: HourCost, past: Iterable[HourCost]) -> Anomaly | None:
    """Anomaly of an hour beside the same hour of other days; None where it is usual, or nothing is known of it."""
    known, weekday = _alike(one, past)
    if not known:
        return None
    amounts = [total(each) for each in known]
    usual = median(amounts)
    spread = median([abs(amount - usual) for amount in amounts])
    usd = total(one)
    if usd - usual <= max(DISTANCES * MAD_TO_SIGMA * spread, SHARE * usual, LEAST):
        return None
    pool, pool_usd, pool_usual = _rose([each.rates.pools for each in known], one.rates.pools)
    team, team_usd, team_usual = _rose([each.rates.teams for each in known], one.rates.teams)
    return Anomaly(
        at=one.at,
        usd=usd,
        usual=usual,
        spread=spread,
        hours=len(known),
        weekday=weekday,
        pool=pool,
        pool_usd=pool_usd,
        pool_usual=pool_usual,
        team=team,
        team_usd=team_usd,
        team_usual=team_usual,
    )


def _alike(one: HourCost, past: Iterable[HourCost]) -> tuple[list[HourCost], int | None]:
    """The same hour of the same weekday, else of any day; nothing where there are too few."""
    at = begins(one)
    same = [each for each in past if begins(each).hour == at.hour and begins(each).date() < at.date()]
    of_day = [each for each in same if begins(each).weekday() == at.weekday()]
    if len(of_day) >= OF_WEEKDAY:
        return of_day, at.weekday()
    return (same, None) if len(same) >= OF_ANY_DAY else ([], None)


def _rose(known: Sequence[dict[str, Usd]], now: dict[str, Usd]) -> tuple[str, Usd, Usd]:
    """The one that rose most above what is usual for it: the name, its dollars an hour, and what is usual."""
    usual = {name: median([each.get(name, ZERO) for each in known]) for name in now}
    name = max(sorted(now), key=lambda each: now[each] - usual[each])
    return name, now[name], usual[name]


def cause(odd: Anomaly) -> str:
    """Beside what an hour is odd, and what is behind it, in a sentence."""
    days = WEEKDAYS[odd.weekday] if odd.weekday is not None else "days"
    bought = (
        f"; bought by decision {odd.decision}" if odd.decision else "; nothing of it was bought lately: it stays lit"
    )
    return (
        f"{odd.hours} {days} at that hour: median {cents(odd.usual)}, median distance {cents(odd.spread)}; "
        f"pool {odd.pool} {cents(odd.pool_usd)} an hour (usually {cents(odd.pool_usual)}), "
        f"{odd.team or 'no team'} {cents(odd.team_usd)} (usually {cents(odd.team_usual)}){bought}"
    )
