"""What to pay ahead, by the hours that nodes were lit."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.facts.money.bill import HourCost, HourSums
from pilotlight.tools.advice.commitments import Term, advice, nodes, together

PRICE, ONE, THREE = Decimal("98.32"), Term("one-year", Decimal("65.93")), Term("three-years", Decimal("45.66"))
AT = datetime(2026, 11, 1, 1, tzinfo=UTC)


def lit(*counts: tuple[int, int]) -> list[Decimal]:
    """So many nodes for so many hours, one after another."""
    return [Decimal(count) for count, hours in counts for _ in range(hours)]


@pytest.mark.parametrize(("term", "share"), [(ONE, "67.1%"), (THREE, "46.4%")])
def test_the_break_even_is_the_price_ahead_over_the_price_by_the_hour(term: Term, share: str) -> None:
    """67.1 % for a year of p5.48xlarge at $65.93 of $98.32, 46.4 % for three at $45.66."""
    assert f"{advice('p5.48xlarge', PRICE, term, []).break_even:.1%}" == share


def test_ten_nodes_that_are_always_lit_save_what_the_sum_says() -> None:
    """A year of them by the hour is $8,612,832, paid ahead for one $5,775,468: $2,837,364 less."""
    found = advice("p5.48xlarge", PRICE, ONE, lit((10, 8760)))
    assert (found.commit, found.paid, found.paid_so) == (10, Decimal(8612832), Decimal(5775468))
    assert found.saved == found.saved_a_year == Decimal(2837364)


CASES = [
    pytest.param(ONE, lit((1, 67), (0, 33)), 0, id="just below the break-even nothing is paid ahead"),
    pytest.param(ONE, lit((1, 68), (0, 32)), 1, id="just above one is"),
    pytest.param(THREE, lit((2, 50), (0, 50)), 2, id="two that are lit half of the time pay for three years"),
    pytest.param(ONE, lit((8, 30), (2, 50), (0, 20)), 2, id="a peak is bought by the hour"),
    pytest.param(ONE, [Decimal("0.5")] * 100, 0, id="a node that is lit for half of each hour does not pay"),
    pytest.param(ONE, [], 0, id="without an hour nothing is known"),
]


@pytest.mark.parametrize(("term", "hours", "commit"), CASES)
def test_as_many_are_paid_ahead_as_are_lit_for_long_enough(term: Term, hours: list[Decimal], commit: int) -> None:
    """The share of hours of the first node, of the second, and so on."""
    assert advice("p5.48xlarge", PRICE, term, hours).commit == commit


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.integers(1, 99))
def test_no_other_number_of_nodes_is_cheaper(counts: list[int], cents: int) -> None:
    """What is advised is the cheapest of all numbers, tried one by one."""
    term, price = Term("t", Decimal(cents) / 100), Decimal(1)
    found = advice("m", price, term, [Decimal(count) for count in counts])
    costs = [n * term.usd_per_hour * len(counts) + sum(max(0, c - n) for c in counts) * price for n in range(8)]
    assert found.paid_so == min(costs)
    assert found.saved >= 0


def hour(number: int, gpus: str) -> HourCost:
    """An hour with so many GPU-hours of a machine of eight."""
    return HourCost(
        at=AT + timedelta(hours=number),
        hours=Decimal(1),
        rates=HourSums(machines={"p5 on-demand": Decimal(gpus), "p5 spot": Decimal(80)} if Decimal(gpus) else {}),
    )


def test_clusters_share_what_their_account_pays_ahead() -> None:
    """One lights a node by day and the other by night: together one is always lit; spot is not counted."""
    east, west = [hour(0, "8"), hour(1, "0")], [hour(0, "0"), hour(1, "12"), hour(2, "4")]
    assert nodes(together({"east": east, "west": west}), "p5", 8) == [Decimal(1), Decimal("1.5"), Decimal("0.5")]
