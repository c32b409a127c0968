"""Prices and caps edited while nodes are lit: what is held keeps its terms, what is renewed has those of now."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec
import pytest
from stage import MINUTE, START, Stage

from pilotlight.facts.money.budgets import Account, Hold
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy
from pilotlight.state_schema.billing_records import CAP, HOLD
from pilotlight.units import HOUR

STOP = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=24 * HOUR, may_move=("hard-cap",))


def stage(usd: str) -> Stage:
    """One node of a dollar an hour at work for 20 hours, under a hard budget of so many dollars a day."""
    on = Stage(budgets=(Budget(name="all", usd=Decimal(usd), period="day"),), classes={"batch": STOP})
    on.event(on.submit("a", run_s=20 * HOUR))
    return on


def priced(on: Stage, usd: str) -> None:
    """The price of the pool is edited."""
    dearer = tuple(
        msgspec.structs.replace(o, usd_per_hour=Decimal(usd)) if o.pool == "one" else o for o in on.deps.offerings
    )
    on.deps = replace(on.deps, offerings=dearer)


def capped(on: Stage, usd: str) -> None:
    """The budget's limit is edited."""
    budgets = tuple(msgspec.structs.replace(b, usd=Decimal(usd)) for b in on.deps.policy.budgets)
    on.deps = replace(on.deps, policy=msgspec.structs.replace(on.deps.policy, budgets=budgets))


def hold(on: Stage) -> Hold:
    """What is held for the one node."""
    (found,) = [entry.value for entry in HOLD.scan(on.deps.state, "c/")]
    return found


def account(on: Stage) -> Account:
    """The day's account."""
    (found,) = [entry.value for entry in CAP.scan(on.deps.state, "c/")]
    return found


def hours(since: datetime, until: datetime) -> Decimal:
    """From one moment to another."""
    return Decimal((until - since).total_seconds()) / 3600


@pytest.mark.parametrize("now", ["3", "0.25"], ids=["three times as dear", "a quarter of it"])
def test_a_price_reaches_what_is_lit_at_its_next_stretch(now: str) -> None:
    """What is held when a price is edited keeps the old one to its end; from there on the new one is held."""
    on = stage("40")
    on.minutes(30)
    before = hold(on)
    priced(on, now)
    on.minutes(1)
    assert hold(on).terms.usd_per_hour == 1
    for _ in range(240):
        on.minutes(1)
        if hold(on).until > before.until:
            break
    after = hold(on)
    wanted = hours(after.since, before.until) + Decimal(now) * hours(before.until, after.until)
    assert after.terms.usd_per_hour == Decimal(now)
    [held] = account(on).held.values()
    assert float(held) == pytest.approx(float(wanted), abs=0.01)


def test_a_node_is_settled_at_the_price_of_its_time() -> None:
    """An hour at a dollar, the rest at three: its account settles each hour at what was held for it."""
    on = stage("40")
    on.minutes(30)
    first = hold(on)
    priced(on, "3")
    on.minutes(300)
    since, changed = first.since, first.until
    on.world.finish("uid-a")
    on.minutes(15)
    (end,) = on.events("terminate")
    gone = START + timedelta(seconds=end["t"])
    wanted = hours(since, changed) + 3 * hours(changed, gone)
    assert float(account(on).settled) == pytest.approx(float(wanted), abs=0.06)


def test_a_dearer_price_passes_no_hard_cap() -> None:
    """A price that triples while a node works ends its work sooner: what it costs at both prices is within the cap."""
    on = stage("6")
    on.minutes(30)
    first = hold(on)
    priced(on, "3")
    on.minutes(12 * 60)
    (end,) = on.events("terminate")
    gone = START + timedelta(seconds=end["t"])
    cost = hours(first.since, first.until) + 3 * hours(first.until, gone)
    assert Decimal(5) < cost <= 6


def test_a_lowered_cap_is_told_at_once_with_what_it_comes_to() -> None:
    """One alert at the first look names the dollars, by when, and what each node holds; and nothing new is held."""
    on = stage("20")
    on.minutes(180)
    lit = hold(on)
    capped(on, "2")
    on.event(on.submit("b", run_s=HOUR))
    on.minutes(1)
    told = [a for a in on.alerts if a.kind == "finding-budget-passed"]
    assert len(told) == 1
    wanted = hours(lit.since, lit.until)
    assert f"it comes to ${wanted:.2f} at most, by {lit.until:%Y-%m-%d %H:%M} UTC" in told[0].why
    assert f"n1 ${wanted:.2f} until" in told[0].why
    on.minutes(5 * 60)
    assert on.world.launches == 1
    (end,) = on.events("terminate")
    assert Decimal(end["t"]) / 3600 <= wanted
    assert len([a for a in on.alerts if a.kind == "finding-budget-passed"]) == 1


def test_a_cap_that_is_lowered_again_is_told_again() -> None:
    """Each limit that is below what is held is told once."""
    on = stage("20")
    on.minutes(180)
    for usd in ("3", "2", "1"):
        capped(on, usd)
        on.minutes(3)
    told = [a for a in on.alerts if a.kind == "finding-budget-passed"]
    assert len(told) == 3
    assert on.world.now_s <= 200 * MINUTE
