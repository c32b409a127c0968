"""Charges of machines in a FOCUS export, for the proof of a bill: time, price, discount, and what stands beside."""

import os
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.errors import BadInput

START, END = datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)
NAMES = (
    "BilledCost,EffectiveCost,ListCost,ListUnitPrice,PricingQuantity,PricingUnit,PricingCategory,BillingCurrency,"
    "ChargeCategory,ChargePeriodStart,ChargePeriodEnd,ResourceId,Tags"
)
TAG = '"{""eks:nodegroup-name"": ""a100""}"'
HOURS = "2026-10-05T{:02d}:00:00Z,2026-10-05T{:02d}:00:00Z"


def _row(costs: str, hour: int = 10, category: str = "Usage", instance: str = "i-0aaaaaaaa") -> str:
    return f"{costs},{category},{HOURS.format(hour, hour + 1)},{instance},{TAG}"


def _read(tmp_path: Path, *rows: str, names: str = NAMES, name: str = "bill.csv") -> FocusBills:
    (tmp_path / name).write_text("\n".join([names, *rows, _last()]) + "\n", "utf-8")
    return FocusBills(str(tmp_path / "*.csv"), Rules(pools={"a100": "gpu-pool"}))


def _last() -> str:
    """A row of another machine by which the export reaches the month's 20th day."""
    return f"0,0,0,,,,,USD,Usage,2026-10-19T23:00:00Z,2026-10-20T00:00:00Z,vol-1,{TAG}"


def test_time_is_summed_with_its_price_and_its_first_charge(tmp_path: Path) -> None:
    """Two hours of a node, of which the first began at half past ten; the export covers nineteen whole days."""
    bill = _read(
        tmp_path,
        _row("1.8,1.5,2.05,4.1,0.5,Hours,Standard,USD"),
        _row("3.6,3,4.1,4.1,1,Hours,Standard,USD", hour=11),
    ).read_nodes(START, END)
    (one,) = bill.charges
    assert bill.until == datetime(2026, 10, 20, tzinfo=UTC)
    assert (one.instance, one.pool, one.category, one.timed, one.covered, one.rows) == (
        "i-0aaaaaaaa", "gpu-pool", "Usage", True, False, 2,
    )  # fmt: skip
    assert (one.billed, one.effective, one.listed, one.exact) == tuple(map(Decimal, ("5.4", "4.5", "6.15", "6.15")))
    ten = datetime(2026, 10, 5, 10, tzinfo=UTC)
    assert one.hours == Decimal("1.5")
    assert one.first == (ten, ten + timedelta(hours=1), Decimal("0.5"))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        pytest.param(_row("0,9,14.4,3.6,4,Hours,Committed,USD"), (True, True, "14.4", "14.4", "4"), id="a commitment"),
        pytest.param(_row("5,5,14.4,3.6,4,Hours,Dynamic,USD"), (True, False, "5", "5", "4"), id="spot has no list"),
        pytest.param(_row("1,1,1,,7200,Seconds,Standard,USD"), (True, False, "1", "1", "2"), id="seconds"),
        pytest.param(_row("1,1,1,,7200,Seconds,Standard, usd "), (True, False, "1", "1", "2"), id="dollars as text"),
        pytest.param(_row("1,1,1,0.09,11,GB,Standard,USD"), (False, False, "1", "1", "None"), id="data"),
        pytest.param(_row("1,1,,,,,,USD"), (True, False, "1", "1", "None"), id="a bill without quantities"),
        pytest.param(_row("1,1,1,,,,,USD", category="Tax"), (False, False, "1", "1", "None"), id="tax"),
    ],
)
def test_what_a_charge_is_for_is_told_by_its_unit_and_category(
    tmp_path: Path, row: str, says: tuple[bool, bool, str, str, str]
) -> None:
    """Whether it is time, whether a commitment pays, what it would cost without discounts, and its hours."""
    (one,) = _read(tmp_path, row).read_nodes(START, END).charges
    told = (one.timed, one.covered, *(str(value and value.normalize()) for value in (one.listed, one.exact, one.hours)))
    assert told == says


