"""Days as they were metered and billed, as budgets count them; those that are closed by their sums alone."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import date, datetime
from decimal import Decimal
from operator import attrgetter
from typing import Literal

import msgspec
from msgspec import field
from msgspec.structs import replace

from pilotlight.decide.money.reconciliation import Compared, compare_with_bill
from pilotlight.facts.money.bill import BillDay, ClosedDays, ClosedPart, CostLine, KeptDays, KeptScope, MeterDay
from pilotlight.facts.money.budgets import Measure
from pilotlight.facts.money.money_policy import BudgetScope, CostBasis

ZERO = Decimal(0)
NONE_CLOSED = ClosedDays()

_KINDS: dict[str, Callable[[CostLine], str]] = {
    "all": lambda line: "",
    "team": attrgetter("team"),
    "class": attrgetter("workload_class"),
    "pool": attrgetter("pool"),
}
"""The name that a line has of each kind that a budget's scope can name."""


def kind_and_name(scope: BudgetScope | Literal["all"]) -> tuple[str, str]:
    """The one thing that a scope names: its kind, and its name."""
    if not isinstance(scope, BudgetScope):
        return "all", ""
    named = (("team", scope.team), ("class", scope.workload_class), ("pool", scope.pool))
    return next(((kind, name) for kind, name in named if name is not None), ("all", "nobody"))


def scope_key(scope: BudgetScope | Literal["all"]) -> str:
    """What a scope's sums are kept under: "team red"."""
    return " ".join(kind_and_name(scope))


def billed_key(scope: BudgetScope | Literal["all"], basis: CostBasis | None) -> str:
    """What a scope's billed days are kept under, in a budget's basis."""
    return f"{basis or 'guard'} {scope_key(scope)}"


def amounts(lines: Iterable[CostLine | ClosedPart], measure: Measure) -> list[Decimal]:
    """GPU-hours or dollars of each line."""
    return [line.gpu_hours for line in lines] if measure == "gpu_hours" else [line.usd for line in lines]


class CountedDays(msgspec.Struct, frozen=True):
    """Days as they were metered and billed, sorted out once by each kind of scope that is asked for.

    ``sources`` are all that bill. Days that are ``closed`` are not among the others.
    """

    metered: Mapping[date, MeterDay]
    billed: Mapping[date, Sequence[BillDay]]
    sources: Set[str] = frozenset()
    closed: ClosedDays = NONE_CLOSED
    _sums: dict[tuple[str, Measure], dict[str, dict[date, Decimal]]] = field(default_factory=dict)
    _lines: dict[tuple[date, str], dict[str, list[CostLine]]] = field(default_factory=dict)

    def lines(self, scope: BudgetScope | Literal["all"], day: date) -> Sequence[CostLine]:
        """Metered lines of a day that a scope counts, in their order."""
        kind, name = kind_and_name(scope)
        found = self._lines.get((day, kind))
        if found is None:
            found = self._lines[day, kind] = {}
            for line in self.metered[day].lines if day in self.metered else ():
                found.setdefault(_KINDS[kind](line), []).append(line)
        return found.get(name, ())

    def parts(self, scope: BudgetScope | Literal["all"], day: date) -> Sequence[CostLine | ClosedPart]:
        """The same lines; of a closed day their sums."""
        if day < self.closed.end:
            return self.closed.parts[scope_key(scope)].get(day, ())
        return self.lines(scope, day)

    def first(self, today: date) -> date:
        """The first day that is known; today where none is."""
        return min([*self.metered, *self.billed, *self.closed.metered, *self.closed.billed], default=today)

    @property
    def billed_days(self) -> Set[date]:
        """Every day that is billed."""
        return {*self.billed, *self.closed.billed}

    @property
    def compared(self) -> tuple[Compared, ...]:
        """The bill held against the meter, by day and pool."""
        begins = min(self.closed.metered, default=None)
        known = [Compared(*one) for one in self.closed.compared]
        return (*known, *compare_with_bill(self.metered, self.billed, begins))

    def sums(self, kind: str, name: str, measure: Measure) -> Mapping[date, Decimal]:
        """What a name was metered on each day that has it."""
        found = self._sums.get((kind, measure))
        if found is None:
            found = self._sums[kind, measure] = {}
            for day, one in self.metered.items():
                told = amounts(one.lines, measure)
                if kind == "all":
                    found.setdefault("", {})[day] = sum(told, ZERO)
                    continue
                for own, amount in zip(map(_KINDS[kind], one.lines), told, strict=True):
                    days = found.setdefault(own, {})
                    days[day] = days.get(day, ZERO) + amount
            for scope, kept in self.closed.parts.items():
                own, _, whose = scope.partition(" ")
                if own == kind:
                    found.setdefault(whose, {}).update({d: sum(amounts(p, measure), ZERO) for d, p in kept.items()})
        return found.get(name, {})


def counted_days(
    metered: Sequence[MeterDay], billed: Sequence[BillDay], closed: ClosedDays = NONE_CLOSED
) -> CountedDays:
    """Metered and billed days, after those that are closed; a day is billed once every source that bills has it."""
    sources = {*closed.sources, *(bill.source for bill in billed)}
    by_day: dict[date, list[BillDay]] = defaultdict(list)
    for bill in billed:
        by_day[bill.day].append(bill)
    whole = {day: bills for day, bills in by_day.items() if {bill.source for bill in bills} == sources}
    return CountedDays({day.day: day for day in metered}, whole, sources, closed)


def sum_parts(lines: Iterable[CostLine]) -> tuple[ClosedPart, ...]:
    """Sums of lines by where they begin."""
    sums: dict[datetime | None, tuple[Decimal, Decimal]] = {}
    for line in lines:
        usd, hours = sums.get(line.begin, (ZERO, ZERO))
        sums[line.begin] = usd + line.usd, hours + line.gpu_hours
    return tuple(ClosedPart(begin, *of) for begin, of in sums.items())


def keep_closed(closed: ClosedDays) -> KeptDays:
    """Closed days as they are kept: by scope, for many scopes need several records."""
    rows = [KeptScope(name, parts=of) for name, of in closed.parts.items()]
    rows += [KeptScope(name, bills=of) for name, of in closed.bills.items()]
    return KeptDays(days=replace(closed, parts={}, bills={}), rows=tuple(rows))


def open_kept(kept: KeptDays) -> ClosedDays:
    """Closed days of what is kept."""
    parts = {row.name: row.parts for row in kept.rows if row.parts is not None}
    bills = {row.name: row.bills for row in kept.rows if row.bills is not None}
    return replace(kept.days, parts=parts, bills=bills)
