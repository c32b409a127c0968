"""Runs of years under a budget a day: hundreds of accounts a node, of which each is found by its name alone."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import Stage

from pilotlight.decide.money.budget_limits import MOST_WINDOWS, meters, open_hold, terms, windows
from pilotlight.facts.money.budgets import Account, Meter
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.budgets.budget_room import BudgetRoom
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.billing_records import CAP
from pilotlight.units import HOUR

YEARS = ClassPolicy(gpu_models="any", idle_timeout=600, max_runtime=900 * 24 * HOUR)


def stage() -> Stage:
    """Nodes at a dollar an hour, held for 900 days, under one hard budget a day."""
    return Stage(budgets=(Budget(name="all", usd=Decimal(500), period="day"),), classes={"batch": YEARS})


def parts(deps: Deps) -> tuple[Meter, list[str]]:
    """The budget's meter, and the names that parts of its accounts may have, in this window and the next ones."""
    (meter,) = meters(deps.policy.budgets, deps.clock.now())
    each = islice(windows(meter, datetime.max.replace(tzinfo=UTC)), 3)
    return meter, [f"{window.key}{part}" for window in each for part in ("", "/1", "/2", "/12")]


@given(st.data())
def test_an_account_is_found_by_its_name_as_by_asking_them_all(data: st.DataObject) -> None:
    """The total of a meter, and what one hold has in it, are those of all its parts, however many others there are."""
    on = stage()
    deps = on.deps
    meter, names = parts(deps)
    known = data.draw(st.lists(st.sampled_from(names), unique=True))
    for name in {meter.key, *known}:
        held = {f"h{n}": Decimal(n + len(name)) for n in range(data.draw(st.integers(0, 3)))}
        CAP.put(deps.state, f"{deps.name}/{name}", Account(held=held, settled=Decimal(1), parts=13))
    own = terms(deps.offerings[0], deps.policy, workload_class="batch", team="")
    hold = msgspec.structs.replace(
        open_hold("h0", "d", own, deps.clock.now()), accounts=tuple(data.draw(st.permutations(known)))
    )
    room = BudgetRoom(deps, [meter], deps.clock.now())

    def mine() -> Iterator[tuple[str, Account]]:
        for name in {meter.key, *known}:
            if budget_accounts.meter_key(name) == meter.key and (found := CAP.get(deps.state, f"{deps.name}/{name}")):
                yield name, found.value

    listed = {name for name in hold.accounts if budget_accounts.meter_key(name) == meter.key}
    assert room.total(meter) == sum((account.total for _, account in mine()), Decimal(0))
    assert budget_accounts.is_listed(hold, meter.key) == bool(listed)
    assert budget_accounts.account_of(hold, meter) in (listed or {meter.key})
    one = budget_accounts.account_of(hold, meter)
    assert room.own(meter, hold) == dict(mine()).get(one, Account()).held.get("h0", Decimal(0))


def test_a_look_makes_each_window_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes held for 900 days: a look works out the days ahead for all of them together, not for each node."""
    on = stage()
    for name in "abcde":
        on.world.submit(
            PodDemand(
                uid=name,
                namespace="ml",
                name=name,
                shape=shape(gpu=GpuRequest(count=1)),
                created_at=on.world.clock.now(),
            ),
            30 * HOUR,
        )
    on.minutes(3)
    assert len(on.events("launch")) == 5
    made = 0

    def count(*given: Any) -> Any:
        nonlocal made
        made += 1
        return window(*given)

    from pilotlight.decide.money import budget_limits

    window = budget_limits.window
    monkeypatch.setattr(budget_limits, "window", count)
    on.minutes(1)
    assert MOST_WINDOWS < made < 4 * MOST_WINDOWS
