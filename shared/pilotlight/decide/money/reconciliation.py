"""The bill held against the meter, by day and pool, and what is learnt from it: how much more or less a pool is billed.

A correction is for people: it says what days that are only metered will be billed at. No budget, hold or cap is moved
by it; whoever wants that writes the pool's price into the policy.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, MeterDay
from pilotlight.units import Usd

ZERO = Decimal(0)
LEARNT_FROM = timedelta(days=28)
"""A correction is learnt from so many days up to the last that is billed."""
FEWEST = 5
"""From fewer days nothing is learnt."""
SMALLEST: Usd = Decimal(1)
"""A day on which a pool was metered at less says nothing of its price."""
BOUNDS = (Decimal("0.8"), Decimal("1.25"))
"""No correction is further from one: what is, is a wrong price or scope, and no correction."""
ALL_POOLS = ""


class Compared(NamedTuple):
    """A day and pool: dollars billed and metered. In ``doubt`` it may have been billed at more.

    Without a pool it is what the bill ties to none; or the whole day, where its bill names no pools at all.
    ``listed`` is what it comes to at list prices, where commitments pay a part of it: what is billed is no price then.
    """

    day: date
    pool: str
    billed: Usd
    metered: Usd
    doubt: bool = False
    listed: Usd | None = None

    @property
    def more(self) -> Usd:
        """Dollars billed above what was metered."""
        return self.billed - self.metered

    @property
    def price(self) -> Usd:
        """Dollars to hold the meter's prices against: at list prices where commitments pay."""
        return self.billed if self.listed is None else self.listed


class Correction(NamedTuple):
    """Billed dollars for each metered one, as the median of ``days`` days up to ``through``.

    ``spread`` is the median distance of those days from it. ``bounded``: the days say more than is believed.
    """

    pool: str
    factor: Decimal
    through: date
    days: int
    billed: Usd
    metered: Usd
    spread: Decimal
    bounded: bool


def compare_with_bill(
    metered: Mapping[date, MeterDay], billed: Mapping[date, Sequence[BillDay]], begins: date | None = None
) -> tuple[Compared, ...]:
    """Every day and pool that is both metered and billed.

    On the first day of the meter, where it ``begins`` or that of these, it may have begun at any hour: that day is not
    compared.
    """
    found: list[Compared] = []
    for day in sorted(billed.keys() & metered.keys()):
        if day > (begins or min(metered)):
            found += _of_day(day, billed[day], metered[day])
    return tuple(found)


def _of_day(day: date, bills: Sequence[BillDay], metered: MeterDay) -> list[Compared]:
    rows = [row for bill in bills for row in bill.rows]
    told = any(row.pool for row in rows) or not rows
    usd, counted = by_pool(rows), by_pool(metered.lines) if told else _together(metered.lines)
    doubt = any(bill.doubt for bill in bills)
    listed = _listed(rows)
    return [
        Compared(day, pool, usd[pool], counted[pool], doubt, listed.get(pool))
        for pool in sorted(usd.keys() | counted.keys())
    ]


def _listed(rows: Sequence[BilledDay]) -> dict[str, Usd]:
    """Dollars at list prices of the pools of which commitments pay a part; what no node used is no pool's."""
    paid = {row.pool for row in rows if row.commitment == "used"}
    sums = dict.fromkeys(sorted(paid), ZERO)
    for row in rows:
        if row.pool in paid and row.commitment in ("", "used"):
            sums[row.pool] += row.usd if row.list_usd is None else row.list_usd
    return sums


def by_pool(rows: Iterable[BilledDay | CostLine]) -> defaultdict[str, Usd]:
    """Dollars of rows, by pool."""
    sums: defaultdict[str, Usd] = defaultdict(Decimal)
    for row in rows:
        sums[row.pool] += row.usd
    return sums


def _together(lines: Iterable[CostLine]) -> defaultdict[str, Usd]:
    return defaultdict(Decimal, {ALL_POOLS: sum((line.usd for line in lines), ZERO)})


def corrections(days: Iterable[Compared]) -> tuple[Correction, ...]:
    """Corrections learnt of each pool from its latest days. No pool is no price, and nothing is learnt of it."""
    by_pool: dict[str, list[Compared]] = defaultdict(list)
    for one in days:
        if one.metered >= SMALLEST and one.billed > 0 and not one.doubt and one.listed is None:
            by_pool[one.pool].append(one)
    learnt = (_learnt(pool, by_pool[pool]) for pool in sorted(by_pool))
    return tuple(one for one in learnt if one is not None)


def _learnt(pool: str, days: Sequence[Compared]) -> Correction | None:
    through = max(one.day for one in days)
    used = [one for one in days if one.day > through - LEARNT_FROM]
    if len(used) < FEWEST:
        return None
    ratios = [one.billed / one.metered for one in used]
    middle = median(ratios)
    factor = min(max(middle, BOUNDS[0]), BOUNDS[1])
    return Correction(
        pool=pool,
        factor=factor,
        through=through,
        days=len(used),
        billed=sum((one.billed for one in used), ZERO),
        metered=sum((one.metered for one in used), ZERO),
        spread=median([abs(ratio - middle) for ratio in ratios]),
        bounded=factor != middle,
    )


def median(values: Sequence[Decimal]) -> Decimal:
    """The middle of some values; of an even number the mean of both. Raises ``ValueError`` without any."""
    if not values:
        raise ValueError("there is no median of nothing")
    found, half = sorted(values), len(values) // 2
    return found[half] if len(found) % 2 else (found[half - 1] + found[half]) / 2
