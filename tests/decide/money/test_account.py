"""What may become of an account: an id is held, then settled, then forgotten, and never comes back."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotlight.decide.money.budget_balance import (
    extend_hold,
    forget_done,
    gave,
    reserve_amounts,
    settle_hold,
    take_room,
    took,
)
from pilotlight.decide.money.budget_balance import give_room as gives
from pilotlight.decide.money.budget_limits import held_amount, latest, meters
from pilotlight.facts.money.budgets import Account, Hold, Payer, Terms
from pilotlight.facts.money.money_policy import Budget, BudgetScope

TEN = Decimal(10)


def held(**ids: int) -> Account:
    """An account in which ids are held for."""
    return Account(held={id: Decimal(usd) for id, usd in ids.items()})


def test_a_purchase_is_held_whole_or_not_at_all() -> None:
    """Where one node of two would fit, two are refused, and nothing is held."""
    account = held(other=5)
    assert reserve_amounts(account, {"a": Decimal(4), "b": Decimal(4)}, TEN) is None
    assert reserve_amounts(account, {"a": Decimal(4)}, TEN) == held(other=5, a=4)


def test_claiming_twice_is_claiming_once() -> None:
    """A purchase that is claimed again after a crash holds what it held, and nothing that is settled by now."""
    account = settle_hold(held(a=4, b=4), "a", Decimal(1))
    assert reserve_amounts(account, {"a": Decimal(4), "b": Decimal(9)}, TEN) is account


MORE = {
    "there is room: the whole": (100, held(h=4, x=90), 6, 4, 6),
    "no room: what it has stays": (100, held(h=4, x=95), 6, 3, 4),
    "no room, and more is owed": (100, held(h=4, x=95), 6, 5, 5),
    "a new window with little left: what is owed": (100, held(x=97), 6, 3, 3),
}


@pytest.mark.parametrize(("limit", "account", "wanted", "least", "granted"), MORE.values(), ids=MORE.keys())
def test_moving_a_hold_on(limit: int, account: Account, wanted: int, least: int, granted: int) -> None:
    """A lit node's hold moves on where that fits; else it keeps what it has, or gets what is owed."""
    after = extend_hold(account, "h", Decimal(wanted), Decimal(limit), Decimal(least))
    assert after.held["h"] == granted


def test_a_hold_is_settled_once() -> None:
    """What is held becomes the real cost; doing it again, or where nothing is held, changes nothing."""
    once = settle_hold(held(a=4), "a", Decimal("0.30"))
    assert (once.total, once.done) == (Decimal("0.30"), {"a": Decimal("0.30")})
    assert settle_hold(once, "a", Decimal("0.31")) is once
    assert settle_hold(once, "b", Decimal(1)) is once


STEPS = st.lists(
    st.tuples(st.sampled_from(["reserve", "extend", "settle"]), st.sampled_from("abc"), st.integers(1, 9)), max_size=30
)


@given(STEPS)
def test_an_id_moves_one_way(steps: list[tuple[str, str, int]]) -> None:
    """In whatever order steps are repeated, an id is settled at most once, at the cost of the first time."""
    account, costs = Account(), dict[str, Decimal]()
    for what, id, figure in steps:
        usd = Decimal(figure)
        if what == "reserve":
            account = reserve_amounts(account, {id: usd}, TEN) or account
        elif what == "extend":
            account = extend_hold(account, id, usd, TEN, Decimal(0))
        else:
            costs |= {id: usd} if id in account.held else {}
            account = settle_hold(account, id, usd)
    assert account.settled == sum(costs.values(), Decimal(0))
    assert account.done == costs
    assert not account.held.keys() & account.done.keys()


def test_what_is_forgotten_is_no_money() -> None:
    """A mark that leaves changes neither what is settled nor what is held."""
    account = settle_hold(held(a=4, b=2), "a", Decimal(1))
    after = forget_done(account, "a")
    assert (after.total, after.done) == (account.total, {})
    assert forget_done(after, "a") is after


def test_room_is_given_before_it_is_taken() -> None:
    """Between the two steps it is lost to both parts; taken twice it is taken once; then both forget it."""
    first, second = gives(Account(), "0@1", 1, TEN), take_room(Account(), "0@1", TEN)
    assert (first.moved, second.moved) == (-TEN, TEN)
    assert take_room(second, "0@1", TEN) is second
    assert (gave(first, "0@1").giving, took(second, "0@1").taken) == ({}, ())


NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DAY = Budget(name="b", period="day", scope=BudgetScope(team="research"), usd=Decimal(400))


def shared_hold(id: str, part: Fraction, usd_per_hour: Decimal, seconds: int) -> Hold:
    """A hold of a node that team research has a part of."""
    mine = Decimal(part.numerator) / part.denominator
    owners = (
        Payer(team="research", workload_class="batch", part=mine),
        Payer(team="others", workload_class="batch", part=1 - mine),
    )
    terms = Terms(
        pool="t4",
        team="research",
        workload_class="batch",
        usd_per_hour=usd_per_hour,
        gpus=8,
        boot_s=0,
        idle_s=0,
        run_s=0,
        run_source="",
        typical_s=0,
        owners=owners,
    )
    until = NOON + timedelta(seconds=seconds)
    return Hold(id=id, decision="", terms=terms, since=NOON, binds_until=NOON, until=until)


SHARES = st.fractions(min_value=Fraction(1, 24), max_value=Fraction(23, 24), max_denominator=24)
PRICES = st.decimals(min_value="0.01", max_value="98.32", places=2)


@given(
    others=st.lists(st.tuples(SHARES, PRICES, st.integers(1, 30_000)), max_size=6),
    own=st.tuples(SHARES, PRICES, st.integers(60, 30_000)),
)
@example(
    others=[(Fraction(1, 24), Decimal("0.01"), 1), (Fraction(1, 24), Decimal("0.01"), 1)],
    own=(Fraction(1, 24), Decimal("0.03"), 484),
)
def test_a_stretch_up_to_the_latest_end_is_granted(
    others: list[tuple[Fraction, Decimal, int]], own: tuple[Fraction, Decimal, int]
) -> None:
    """Whatever parts of nodes an account holds for, and though its limit is just what they and one more come to: a
    stretch that was cut to what is left fits. Thirds, which no decimal says, refuse nothing that they granted."""
    (part, price, seconds) = own
    (day,) = meters((DAY,), NOON)
    account = Account(held={f"o{n}": held_amount(day, shared_hold("o", *each)) for n, each in enumerate(others)})
    just = sum(account.held.values(), held_amount(day, shared_hold("h", part, price, seconds)))
    (day,) = meters((replace(DAY, usd=just),), NOON)
    asks = shared_hold("h", part, price, 40_000)
    cut = replace(asks, until=latest(day, asks, day.limit - account.total))
    assert timedelta(seconds=seconds - 60) <= cut.until - NOON <= timedelta(seconds=seconds)
    wanted = held_amount(day, cut)
    assert extend_hold(account, "h", wanted, day.limit, Decimal(0)).held["h"] == wanted
