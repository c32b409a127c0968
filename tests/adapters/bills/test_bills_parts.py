"""Files that only their names call parts of one export: a part adds, and the whole again counts once."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from export_files import write_export

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.facts.money.bill import Bill

pytest.importorskip("duckdb")

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
Row = dict[str, str]


def _line(day: int, usd: str, node: int = 1, sku: str = "gpu", **fields: str) -> Row:
    """One charge of a node's day in November."""
    return {
        "BilledCost": usd, "BillingCurrency": "USD", "ChargeCategory": "Usage", "ServiceName": "Compute Engine",
        "ChargePeriodStart": f"2026-11-{day:02d}T00:00:00Z", "ChargePeriodEnd": f"2026-11-{day + 1:02d}T00:00:00Z",
        "ResourceId": f"projects/p/zones/z/instances/n-{node}", "Tags": '{"team": "nlp"}', "SkuId": sku,
        "SkuPriceId": "p-1", "ChargeDescription": "$98.30 per hour", "AvailabilityZone": "z-1", **fields,
    }  # fmt: skip


def _read(folder: Path) -> tuple[Decimal, list[str]]:
    bill: Bill = FocusBills(str(folder / "**" / "*.csv"), Rules()).read(START, END)
    return sum((row.usd for row in bill.days), Decimal(0)), [one.message for one in bill.findings]


WHOLE = [_line(day, f"{100 + node}.25", node) for day in range(1, 9) for node in range(5)]
"""Eight days of five nodes: $4,090.00."""
USD = Decimal("4090.00")
NAMES = {
    "part-0001": ("part-0001.csv", "part-0002.csv"),
    "of": ("focus-00000-of-2.csv", "focus-00001-of-2.csv"),
    "a number": ("bill_1.csv", "bill_2.csv"),
    "a number after a dot": ("bill.1.csv", "bill.2.csv"),
    "in brackets": ("bill (1).csv", "bill (2).csv"),
    "seconds": ("bill-1794528000.csv", "bill-1794614400.csv"),
    "Spark's": ("part-00000-1b2c-c000.csv", "part-00001-1b2c-c000.csv"),
}
CHANGED: dict[str, Row] = {
    "a tag": {"Tags": '{"team": "nlp", "env": "prod"}'},
    "the price list": {"SkuPriceId": "p-2"},
    "the price in a text": {"ChargeDescription": "$98.00 per hour"},
    "its service's name": {"ServiceName": "Google Compute Engine"},
    "its service's name and its SKU": {"ServiceName": "Google Compute Engine", "SkuId": "s-2"},
    "all of them": {"Tags": "", "SkuPriceId": "p-3", "ChargeDescription": "", "AvailabilityZone": "", "SkuId": "s-2"},
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED)
def test_the_whole_again_under_a_parts_number_counts_once(tmp_path: Path, names: tuple[str, str], changed: Row) -> None:
    """The later counts, whichever else of the lines is changed; where both sums are the same nothing is told."""
    write_export(tmp_path / names[0], WHOLE, age=9)
    write_export(tmp_path / names[1], [row | changed for row in WHOLE])
    assert _read(tmp_path) == (USD, [])


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_both_sums_are_told_where_the_whole_again_differs(tmp_path: Path, names: tuple[str, str]) -> None:
    """A refund in the later of two: it counts, and both sums are told."""
    write_export(tmp_path / names[0], WHOLE, age=9)
    write_export(tmp_path / names[1], [WHOLE[0] | {"BilledCost": "60.25"}, *WHOLE[1:]])
    assert _read(tmp_path) == (
        USD - 40,
        ["two files tell 1 day apart: $511.25 in the older, $471.25 in the newer; the newer counts"],
    )


@pytest.mark.parametrize("sku", ["gpu", ""], ids=["by SKU", "without SKUs"])
def test_the_whole_again_at_other_prices_counts_once(tmp_path: Path, sku: str) -> None:
    """Each line is a tenth cheaper: the later counts, and both sums are told."""
    old = [row | {"SkuId": sku, "BilledCost": "100"} for row in WHOLE]
    write_export(tmp_path / "bill_1.csv", old, age=9)
    write_export(tmp_path / "bill_2.csv", [row | {"BilledCost": "90"} for row in old])
    assert _read(tmp_path) == (
        Decimal(3600),
        ["two files tell 8 days apart: $4,000.00 in the older, $3,600.00 in the newer; the newer counts"],
    )


