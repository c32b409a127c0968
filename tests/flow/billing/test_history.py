"""A tick's store operations as its history grows: 400 days of bills and nodes beside one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from zlib import crc32

import pytest
from stage import START, Stage

from own_operations import CountingState
from pilotlight.decide.money.metering import day_start
from pilotlight.facts.messages import BillExported, Tick
from pilotlight.facts.money.bill import Bill, BilledDay
from pilotlight.facts.money.money_policy import Budget, BudgetScope, CostBasis, Prices
from pilotlight.facts.policy import ClassPolicy
from pilotlight.flow.billing.billing_import import billing_import
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.reconcile import reconcile
from pilotlight.state_schema import rows

DAY = timedelta(days=1)
TICK = Tick(cluster="c", what="billing")
MORE = 4
"""Calls by which two hours differ, as budgets' windows and pods come and go."""


class Daily:
    """A bill of a dollar a day, far from what is metered."""

    def read(self, start: datetime, end: datetime) -> Bill:
        """Whole days."""
        days = [start + n * DAY for n in range((end - start).days)]
        rows = tuple(BilledDay(day=day.date(), usd=Decimal(1), pool="one") for day in days)
        return Bill(source="focus", days=rows, horizon=start + len(days) * DAY)


BUDGETS = (
    Budget(name="m", usd=Decimal(10**6)),
    Budget(name="d", usd=Decimal(10**5), period="day", scope=BudgetScope(team="red")),
)


class Book:
    """A cluster with a pod a day, budgets and a bill, whose store counts."""

    def __init__(self, budgets: Sequence[Budget] = BUDGETS) -> None:
        self.on = Stage(
            budgets=tuple(budgets),
            classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=86400)},
            prices=Prices(max_age_days=1000),
        )
        self.state, self.days = CountingState(self.on.world), 0
        self.on.deps = replace(self.on.deps, state=self.state, bills=Daily())

    def tick(self, seconds: float) -> None:
        """Everything of a minute, after so long."""
        self.on.world.advance(self.on.world.now_s + seconds)
        reconcile(self.on.deps, Tick(cluster="c"))
        billing(self.on.deps, Tick(cluster="c", what="billing"))
        billing_import(self.on.deps, Tick(cluster="c", what="bills"))

    def play(self, until: int) -> None:
        """Days up to one."""
        first, self.days = self.days + 1, until
        for day in range(first, until + 1):
            self.on.submit(f"p{day}", run_s=20 * 3600, team="red", workload_class="batch")
            for _ in range(2):
                self.tick(12 * 3600.0)

    def minute(self, ticks: int = 20, first: int = 10) -> Counter[str]:
        """Operations of a tick, the mean of some without a read of the bill, after the first."""
        bills, self.on.deps = self.on.deps.bills, replace(self.on.deps, bills=None)
        self.on.submit(f"m{self.days}", run_s=7200, team="red", workload_class="batch")
        for n in range(first + ticks):
            if n == first:
                self.state.clear()
            self.tick(60.0)
        assert self.on.world.nodes
        self.on.deps = replace(self.on.deps, bills=bills)
        return Counter({name: round(count / ticks) for name, count in self.state.counts.items()})


def test_a_ticks_store_operations_do_not_grow_with_history() -> None:
    """After 1, 30 and 400 days, each of whose bills is apart from the meter: the same calls, documents read
    and writes."""
    book = Book()
    found = {}
    for day in (1, 30, 400):
        book.play(day)
        found[day] = book.minute()
    one, month, year = (found[day] for day in (1, 30, 400))
    for name in ("calls", "reads", "writes", "deletes"):
        assert max(month[name], year[name]) <= one[name] + MORE + 2, found
    assert year["calls"] <= month["calls"] + MORE, found
    assert all(count["calls"] > 40 for count in found.values()), found


TEAMS = [f"team-{n}" for n in range(60)]


def _usd(*of: object) -> Decimal:
    """Dollars with as many digits as exports have."""
    return Decimal(f"{crc32(repr(of).encode()) % 100}.{crc32(repr((*of, 1)).encode()):010}")


class ByTeam:
    """A bill in which each team has its own dollars on each day since the stage's, in each basis."""

    def read(self, start: datetime, end: datetime) -> Bill:
        """Whole days."""
        first = max(start, day_start(START.date()))
        days = [first + n * DAY for n in range((end - first).days)]
        told = tuple(
            BilledDay(
                day=day.date(),
                usd=_usd(day, team),
                list_usd=_usd(team, day),
                effective_usd=_usd(day, 1, team),
                team=team,
            )
            for day in days
            for team in TEAMS
        )
        return Bill(source="focus", days=told, horizon=first + len(days) * DAY)


def test_calls_of_a_tick_do_not_grow_with_days_where_closed_days_outgrow_a_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A budget in each basis for each team, in a store of small records, as thousands in a large one: what is kept
    takes several, which one scan reads, and no day is read."""
    monkeypatch.setattr(rows, "LARGEST", 16 * 1024)
    bases: tuple[CostBasis, ...] = ("list", "billed", "effective")
    budgets = [
        Budget(name=f"{team}-{basis}", usd=Decimal(10**6), scope=BudgetScope(team=team), basis=basis)
        for team in TEAMS
        for basis in bases
    ]
    book, found = Book(budgets), {}
    for day in (1, 30, 100):
        book.on.deps = replace(book.on.deps, bills=None)
        book.tick((day - book.days) * 86_400.0)
        book.days = day
        billing_import(replace(book.on.deps, bills=ByTeam()), BillExported(cluster="c", uri="bill"))
        billing(book.on.deps, TICK)
        book.state.clear()
        billing(book.on.deps, TICK)
        found[day] = {kind: (of["calls"], of["reads"]) for kind, of in book.state.kinds.items()}
    assert found[30].keys() == found[100].keys()
    assert all(found[100][kind][0] <= calls for kind, (calls, _) in found[30].items())
    assert {of[kind][0] for of in found.values() for kind in ("closed", "bill", "meter")} == {1}
    assert [of["closed"][1] > 1 for of in found.values()] == [False, True, True]
    assert {of[kind][1] for of in found.values() for kind in ("bill", "meter")} == {1}
