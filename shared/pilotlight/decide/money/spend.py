"""Spend of a budget: billed by the cloud on whole days that its export covers, metered for all that no bill names.

A bill knows pools, and teams where its export carries their tags; it never knows classes, nor who held a GPU. So for
a class, for GPU-hours, and for a team that no export names, the meter alone counts. Idle and shared time is no team's.
A bill replaces the meter for nodes that its lines of the scope name; its other lines come on top. A line at $0 names
none, unless the budget's basis asks for such lines: hours that a commitment pays stay metered beside those that are
billed. Lines of a trifle, as a metric's of the node, name none either. A bill that names no node at all replaces the
meter where it is not far below it.

Forecast of a budget's period: its spend, and as many days more as are left, each like the last ones.

The band is the prediction interval for the sum of m further days of which n are known, with mean x and standard
deviation s: m x +- t s sqrt(m + m^2 / n), with Student's t at n - 1 degrees of freedom (Hahn and Meeker, "Statistical
Intervals", 1991, section 4.7). It takes days for independent.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import fsum, sqrt
from typing import Literal, NamedTuple

from msgspec.structs import replace

from pilotlight.decide.money.counted_days import CountedDays, amounts, billed_key, kind_and_name, scope_key, sum_parts
from pilotlight.decide.money.metering import day_start
from pilotlight.decide.money.reconciliation import Compared
from pilotlight.facts.money.bill import BilledDay, ClosedBilled, ClosedDays, ClosedPart, CostLine
from pilotlight.facts.money.budgets import Forecast, Meter, Spent
from pilotlight.facts.money.money_policy import BudgetScope, CostBasis
from pilotlight.facts.workload import Finding
from pilotlight.units import Usd, cents

DAY = timedelta(days=1)
ZERO = Decimal(0)

DRIFT_SHARE, DRIFT_USD = Decimal("0.05"), Decimal(1)
"""Bill and meter may differ by so much of the larger, and by so many dollars, on a day and pool."""

TRIFLE = Decimal("0.1")
"""A node's rows that come to less of what was metered are for something else than its time."""

DAYS = 14
"""So many whole days are looked back on: two of each day of the week."""


class _Day(NamedTuple):
    """Amounts of a day that are billed, and metered of what its bills do not name; ``sunk`` of the billed ones."""

    billed: Decimal
    metered: Decimal
    sunk: Decimal = ZERO

    @property
    def total(self) -> Decimal:
        return self.billed + self.metered


def close_days(meters: Iterable[Meter], known: CountedDays, first: date, end: date) -> ClosedDays:
    """What these meters ask of the days from the ``first`` to before ``end``, of days that are not closed yet."""
    parts: dict[str, dict[date, tuple[ClosedPart, ...]]] = {}
    bills: dict[str, dict[date, ClosedBilled]] = {}
    metered, billed = (tuple(d for d in sorted(days) if d < end) for days in (known.metered, known.billed))
    for meter in meters:
        scope = meter.budget.scope
        if scope_key(scope) not in parts:
            by_day = {day: sum_parts(known.lines(scope, day)) for day in metered}
            parts[scope_key(scope)] = {day: found for day, found in by_day.items() if found}
        if meter.measure == "usd":
            own = {day: ClosedBilled(*_of_day(meter, known, day)) for day in billed}
            bills[billed_key(scope, meter.budget.basis)] = own
    return ClosedDays(
        first=first, end=end, metered=metered, billed=billed, parts=parts, bills=bills,
        sources=tuple(sorted(known.sources)),
        compared=tuple(
            (c.day, c.pool, c.billed, c.metered, c.doubt, c.listed) for c in known.compared if c.day < end
        ),
    )  # fmt: skip


def answers(closed: ClosedDays, meters: Iterable[Meter]) -> bool:
    """Whether what is kept of closed days is all that these meters ask of them."""
    return all(
        billed_key(meter.budget.scope, meter.budget.basis) in closed.bills
        if meter.measure == "usd"
        else scope_key(meter.budget.scope) in closed.parts
        for meter in meters
    )