def test_a_row_without_an_amount_is_counted_as_such(tmp_path: Path) -> None:
    """It is no dollar of the node's, and said; other machines and volumes of no node are not read."""
    bills = _read(tmp_path, _row(",,,3.6,1,Hours,,USD"), _row("1,1,1,,,,,USD", instance="vol-7"))
    (one,) = bills.read_nodes(START, END).charges
    assert [one.rows, one.uncounted, one.billed] == [1, 1, 0]


def test_an_export_that_was_written_again_counts_once(tmp_path: Path) -> None:
    """The newer file has the day whole: the older one's is left out."""
    _read(tmp_path, _row("3.6,3.6,3.6,3.6,1,Hours,,USD"), name="run-a.csv")
    os.utime(tmp_path / "run-a.csv", (1, 1))
    bills = _read(tmp_path, _row("4,4,4,4,1,Hours,,USD"), name="run-b.csv")
    assert sum(one.billed for one in bills.read_nodes(START, END).charges) == 4


def test_what_cannot_be_proved_is_said(tmp_path: Path) -> None:
    """A bill in euros, without resources, or of no usage at all."""
    with pytest.raises(BadInput, match="the bill is in EUR: a proof needs one in dollars"):
        _read(tmp_path, _row("1,1,1,1,1,Hours,,EUR")).read_nodes(START, END)
    bare = FocusBills(str(tmp_path / "bare.csv"), Rules())
    (tmp_path / "bare.csv").write_text("BilledCost,ChargePeriodStart,ChargePeriodEnd\n1,2026-10-05,2026-10-06\n")
    with pytest.raises(BadInput, match="the bill lacks columns: ResourceId; export them too"):
        bare.read_nodes(START, END)
    later = datetime(2027, 1, 1, tzinfo=UTC)
    assert FocusBills(str(tmp_path / "bill.csv"), Rules()).read_nodes(later, later) == ((), None)
    (tmp_path / "broken.parquet").write_text("no Parquet")
    with pytest.raises(BadInput, match="the bill cannot be read"):
        FocusBills(str(tmp_path / "broken.parquet"), Rules()).read_nodes(START, END)


@pytest.mark.parametrize(
    ("others", "billed"),
    [
        pytest.param(("USD,a", "EUR,b"), "5", id="the only one of who pays"),
        pytest.param((), "5", id="no line tells any: dollars"),
        pytest.param(("EUR,a", "USD,b"), "EUR", id="who pays does so in another"),
        pytest.param(("EUR,b",), "EUR", id="the bill's only one is another"),
        pytest.param(("EUR,a", "USD,a"), "several currencies, none told for machines", id="nobody knows"),
    ],
)
def test_a_machine_without_a_currency_is_proved_in_its_payers(
    tmp_path: Path, others: tuple[str, ...], billed: str
) -> None:
    """As the bill is read: a proof takes no amount for dollars that is told in euros beside it."""
    names = "BilledCost,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,ResourceId,BillingCurrency,BillingAccountId"
    hour = HOURS.format(10, 11)
    rows = [f"1,Usage,{hour},vol-{n},{other}" for n, other in enumerate(others)]
    day = "0,Usage,2026-10-19T23:00:00Z,2026-10-20T00:00:00Z,vol-9,,a"
    (tmp_path / "bill.csv").write_text("\n".join([names, f"5,Usage,{hour},i-0aaaaaaaa,,a", *rows, day]) + "\n", "utf-8")
    bill = FocusBills(str(tmp_path / "*.csv"), Rules())
    if billed.isdigit():
        assert [one.billed for one in bill.read_nodes(START, END).charges] == [Decimal(billed)]
    else:
        with pytest.raises(BadInput, match=f"the bill is in {billed}: a proof needs one in dollars"):
            bill.read_nodes(START, END)