def test_of_three_wholes_the_last_counts(tmp_path: Path) -> None:
    """The month to date thrice: both sums are the last two's."""
    for at, price in ((1, "100"), (2, "110"), (10, "120")):
        write_export(tmp_path / f"bill_{at}.csv", [row | {"BilledCost": price} for row in WHOLE])
    usd, told = _read(tmp_path)
    assert (usd, told) == (
        Decimal(4800),
        ["two files tell 8 days apart: $4,400.00 in the older, $4,800.00 in the newer; the newer counts"],
    )


def test_a_whole_in_two_parts_again_counts_once_though_it_is_cut_elsewhere(tmp_path: Path) -> None:
    """Four files: the first two are cut after 20 lines, the other two after 25, with a late line."""
    late = _line(8, "7", 9)
    for at, rows in enumerate((WHOLE[:20], WHOLE[20:], WHOLE[:25], [*WHOLE[25:], late]), 1):
        write_export(tmp_path / f"bill_{at}.csv", rows, age=10 - at)
    assert _read(tmp_path) == (
        USD + 7,
        ["two files tell 1 day apart: $511.25 in the older, $518.25 in the newer; the newer counts"],
    )


@pytest.mark.parametrize("cut", [2, 3, 7])
def test_parts_that_cut_a_nodes_hour_apart_are_added(tmp_path: Path, cut: int) -> None:
    """Processors, memory and GPUs of a node are lines of their own, and lie in whichever part."""
    prices = {"cpu": "1.50", "ram": "0.75", "gpu": "9"}
    lines = [_line(day, usd, node, sku) for day in range(1, 9) for node in range(30) for sku, usd in prices.items()]
    for part in range(cut):
        own = [row for at, row in enumerate(lines) if hash((at, at // cut)) % cut == part]
        write_export(tmp_path / f"part-{part:05d}-1b2c-c000.csv", own)
    assert _read(tmp_path) == (Decimal("11.25") * 240, [])


@pytest.mark.parametrize("service", ["Compute Engine", "Cloud GPUs"], ids=["one service", "a service each"])
def test_parts_of_one_sku_each_are_added_and_told(tmp_path: Path, service: str) -> None:
    """The same nodes and days, other SKUs at other prices: it may be either, so both sums and files are told."""
    of = {"ServiceName": service, "SkuId": "gpu"}
    write_export(tmp_path / "bill_1.csv", [row | {"SkuId": "cpu"} for row in WHOLE])
    write_export(tmp_path / "bill_2.csv", [row | of | {"BilledCost": "30"} for row in WHOLE])
    assert _read(tmp_path) == (
        USD + 1200,
        [
            "two files tell 8 days apart: $4,090.00 in the older, $1,200.00 in the newer; both count, for neither "
            "SKUs nor dollars are alike: take away the file that is not current, bill_1.csv or bill_2.csv"
        ],
    )


def test_parts_of_the_same_sum_that_may_be_one_again_are_told(tmp_path: Path) -> None:
    """Dollars of a day moved between its nodes, under other SKUs: the sums are alike, and both count."""
    two = [row for row in WHOLE if row["BilledCost"] in ("100.25", "101.25")]
    moved = {"100.25": "101.25", "101.25": "100.25"}
    write_export(tmp_path / "bill_1.csv", two)
    write_export(
        tmp_path / "bill_2.csv", [row | {"SkuId": "s-2", "BilledCost": moved[row["BilledCost"]]} for row in two]
    )
    usd, (told,) = _read(tmp_path)
    assert usd == Decimal(3224)
    assert "$1,612.00 in the older, $1,612.00 in the newer; both count" in told


@pytest.mark.parametrize("names", [("bill_1.csv", "bill_2.csv"), ("old.csv", "new.csv")], ids=["numbered", "named"])
def test_lines_that_cost_nothing_say_nothing_of_a_renamed_service(tmp_path: Path, names: tuple[str, str]) -> None:
    """Half of the lines are covered by a plan, at $0: the whole again under other services and SKUs counts once."""
    covered = [row | {"BilledCost": "0", "ServiceName": "Covered"} for row in WHOLE]
    new = [row | {"ServiceName": f"{row['ServiceName']} (new)", "SkuId": "s-2"} for row in [*WHOLE, *covered]]
    write_export(tmp_path / names[0], [*WHOLE, *covered], age=9)
    write_export(tmp_path / names[1], new)
    assert _read(tmp_path) == (USD, [])


@pytest.mark.parametrize("nodes", [5, 2])
def test_a_service_of_another_name_without_skus_is_told(tmp_path: Path, nodes: int) -> None:
    """Nothing says whether it is a part or the whole again: both count, and both sums are told."""
    old = [row | {"SkuId": "", "ChargeDescription": ""} for row in WHOLE]
    new = [row | {"ServiceName": "GCE", "BilledCost": "90"} for row in old if int(row["ResourceId"][-1]) < nodes]
    write_export(tmp_path / "bill_1.csv", old, age=9)
    write_export(tmp_path / "bill_2.csv", new)
    usd, (told,) = _read(tmp_path)
    assert usd == USD + 90 * len(new)
    assert f"$4,090.00 in the older, ${90 * len(new):,}.00 in the newer; both count" in told


@pytest.mark.parametrize("cut", [2, 3, 5, 10])
@pytest.mark.parametrize("lines", [2, 3, 6])
@pytest.mark.parametrize("usd", ["{}.{}1", "{}.01"], ids=["other dollars", "the same dollars"])
def test_parts_that_cut_lines_of_one_sku_apart_are_added(tmp_path: Path, usd: str, lines: int, cut: int) -> None:
    """A node's hour that is covered in part has several lines of one SKU, in whichever part."""
    days, nodes = range(1, 9), range(1, 31)
    rows = [_line(day, usd.format(node, n), node) for day in days for node in nodes for n in range(lines)]
    for part in range(cut):
        own = [row for at, row in enumerate(rows) if hash((at, at // cut, lines)) % cut == part]
        write_export(tmp_path / f"part-{part:05d}-1b2c-c000.csv", own)
    assert _read(tmp_path)[0] == sum((Decimal(row["BilledCost"]) for row in rows), Decimal(0))


@pytest.mark.parametrize("cut", [2, 3])
def test_parts_that_cut_a_nodes_services_apart_are_added(tmp_path: Path, cut: int) -> None:
    """A node's machine, its disk and its monitoring are of three services, and lie in whichever part."""
    prices = {"Compute Engine": "9", "Storage": "1.50", "Monitoring": "0.75"}
    lines = [
        _line(day, usd, node, f"s-{service}", ServiceName=service)
        for day in range(1, 9) for node in range(30) for service, usd in prices.items()
    ]  # fmt: skip
    for part in range(cut):
        own = [row for at, row in enumerate(lines) if hash((at, at // cut)) % cut == part]
        write_export(tmp_path / f"part-{part:05d}-1b2c-c000.csv", own)
    assert _read(tmp_path) == (Decimal("11.25") * 240, [])


def test_lines_without_a_resource_are_alike_in_their_dollars(tmp_path: Path) -> None:
    """Two teams' parts of one service add; the whole again counts once."""
    teams = [[_line(day, usd, ResourceId="", SkuId="") for day in range(1, 9)] for usd in ("10.5", "20.25")]
    for at, rows in enumerate(teams):
        write_export(tmp_path / f"team_{at}.csv", rows, age=9)
    usd, _ = _read(tmp_path)
    assert usd == 246
    for at, rows in enumerate(teams, 2):
        write_export(tmp_path / f"team_{at}.csv", rows)
    assert _read(tmp_path)[0] == 246


def test_a_runs_parts_of_azure_are_one_version(tmp_path: Path) -> None:
    """Parts of two numbers in the folder of a run: a machine's meters lie in both."""
    run = tmp_path / "focus" / "20261101-20261130" / "202611300600" / "1b2c"
    write_export(run / "part_0_0001.csv", [row | {"SkuId": "vm"} for row in WHOLE])
    write_export(run / "part_1_0001.csv", [row | {"SkuId": "disk", "BilledCost": "1"} for row in WHOLE])
    assert _read(tmp_path) == (USD + 40, [])