def budget_spend(meter: Meter, known: CountedDays, held: Decimal, now: datetime) -> Spent:
    """Spend of a meter with a period, and what it will end with."""
    assert meter.end is not None
    own = _Own(meter, known)
    billed = metered = sunk = ZERO
    first, end = meter.start.date(), min(meter.end, now)
    parts = {at.date() for at in (meter.start, meter.end) if at != day_start(at.date())}
    for day in (first + n * DAY for n in range(-(-(end - day_start(first)) // DAY))):
        if day in parts:
            metered += _sum(meter, _metered(meter, known, day))
        elif day in own.bills:
            of_day = _of_day(meter, known, day)
            billed, metered, sunk = billed + of_day.billed, metered + of_day.metered, sunk + of_day.sunk
        else:
            metered += own.metered.get(day, ZERO)
    coming = forecast(billed + metered, meter.limit, own.last_days(now.date()), now, meter.end, own.a_day(now))
    coming = _at_least(coming, max(billed + metered, held))
    return Spent(meter=meter, billed=billed, metered=metered, sunk=sunk, held=held, forecast=coming)


class _Own:
    """Days of one meter."""

    def __init__(self, meter: Meter, known: CountedDays) -> None:
        self._meter, self._known = meter, known
        self.metered = known.sums(*kind_and_name(meter.budget.scope), meter.measure)
        self.bills: Set[date] = known.billed_days if meter.measure == "usd" else set()

    def total(self, day: date) -> Decimal:
        """All of a whole day."""
        return _of_day(self._meter, self._known, day).total if day in self.bills else self.metered.get(day, ZERO)

    def last_days(self, today: date) -> list[Decimal]:
        """Amounts of the last whole days. On the day that the books begin the meter may have begun at any hour."""
        first = max(self._known.first(today) + DAY, today - DAYS * DAY)
        return [self.total(first + n * DAY) for n in range((today - first).days)]

    def a_day(self, now: datetime) -> Decimal:
        """Today's pace, for a meter that knows less than two days: what today took so far, for as long as a day is."""
        gone = (now - day_start(now.date())) / DAY
        return self.total(now.date()) / Decimal(f"{gone:.9f}") if gone > 0.01 else ZERO


def _of_day(meter: Meter, known: CountedDays, day: date) -> _Day:
    """A day that is billed."""
    if day < known.closed.end:
        kept = known.closed.bills[billed_key(meter.budget.scope, meter.budget.basis)][day]
        return _Day(kept.billed, kept.metered, kept.sunk)
    lines, bills = known.lines(meter.budget.scope, day), known.billed[day]
    told, sure = [row for bill in bills for row in bill.rows], not any(bill.doubt for bill in bills)
    rows = _of_scope(told, meter.budget.scope)
    return _Day(ZERO, _sum(meter, lines)) if rows is None else _billed(meter, lines, told, rows, sure=sure)


def _billed(
    meter: Meter, lines: Sequence[CostLine], told: Sequence[BilledDay], rows: Sequence[BilledDay], *, sure: bool
) -> _Day:
    """Dollars of a scope's ``rows``, and of its metered lines that they leave; ``told`` are all of the day's bills."""
    metered, basis = _sum(meter, lines), meter.budget.basis
    billed = sum((_usd(row, basis) for row in rows), ZERO)
    by_node = any(row.resource for row in told) and all(line.node for line in lines)
    left = _left(lines, rows, basis) if by_node else ZERO
    day = _Day(billed, left, sum((_usd(row, basis) for row in rows if row.commitment), ZERO))
    if by_node and sure:
        return day
    return _Day(ZERO, metered) if metered > day.total and apart(day.total, metered) else day


def _left(lines: Sequence[CostLine], rows: Sequence[BilledDay], basis: CostBasis | None) -> Usd:
    """Metered dollars of nodes that no row names, or only for data that was moved; of others those left of them."""
    metered: dict[str, Usd] = defaultdict(Decimal)
    for line in lines:
        metered[line.node] += line.usd
    named: dict[str, list[BilledDay]] = defaultdict(list)
    for row in rows:
        if not row.egress:
            named[row.resource].append(row)
    return sum((_left_of(usd, named[node], basis) if node in named else usd for node, usd in metered.items()), ZERO)


def _left_of(metered: Usd, rows: Sequence[BilledDay], basis: CostBasis | None) -> Usd:
    """What a node's rows leave of its metered dollars.

    Rows at $0 set nothing aside, unless the budget asks for a basis that they tell: of both kinds each has its part of
    the list price. Neither do rows that are a trifle beside what was metered.
    """
    if basis is not None and any(row.amount(basis) is not None for row in rows):
        return metered if no_node(rows, metered) else ZERO
    billed, listed = sum((row.usd for row in rows), ZERO), sum((row.list_usd or ZERO for row in rows), ZERO)
    free = sum((row.list_usd or ZERO for row in rows if not row.usd), ZERO)
    if 0 < free < listed:
        return metered * free / listed
    return metered if billed < TRIFLE * metered else ZERO


def no_node(rows: Iterable[BilledDay], metered: Usd) -> bool:
    """Whether rows that name a node are for something else than its time: a trifle of it, or a refund alone."""
    amounts = [(row.usd, row.list_usd or ZERO, row.effective_usd or ZERO) for row in rows]
    most = max(sum((max(ZERO, usd) for usd in each), ZERO) for each in zip(*amounts, strict=True))
    return most < TRIFLE * metered if most else any(usd < 0 for usd, *_ in amounts)


def _usd(row: BilledDay, basis: CostBasis | None) -> Usd:
    """Dollars of a row in a budget's basis; billed ones where it names none, or the bill does not tell it."""
    told = row.amount(basis) if basis is not None else None
    return row.usd if told is None else told


def _metered(meter: Meter, known: CountedDays, day: date) -> list[CostLine | ClosedPart]:
    """Lines that the meter counted on a day, of the parts that begin inside the period."""
    if meter.end is None:
        return []
    found, start = known.parts(meter.budget.scope, day), day_start(day)
    return [line for line in found if meter.start <= (line.begin or start) < meter.end]


def _sum(meter: Meter, lines: Iterable[CostLine | ClosedPart]) -> Decimal:
    return sum(amounts(lines, meter.measure), ZERO)


def _of_scope(rows: Sequence[BilledDay], scope: BudgetScope | Literal["all"]) -> list[BilledDay] | None:
    """A scope's rows; None where they do not tell."""
    if not isinstance(scope, BudgetScope):
        return list(rows)
    if scope.pool is not None and any(row.pool for row in rows):
        return [row for row in rows if row.pool == scope.pool]
    if scope.team is not None:
        return [row for row in rows if row.team == scope.team] or None
    return None


def drift(known: CountedDays) -> tuple[Finding, ...]:
    """Days and pools on which the bill and the meter are further apart than both thresholds."""
    return tuple(_drift(one) for one in known.compared if apart(one.price, one.metered))


def apart(billed: Usd, metered: Usd) -> bool:
    """Whether bill and meter are further apart than both thresholds."""
    return abs(billed - metered) > max(DRIFT_USD, DRIFT_SHARE * max(billed, metered))


def _drift(one: Compared) -> Finding:
    where = f"pool {one.pool}" if one.pool else "no pool"
    more = one.price - one.metered
    than = "more than was metered" if more > 0 else "less than was metered"
    listed = "" if one.listed is None else f" ({cents(one.listed)} at list prices)"
    return Finding(
        subject=f"{one.day} {where}",
        code="bill-drift",
        message=(
            f"billed {cents(one.billed)}{listed}, metered {cents(one.metered)}: {cents(abs(more))} {than} is "
            "unexplained; look for nodes outside the policy's pools, a changed price, or hours the bill rounds up"
        ),
    )


_T90 = (3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.350)
"""Student's t that holds four in five: its 0.90 quantile at 1, 2, ... degrees of freedom."""


def forecast(
    spent: Decimal, limit: Decimal, days: Sequence[Decimal], now: datetime, end: datetime, rate_a_day: Decimal
) -> Forecast:
    """The end of a period with ``spent`` by now, from what the last whole ``days`` took.

    With fewer than two days known it is what ``rate_a_day``, that of now, comes to, without a band.
    """
    left = (end - now) / timedelta(days=1)
    if len(days) < 2:
        return Forecast(likely=spent + rate_a_day * _exact(left), runs_out=_out(spent, limit, rate_a_day, now, end))
    amounts = [float(day) for day in days]
    each = fsum(amounts) / len(days)
    deviation = sqrt(fsum([(amount - each) ** 2 for amount in amounts]) / (len(days) - 1))
    spread = _T90[min(len(days) - 1, len(_T90)) - 1] * deviation * sqrt(left + left * left / len(days))
    return Forecast(
        likely=spent + _exact(left * each),
        low=spent + _exact(max(0.0, left * each - spread)),
        high=spent + _exact(left * each + spread),
        runs_out=_out(spent, limit, _exact(each), now, end),
    )


def _at_least(coming: Forecast, least: Decimal) -> Forecast:
    """A forecast of no less than what is spent or held already."""
    band = [None if bound is None else max(bound, least) for bound in (coming.low, coming.high)]
    return replace(coming, likely=max(coming.likely, least), low=band[0], high=band[1])


def _out(spent: Decimal, limit: Decimal, a_day: Decimal, now: datetime, end: datetime) -> datetime | None:
    """When the limit will be reached, if that is before the period ends; None where it is reached already."""
    if spent >= limit or a_day <= 0 or (limit - spent) / a_day > 1000:
        return None
    out = now + timedelta(days=float((limit - spent) / a_day))
    minute = out.replace(second=0, microsecond=0)
    # Told in minutes it must not lie before now.
    out = minute if minute == out else minute + timedelta(minutes=1)
    return out if out < end else None


def _exact(number: float) -> Decimal:
    return Decimal(f"{number:.6f}")
