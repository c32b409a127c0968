"""A tick's store operations as its history grows: 400 days of bills and nodes beside one."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from stage import Stage

from own_operations import CountingState
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.bill import Bill, BilledDay
from pilotlight.facts.money.money_policy import Budget, BudgetScope, Prices
from pilotlight.facts.policy import ClassPolicy
from pilotlight.flow.billing.billing_import import billing_import
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.reconcile import reconcile

DAY = timedelta(days=1)
MORE = 4
"""Calls by which two hours differ, as budgets' windows and pods come and go."""


class Daily:
    """A bill of a dollar a day, far from what is metered."""

    def read(self, start: datetime, end: datetime) -> Bill:
        """Whole days."""
        days = [start + n * DAY for n in range((end - start).days)]
        rows = tuple(BilledDay(day=day.date(), usd=Decimal(1), pool="one") for day in days)
        return Bill(source="focus", days=rows, horizon=start + len(days) * DAY)


class Book:
    """A cluster with a pod a day, two budgets and a bill, whose store counts."""

    def __init__(self) -> None:
        self.on = Stage(
            budgets=(
                Budget(name="m", usd=Decimal(10**6)),
                Budget(name="d", usd=Decimal(10**5), period="day", scope=BudgetScope(team="red")),
            ),
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
