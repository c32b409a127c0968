"""The bill held against the meter, and what is learnt from it."""

from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.money.counted_days import counted_days
from pilotlight.decide.money.metering import day_start
from pilotlight.decide.money.reconciliation import (
    BOUNDS,
    Correction,
    compare_with_bill,
    corrections,
    median,
)
from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, MeterDay
from pilotlight.tools.cli.records.bill_command import awaited_bills

FIRST = date(2026, 11, 1)


def _day(number: int) -> date:
    return FIRST + timedelta(days=number)


def metered(number: int, **pools: str) -> MeterDay:
    """A day with a line for each pool."""
    lines = (
        CostLine(kind="used", pool=pool, node="n", instance_type="x", capacity_type="spot", usd=Decimal(usd))
        for pool, usd in pools.items()
    )
    return MeterDay(day=_day(number), until=day_start(_day(number + 1)), lines=tuple(lines))


def billed(number: int, *, doubt: bool = False, **pools: str) -> BillDay:
    """A day with a row for each pool; ``none`` is tied to no pool."""
    rows = (BilledDay(day=_day(number), usd=Decimal(usd), pool=pool.replace("none", "")) for pool, usd in pools.items())
    return BillDay(day=_day(number), source="focus", rows=tuple(rows), doubt=doubt)


def learnt(ratios: Iterable[str], none: str = "0") -> tuple[Correction, ...]:
    """What is learnt of days at $10 that are billed at these ratios, after the day on which the meter began."""
    numbered = list(enumerate(ratios, 1))
    days = [metered(0, a="10"), *(metered(n, a="10") for n, _ in numbered)]
    bills = [billed(n, a=str(10 * Decimal(ratio)), none=none) for n, ratio in numbered]
    known = counted_days(days, bills)
    return corrections(compare_with_bill(known.metered, known.billed))


def test_a_correction_has_its_date_its_evidence_and_its_spread() -> None:
    """Six days at 1.03 and one that was corrected: the median is not moved by the one."""
    (found,) = learnt(["1.03", "1.03", "1.10", "1.03", "1.02", "1.03", "1.04"])
    assert (found.pool, found.factor, found.through, found.days) == ("a", Decimal("1.03"), _day(7), 7)
    assert (found.billed, found.metered, found.spread) == (Decimal("72.80"), Decimal(70), Decimal("0"))
    assert not found.bounded


@pytest.mark.parametrize(
    ("ratios", "factor"),
    [
        pytest.param(["1.1"] * 4, None, id="four days are too few"),
        pytest.param(["0.5"] * 9, "0.8", id="half of the price is not believed"),
        pytest.param(["3"] * 9, "1.25", id="three times the price is not believed"),
        pytest.param(["1.2"] * 40 + ["1"] * 28, "1", id="what is older than four weeks is forgotten"),
    ],
)
def test_a_correction_is_bounded_and_of_late(ratios: list[str], factor: str | None) -> None:
    """It comes from enough days of the last four weeks, and says where more is not believed."""
    found = learnt(ratios)
    assert [one.factor for one in found] == ([] if factor is None else [Decimal(factor)])
    assert [one.bounded for one in found if factor in ("0.8", "1.25")] == [True] * (factor in ("0.8", "1.25"))


def test_what_no_pool_has_teaches_nothing() -> None:
    """A database of the cluster is compared by day, and is no pool's price."""
    assert [one.pool for one in learnt(["1"] * 6, none="5")] == ["a"]


def test_a_bill_without_pools_is_held_against_the_whole_day() -> None:
    """Where no row names a pool all of the meter is compared with all of the bill."""
    days = [metered(0, a="1"), *(metered(n, a="6", b="4") for n in range(1, 7))]
    known = counted_days(days, [billed(n, none="11") for n in range(1, 7)])
    found = compare_with_bill(known.metered, known.billed)
    assert {(one.pool, one.billed, one.metered) for one in found} == {("", Decimal(11), Decimal(10))}
    assert awaited_bills([metered(7, a="6", b="4")], corrections(found)) == (
        ("a", Decimal(6), Decimal("6.6")),
        ("b", Decimal(4), Decimal("4.4")),
    )


def test_a_day_in_doubt_is_shown_and_teaches_nothing() -> None:
    """Something of it could not be counted."""
    days = [metered(n, a="10") for n in range(8)]
    known = counted_days(days, [billed(n, a="12", doubt=True) for n in range(1, 8)])
    found = compare_with_bill(known.metered, known.billed)
    assert {one.doubt for one in found} == {True}
    assert corrections(found) == ()


AMOUNTS = st.decimals(min_value=0, max_value=1000, places=2)
DAYS = st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS), max_size=12)


@given(DAYS)
def test_compared_days_add_up_to_bill_and_meter(days: list[tuple[Decimal, Decimal, Decimal, Decimal]]) -> None:
    """Every dollar of a compared day is in one line of it, and no factor leaves its bounds."""
    meters = [metered(n, a=str(one[0]), b=str(one[1])) for n, one in enumerate(days)]
    bills = [billed(n, a=str(one[2]), none=str(one[3])) for n, one in enumerate(days)]
    known = counted_days(meters, bills)
    found = compare_with_bill(known.metered, known.billed)
    assert sum(one.metered for one in found) == sum(one[0] + one[1] for one in days[1:])
    assert sum(one.billed for one in found) == sum(one[2] + one[3] for one in days[1:])
    assert all(BOUNDS[0] <= one.factor <= BOUNDS[1] for one in corrections(found))


def test_a_median_needs_values() -> None:
    """Of an even number it is the mean of the middle two."""
    assert median([Decimal(4), Decimal(1), Decimal(2), Decimal(9)]) == 3
    with pytest.raises(ValueError, match="nothing"):
        median([])
