"""What is kept of closed days, beside the days themselves."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.money.counted_days import CountedDays, counted_days, keep_closed, open_kept
from pilotlight.decide.money.metering import day_start
from pilotlight.decide.money.reconciliation import corrections
from pilotlight.decide.money.spend import answers, budget_spend, close_days, drift
from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, MeterDay
from pilotlight.facts.money.budgets import Meter
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.state_schema.billing_records import CLOSED

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAYS = [date(2026, 11, n) for n in range(9, 21)]
TEAMS, POOLS, CLASSES, NODES = ("", "red", "blue sky"), ("", "a100", "t4"), ("", "batch", "serving"), ("", "n", "m")
CENTS = st.integers(0, 5000).map(lambda cents: Decimal(cents) / 100)


@st.composite
def lines(draw: st.DrawFn, day: date) -> CostLine:
    """A line of the meter, of the day's first part or its second."""
    return CostLine(
        kind="used",
        pool=draw(st.sampled_from(POOLS)),
        node=draw(st.sampled_from(NODES)),
        instance_type="x",
        capacity_type="spot",
        team=draw(st.sampled_from(TEAMS)),
        workload_class=draw(st.sampled_from(CLASSES)),
        begin=day_start(day) + timedelta(hours=draw(st.sampled_from([0, 6, 15]))),
        usd=draw(CENTS),
        gpu_hours=draw(CENTS),
    )


@st.composite
def rows(draw: st.DrawFn, day: date) -> BilledDay:
    """A row of a bill."""
    return BilledDay(
        day=day,
        usd=draw(st.sampled_from([Decimal(0), Decimal(-3)]) | CENTS),
        list_usd=draw(st.none() | CENTS),
        effective_usd=draw(st.none() | CENTS),
        commitment=draw(st.sampled_from(["", "used", "unused", "fee"])),
        pool=draw(st.sampled_from(POOLS)),
        team=draw(st.sampled_from(TEAMS)),
        resource=draw(st.sampled_from(NODES)),
        egress=draw(st.booleans()),
    )


@st.composite
def books(draw: st.DrawFn) -> tuple[list[MeterDay], list[BillDay]]:
    """Days that are metered, and days of one source or two, each with gaps."""
    metered = [
        MeterDay(day=day, until=day_start(day), lines=tuple(draw(st.lists(lines(day), max_size=4))))
        for day in DAYS
        if draw(st.integers(0, 5))
    ]
    billed = [
        BillDay(
            day=day, source=source, rows=tuple(draw(st.lists(rows(day), max_size=4))), doubt=not draw(st.integers(0, 4))
        )
        for source in draw(st.sampled_from([(), ("focus",), ("focus", "civo")]))
        for day in DAYS[: draw(st.sampled_from([4, 9, 12]))]
        if draw(st.integers(0, 5))
    ]
    return metered, billed


SCOPES: st.SearchStrategy[Any] = st.sampled_from(
    ["all", *(BudgetScope(team=t) for t in ("red", "blue sky")), BudgetScope(pool="t4"), BudgetScope(pool="a100"),
     BudgetScope(workload_class="batch")]
)  # fmt: skip
BUDGETS = st.lists(
    st.builds(
        Budget,
        name=st.just("b"),
        usd=st.just(Decimal(100)),
        gpu_hours=st.none() | st.just(Decimal(100)),
        period=st.sampled_from(["day", "week", "month"]),
        timezone=st.sampled_from(["UTC", "America/New_York", "Asia/Tokyo"]),
        scope=SCOPES,
        basis=st.sampled_from([None, "list", "billed", "effective"]),
    ),
    max_size=4,
)


def told(budgets: list[Meter], known: CountedDays) -> tuple[Any, ...]:
    """All that a billing tick asks of its days."""
    spent = [budget_spend(meter, known, Decimal(0), NOW) for meter in budgets]
    return spent, drift(known), corrections(known.compared)


@given(books(), BUDGETS, st.sampled_from([date.min, *DAYS]))
def test_what_is_kept_of_closed_days_changes_no_answer(
    book: tuple[list[MeterDay], list[BillDay]], budgets: list[Budget], end: date
) -> None:
    """Wherever the closed days end, budgets stand, drift and corrections are as all days read anew have them."""
    asked = list(meters(budgets, NOW))
    metered, billed = book
    whole = counted_days(metered, billed)
    form = CLOSED.table.format
    kept = open_kept(form.read("k", form.write(keep_closed(close_days(asked, whole, DAYS[0], end)))))
    assert answers(kept, asked)
    known = counted_days([d for d in metered if d.day >= end], [d for d in billed if d.day >= end], kept)
    assert told(asked, known) == told(asked, whole)


def test_another_scope_or_basis_is_not_answered_by_what_is_kept() -> None:
    """A budget that joined since, or names another basis, asks for the days."""
    red, blue = (Budget(name="b", usd=Decimal(1), period="month", scope=BudgetScope(team=t)) for t in ("red", "blue"))
    kept = close_days(meters([red], NOW), counted_days([], []), DAYS[0], DAYS[-1])
    effective = Budget(name="b", usd=Decimal(1), period="month", scope=BudgetScope(team="red"), basis="effective")
    assert answers(kept, meters([red], NOW))
    assert not answers(kept, meters([red, blue], NOW))
    assert not answers(kept, meters([effective], NOW))


def test_a_source_that_ended_and_the_first_day_are_known_by_what_is_kept() -> None:
    """Days after one of two sources ended are not billed, and the first day of all is a closed one."""
    metered = [
        MeterDay(
            day=day,
            until=day_start(day),
            lines=(CostLine(kind="used", pool="t4", node="", instance_type="x", capacity_type="spot", usd=Decimal(n)),),
        )
        for n, day in enumerate(DAYS)
    ]
    row = BilledDay(day=DAYS[0], usd=Decimal(20), pool="t4")
    billed = [BillDay(day=day, source=source, rows=(row,)) for source, d in (("a", DAYS), ("b", DAYS[:3])) for day in d]
    asked = list(meters([Budget(name="b", usd=Decimal(1000), period="month")], NOW))
    whole = counted_days(metered, billed)
    kept = close_days(asked, whole, DAYS[0], DAYS[9])
    known = counted_days(metered[9:], [one for one in billed if one.day >= DAYS[9]], kept)
    assert told(asked, known) == told(asked, whole)
    assert not {*DAYS[9:]} & known.billed_days
    assert known.first(DAYS[-1]) == DAYS[0]
