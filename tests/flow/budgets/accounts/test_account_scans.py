"""Accounts of many budgets read together: by the ends of their windows, whatever lies beside them."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from stage import Stage

from own_operations import CountingState
from pilotlight.decide.money.budget_limits import meters, windows
from pilotlight.facts.money.budgets import Account, Meter
from pilotlight.facts.money.money_policy import Budget
from pilotlight.flow.budgets import budget_accounts
from pilotlight.state_schema.billing_records import CAP

DAY = timedelta(days=1)
BUDGETS = (
    Budget(name="a", usd=Decimal(9), period="day"),
    Budget(name="b", usd=Decimal(9), gpu_hours=Decimal(9), period="week", timezone="Asia/Tokyo"),
    Budget(name="c", usd=Decimal(9), period="month"),
    Budget(name="d", usd=Decimal(9), period="hour"),
)
"""Limits over windows of each kind: days, weeks of another zone, months, and one without an end."""


def around(on: Stage, days: int) -> list[Meter]:
    """Each limit in its window of a moment so many days from now."""
    return list(meters(on.deps.policy.budgets, on.deps.clock.now() + days * DAY))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(-70, 70), st.integers(0, 4), st.sampled_from(["", "/1"])), max_size=30))
def test_what_is_read_together_is_what_each_account_says(written: list[tuple[int, int, str]]) -> None:
    """Totals are of the windows that are asked for, and what lies ahead of the same limit; nothing of ended ones."""
    on = Stage(budgets=BUDGETS)
    amounts: dict[str, Decimal] = {}
    for n, (days, limit, part) in enumerate(written):
        name = around(on, days)[limit].key + part
        amounts[name] = Decimal(n + 1)
        CAP.put(on.deps.state, f"c/{name}", Account(settled=amounts[name]))
    now = around(on, 0)
    told = budget_accounts.totals(on.deps, now)
    ahead = budget_accounts.ahead(on.deps, now)
    for meter in now:
        assert told[meter.key] == amounts.get(meter.key, 0) + amounts.get(f"{meter.key}/1", 0)
        later = {each.key for each in windows(meter, on.deps.clock.now() + 71 * DAY)}
        mine = {name: usd for name, usd in amounts.items() if budget_accounts.meter_key(name) in later}
        assert {
            name: entry.value.settled for name, entry in ahead[budget_accounts.limit_key(meter.key)].items()
        } == mine


AMOUNTS = st.decimals(0, 10**6, places=28, allow_nan=False)


@given(st.lists(st.tuples(st.sampled_from("abc"), AMOUNTS), min_size=1, max_size=12), AMOUNTS)
def test_a_total_that_goes_by_the_one_before_is_that_of_all_amounts(
    held: list[tuple[str, Decimal]], spent: Decimal
) -> None:
    """Hold after hold, raised and lowered: the same to the last digit as an account that was just read."""
    account = Account(settled=spent)
    for id, usd in held:
        assert account.total >= 0
        account = account.with_held(id, usd)
        assert account.total == Account(settled=spent, held=account.held).total
        assert account.held[id] == usd


def test_a_minute_reads_no_window_that_has_ended_and_asks_once_for_all_budgets() -> None:
    """With a year of days behind each of ten budgets as many documents are read as without, in as many calls."""
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for days in (0, 365):
        on = Stage(budgets=tuple(msgspec.structs.replace(BUDGETS[0], name=f"day-{n}") for n in range(10)))
        for back in range(days):
            for meter in around(on, -back - 1):
                CAP.put(on.deps.state, f"c/{meter.key}", Account(settled=Decimal(1)))
        for meter in around(on, 0):
            CAP.put(on.deps.state, f"c/{meter.key}", Account(settled=Decimal(1)))
        state = CountingState(on.world, on.deps.state)
        deps = replace(on.deps, state=state)
        for ask in (budget_accounts.totals, budget_accounts.ahead):
            state.clear()
            ask(deps, around(on, 0))
            found[days].append((state.counts["calls"], state.counts["reads"]))
    assert found[365] == found[0] == [(1, 10), (1, 10)]
