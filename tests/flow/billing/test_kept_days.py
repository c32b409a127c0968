"""What a tick keeps of closed days: no answer changes by it, whatever comes between."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage import Stage

from pilotlight.decide.money.spend import budget_spend
from pilotlight.facts.messages import BillExported, Tick
from pilotlight.facts.money.bill import Bill, BilledDay
from pilotlight.facts.money.budgets import Spent
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.flow.billing import billed_days
from pilotlight.flow.billing.billing_import import billing_import
from pilotlight.flow.billing.billing_tick import billing, budget_standings
from pilotlight.state_schema.billing_records import BILL, CLOSED

DAY = timedelta(days=1)
TICK = Tick(cluster="c", what="billing")
MONTH = Budget(name="m", usd=Decimal(1000))
RED = Budget(name="r", usd=Decimal(100), period="week", timezone="Asia/Tokyo", scope=BudgetScope(team="red"))
BY_LIST = Budget(name="l", usd=Decimal(100), period="week", basis="list")


class Told:
    """A bill that says so many dollars of each of the last days, of one source or another."""

    def __init__(self, usd: int = 0, days: int = 0, source: str = "focus") -> None:
        self.usd, self.days, self.source = usd, days, source

    def read(self, start: datetime, end: datetime) -> Bill:
        """Whole days up to yesterday."""
        last = end.date()
        days = [last - n * DAY for n in range(self.days, 0, -1)]
        rows = tuple(BilledDay(day=day, usd=Decimal(self.usd), pool="one", team="red") for day in days)
        horizon = datetime(last.year, last.month, last.day, tzinfo=end.tzinfo)
        return Bill(source=self.source, days=rows, horizon=horizon)


def read(on: Stage, bill: Told) -> None:
    """A bill is taken in, now."""
    on.deps = replace(on.deps, bills=bill)
    billing_import(on.deps, BillExported(cluster="c", uri="bill"))


def rounded(one: Spent) -> tuple[Decimal | datetime | None, ...]:
    """Its figures without the last digits of 28: sums of days go by another order where some are kept."""
    ahead = one.forecast
    figures = (one.billed, one.metered, one.sunk, one.held, ahead.likely, ahead.low, ahead.high)
    return (*[round(usd, 15) if usd is not None else None for usd in figures], ahead.runs_out)


def stands(on: Stage) -> list[Any]:
    """Where budgets stand, twice: as it is told, and by every day read."""
    now = on.world.clock.now()
    told = budget_standings(on.deps, now)
    whole = billed_days.count_days(on.deps, now)
    anew = [budget_spend(one.meter, whole, one.held, now) for one in told]
    assert [rounded(one) for one in told] == [rounded(one) for one in anew]
    return [(one.billed, one.metered) for one in told]


STEPS = st.lists(
    st.tuples(st.just("tick"), st.sampled_from([60, 4000, 40_000, 100_000]))
    | st.tuples(st.just("bill"), st.tuples(st.integers(1, 40), st.integers(1, 5), st.sampled_from(["focus", "civo"])))
    | st.tuples(st.just("budgets"), st.sampled_from([(MONTH,), (MONTH, RED), (MONTH, RED, BY_LIST)]))
    | st.tuples(st.just("pod"), st.sampled_from([3600, 90_000])),
    min_size=4,
    max_size=14,
)


@settings(max_examples=20, deadline=None)
@given(STEPS)
def test_no_answer_changes_by_what_is_kept(steps: list[tuple[str, Any]]) -> None:
    """Days pass, bills correct days that were closed, sources and budgets change: all days read anew say the same."""
    on = Stage(budgets=(MONTH, RED))
    on.event(on.submit("first", run_s=200_000, team="red"))
    for number, (what, how) in enumerate(steps):
        match what:
            case "tick":
                on.wait(how)
                billing(on.deps, TICK)
            case "bill":
                read(on, Told(*how))
            case "budgets":
                on.deps = replace(on.deps, policy=replace_budgets(on, how))
                billing(on.deps, TICK)
            case _:
                on.event(on.submit(f"p{number}", run_s=how, team="red"))
        stands(on)
    billing(on.deps, TICK)
    assert CLOSED.table.get(on.deps.state, "c/x") is not None


def replace_budgets(on: Stage, budgets: tuple[Budget, ...]) -> Any:
    """The policy with other budgets."""
    import msgspec

    return msgspec.structs.replace(on.deps.policy, budgets=budgets)


def five_days() -> Stage:
    """A cluster of five days with a node, whose bill said $30 of each, and a tick after it."""
    on = Stage(budgets=(MONTH,))
    on.event(on.submit("a", run_s=400_000, team="red"))
    for _ in range(5):
        on.wait(86400)
        billing(on.deps, TICK)
    read(on, Told(30, 4))
    billing(on.deps, TICK)
    return on


def test_a_late_correction_counts_at_the_next_tick() -> None:
    """A bill that says $40 of days at $30 that are kept is in force at once."""
    on = five_days()
    ((before, _),) = stands(on)
    read(on, Told(40, 4))
    ((after, _),) = stands(on)
    assert after - before == 40


def test_a_bill_taken_in_while_a_tick_reads_is_not_kept_from() -> None:
    """A tick read the days at $30; before it keeps them they are billed at $40: they are not kept."""
    on = five_days()
    CLOSED.delete(on.deps.state, "c/x")
    state = on.deps.state

    class Late:
        """A store in which a bill is taken in just before what is kept is written."""

        def __getattr__(self, name: str) -> Any:
            return getattr(state, name)

        def put(self, key: str, value: bytes, **how: Any) -> int:
            """Write, after a bill."""
            if key == "closed/c/x":
                on.deps = replace(on.deps, state=state)
                read(on, Told(40, 4))
            return state.put(key, value, **how)

    billing(replace(on.deps, state=Late()), TICK)
    ((billed, _),) = stands(on)
    assert billed == 160


def test_what_is_kept_and_cannot_be_read_is_as_if_it_were_not_there() -> None:
    """Another version wrote it, or a disk broke it: the tick reads the days."""
    on = five_days()
    on.deps.state.put("closed/c/x", b'{"schema":1,"of":"another version"}', ttl_s=3600)
    billing(on.deps, TICK)
    assert stands(on)[0][0] == 120


@pytest.mark.parametrize("died_at", range(1, 12))
def test_a_bill_whose_read_died_is_in_force_within_the_hour(died_at: int) -> None:
    """A function is killed at a write while it takes a bill in: what was kept before is not believed for longer."""
    on = five_days()
    state, left = on.deps.state, [died_at]

    class Dying:
        """A store at whose n-th write the function dies."""

        def __getattr__(self, name: str) -> Any:
            return getattr(state, name)

        def put(self, key: str, value: bytes, **how: Any) -> int:
            """Write, or die."""
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return state.put(key, value, **how)

    on.deps = replace(on.deps, state=Dying())
    try:
        read(on, Told(40, 4))
    except KeyboardInterrupt:
        assert died_at < 12
    on.deps = replace(on.deps, state=state)
    on.wait(3700)
    billing(on.deps, TICK)
    stands(on)
    written = sum(row.usd for entry in BILL.scan(state, "c/") for row in entry.value.rows)
    assert stands(on)[0][0] == written
