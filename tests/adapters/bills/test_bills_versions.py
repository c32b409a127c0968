"""Exports that are written again: only what is current counts, however many files it is in."""

import json
import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from export_files import age_file, write_export

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.facts.money.bill import Bill

pytest.importorskip("duckdb")

START, END = datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
MONTH = "BILLING_PERIOD=2026-11"


def _line(day: int, usd: str, resource: str = "i-1", **fields: str) -> dict[str, str]:
    """One node's day in November."""
    return {
        "BilledCost": usd, "BillingCurrency": "USD", "ChargeCategory": "Usage", "ServiceName": "EC2",
        "ChargePeriodStart": f"2026-11-{day:02d}T00:00:00Z", "ChargePeriodEnd": f"2026-11-{day + 1:02d}T00:00:00Z",
        "ResourceId": resource, "Tags": '{"team": "nlp"}', "ChargeClass": "", **fields,
    }  # fmt: skip


def _manifest(path: Path, names: list[str], *, age: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"dataFiles": names}))
    age_file(path, age)


def _read(uri: object) -> Bill:
    return FocusBills(str(uri), Rules()).read(START, END)


def _usd(bill: Bill) -> Decimal:
    return sum((row.usd for row in bill.days), Decimal(0))


OLD = [_line(day, "786.40") for day in range(1, 11)]
NEW = [*OLD[:9], _line(10, "737.40")]
"""The whole again with a late correction: $7,815.00, where both files together are $15,679.00."""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("bill.csv", "bill-corrected.csv", id="under another name, by when they were written"),
        pytest.param("focus-2026-11-12.csv", "focus-2026-11-13.csv", id="by the day in their names"),
        pytest.param("20261112T0600/part-0.csv", "20261113T0600/part-0.csv", id="in a folder of its own time"),
        pytest.param("new/x.csv", "again/x.csv", id="in another folder"),
    ],
)
def test_a_re_export_with_a_late_correction_replaces_the_old_file(tmp_path: Path, old: str, new: str) -> None:
    """Both lie side by side, and the newer one counts."""
    write_export(tmp_path / old, OLD, age=2)
    write_export(tmp_path / new, NEW, age=1)
    assert _usd(_read(tmp_path / "**" / "*.csv")) == Decimal("7815.00")


def test_a_file_of_corrections_alone_adds_to_the_old(tmp_path: Path) -> None:
    """A newer file that repeats few of a day's lines replaces none of them."""
    write_export(tmp_path / "focus-2026-11-12.csv", [_line(10, "20", f"i-{n}") for n in range(5)])
    correction = _line(10, "-3", "i-1", ChargeClass="Correction")
    write_export(tmp_path / "focus-2026-11-13.csv", [_line(11, "20"), correction])
    assert _usd(_read(tmp_path / "*.csv")) == Decimal(117)


def test_days_that_a_newer_file_does_not_have_stay(tmp_path: Path) -> None:
    """Each file has the last week; what has left it is in older ones alone."""
    for day in (8, 9, 10):
        write_export(
            tmp_path / f"week-2026-11-{day + 1:02d}.csv", [_line(d, f"{day}") for d in range(day - 6, day + 1)]
        )
    assert _usd(_read(tmp_path / "*.csv")) == 8 + 9 + 7 * 10


def test_parts_of_one_export_are_added(tmp_path: Path) -> None:
    """Files whose names differ in a number at their end are one export, where their lines are of other SKUs."""
    for part in range(1, 4):
        write_export(tmp_path / f"focus-0000{part}.csv", [_line(2, str(part), SkuId=f"s-{part}")])
    assert _usd(_read(tmp_path / "*.csv")) == 6


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """AWS Data Exports with each run kept: two runs of November, the second corrected, and one of October."""
    root = tmp_path / "bills" / "focus"
    for age, (run, rows) in enumerate((("20261113T060000Z-b", NEW), ("20261112T060000Z-a", OLD))):
        write_export(root / "data" / MONTH / run / "focus-00001.csv", rows, age=age)
        name = f"s3://elsewhere/bills/focus/data/{MONTH}/{run}/focus-00001.csv"
        _manifest(root / "metadata" / MONTH / run / "focus-Manifest.json", [name], age=age)
    october = _line(1, "5", ChargePeriodStart="2026-10-30T00:00:00Z", ChargePeriodEnd="2026-10-31T00:00:00Z")
    write_export(root / "data" / "BILLING_PERIOD=2026-10" / "20261102T060000Z-c" / "focus-00001.csv", [october])
    return root


@pytest.mark.parametrize("pattern", ["data/**/*.csv", "**/*"])
def test_of_each_month_the_newest_run_counts(export: Path, pattern: str) -> None:
    """By its manifest, or where a month has none by the time in its folder; the files of other runs are dropped."""
    bill = _read(export / pattern)
    if pattern == "**/*":  # Where manifests are named, they alone say what there is.
        assert _usd(bill) == Decimal("7815.00")
        return
    assert (_usd(bill), bill.notes) == (Decimal("7820.00"), ("1 file replaced by newer ones",))


def test_a_run_without_its_manifest_is_not_read_yet(export: Path) -> None:
    """The manifest comes after all files of its run."""
    write_export(export / "data" / MONTH / "20261114T060000Z-d" / "focus-00001.csv", [_line(1, "1")])
    assert _usd(_read(export / "data" / "**" / "*.csv")) == Decimal("7820.00")


def test_a_part_that_an_overwritten_export_no_longer_has_is_dropped(tmp_path: Path) -> None:
    """The month became smaller: its manifest names one file, and an old second one still lies there."""
    data = tmp_path / "focus" / "data" / MONTH
    for part in (1, 2):
        write_export(data / f"focus-0000{part}.csv", [_line(part, "4")])
    _manifest(tmp_path / "focus" / "metadata" / MONTH / "focus-Manifest.json", [f"s3://b/data/{MONTH}/focus-00001.csv"])
    assert _usd(_read(data / "*.csv")) == 4


def test_an_export_of_more_than_a_thousand_files_is_read_whole(tmp_path: Path) -> None:
    """None of 1,005 files is cut off."""
    for number in range(1005):
        write_export(tmp_path / f"part-{number:05d}.csv", [_line(1 + number % 20, "1", f"i-{number}")])
    assert _usd(_read(tmp_path / "*.csv")) == 1005


CHANGED: dict[str, dict[str, str]] = {
    "a tag that is back-filled": {"Tags": '{"team": "nlp", "env": "prod"}'},
    "another price list": {"SkuPriceId": "p-2"},
    "the price in the description": {"ChargeDescription": "$98.00 per p5.48xlarge hour"},
    "capitals of its resource, which Azure's exports change": {
        "ResourceId": "ARN:AWS:EC2:R:1:INSTANCE/I-0ABC1234567890DEF"
    },
    "its machine by its name alone": {"ResourceId": "i-0abc1234567890def"},
    "a zone that is told later": {"AvailabilityZone": "use1-az2"},
    "its service's name": {"ServiceName": "Amazon Elastic Compute Cloud - Compute"},
    "its service's name and its SKU": {"ServiceName": "Amazon EC2", "SkuId": "s-2"},
    "all of them": {"Tags": "", "SkuPriceId": "p-3", "ChargeDescription": "", "AvailabilityZone": "", "SkuId": "s-2"},
}


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED.keys())
def test_a_re_export_counts_once_whatever_else_of_its_lines_changes(tmp_path: Path, changed: dict[str, str]) -> None:
    """A line is known by its resource, hour, service and category; where both files differ their sums are told."""
    says = {
        "ResourceId": "arn:aws:ec2:r:1:instance/i-0abc1234567890def",
        "SkuPriceId": "p-1",
        "SkuId": "s-1",
        "ChargeDescription": "$98.30 per hour",
        "AvailabilityZone": "use1-az1",
    }
    old = [_line(day, "786.40", **says) for day in range(1, 11)]
    new = [{**_line(day, "786.40", **says), **changed} for day in range(1, 11)]
    write_export(tmp_path / "bill-a.csv", old, age=2)
    write_export(tmp_path / "bill-b.csv", new, age=1)
    bill = _read(tmp_path / "*.csv")
    assert (_usd(bill), bill.findings) == (Decimal("7864.00"), ())
    write_export(tmp_path / "bill-b.csv", [*new[:-1], {**new[-1], "BilledCost": "700"}], age=1)
    bill = _read(tmp_path / "*.csv")
    assert _usd(bill) == Decimal("7777.60")
    assert [one.message for one in bill.findings] == [
        "two files tell 1 day apart: $786.40 in the older, $700.00 in the newer; the newer counts"
    ]


@pytest.mark.parametrize(
    ("changed", "sums"),
    [
        pytest.param({"EffectiveCost": "30"}, "by EffectiveCost $37.00 in the older, $30.00 in the newer", id="one"),
        pytest.param(
            {"BilledCost": "1", "ListCost": "99"},
            "$0.00 in the older, $1.00 in the newer, by ListCost $98.00 in the older, $99.00 in the newer",
            id="two",
        ),
        pytest.param({"EffectiveCost": ""}, "by EffectiveCost $37.00 in the older, $0.00 in the newer", id="empty"),
    ],
)
def test_sums_are_told_in_each_basis_that_two_files_differ_in(
    tmp_path: Path, changed: dict[str, str], sums: str
) -> None:
    """Under a commitment all is billed $0, and a file that amortises it otherwise is told; one without is not held."""
    old = [_line(day, "0", EffectiveCost="37", ListCost="98") for day in range(1, 11)]
    write_export(tmp_path / "bill-a.csv", old, age=2)
    write_export(tmp_path / "bill-b.csv", [*old[:-1], old[-1] | changed], age=1)
    assert [one.message for one in _read(tmp_path / "*.csv").findings if "apart" in one.message] == [
        f"two files tell 1 day apart: {sums}; the newer counts"
    ]
    billed_alone = [{name: value for name, value in row.items() if name != "EffectiveCost"} for row in old]
    write_export(tmp_path / "bill-b.csv", billed_alone, age=1)
    assert not any("two files tell" in one.message for one in _read(tmp_path / "*.csv").findings)


def test_lines_of_one_hour_that_two_files_share_in_part_are_told(tmp_path: Path) -> None:
    """One node of five is in both files: both count, and both sums are told."""
    write_export(tmp_path / "focus-2026-11-12.csv", [_line(10, "20", f"i-{n}") for n in range(5)])
    write_export(tmp_path / "focus-2026-11-13.csv", [_line(10, "3", "i-1")])
    bill = _read(tmp_path / "*.csv")
    assert _usd(bill) == Decimal(103)
    (told,) = bill.findings
    assert told.message == (
        "two files tell 1 day apart: $100.00 in the older, $3.00 in the newer; both count, for they share few lines"
    )


def test_a_service_of_another_name_at_other_prices_is_told_with_its_files(tmp_path: Path) -> None:
    """The same nodes and hours under another service, other SKUs and other prices: both count, and both sums are
    told."""
    old = [_line(day, "20", SkuId="s-1") for day in range(1, 11)]
    new = [row | {"ServiceName": "Elastic Compute", "SkuId": "s-2", "BilledCost": "18"} for row in old]
    write_export(tmp_path / "bill-a.csv", old, age=2)
    write_export(tmp_path / "bill-b.csv", new, age=1)
    bill = _read(tmp_path / "*.csv")
    assert _usd(bill) == 380
    assert [one.message for one in bill.findings] == [
        "two files tell 10 days apart: $200.00 in the older, $180.00 in the newer; both count, for neither SKUs nor "
        "dollars are alike: take away the file that is not current, bill-a.csv or bill-b.csv"
    ]


def test_a_renamed_service_of_the_same_days_sums_counts_once(tmp_path: Path) -> None:
    """Dollars moved between nodes, and the day's sum is the same: it is the whole again."""
    old = [_line(10, usd, node) for usd, node in (("20", "i-1"), ("30", "i-2"))]
    new = [_line(10, usd, node, ServiceName="Elastic Compute") for usd, node in (("30", "i-1"), ("20", "i-2"))]
    write_export(tmp_path / "bill-a.csv", old, age=2)
    write_export(tmp_path / "bill-b.csv", new, age=1)
    bill = _read(tmp_path / "*.csv")
    assert (_usd(bill), bill.findings) == (Decimal(50), ())


def test_lines_that_no_bill_can_hold_twice_are_told_nothing_of(tmp_path: Path) -> None:
    """A refund and a correction of nodes and hours of the older file, under another service's name: they add."""
    write_export(tmp_path / "focus-2026-11-12.csv", [_line(10, "20", f"i-{n}") for n in range(5)])
    refund = _line(10, "-3", "i-1", ServiceName="Credits", ChargeCategory="Credit")
    correction = _line(10, "-2", "i-2", ServiceName="Amazon EC2", ChargeClass="Correction")
    write_export(tmp_path / "focus-2026-11-13.csv", [refund, correction])
    bill = _read(tmp_path / "*.csv")
    assert (_usd(bill), bill.findings) == (Decimal(95), ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("202611100600/1b2c/part_0.csv", "202611110600/0a1b/part_0.csv", id="a folder a run, by its time"),
        pytest.param("1b2c/part_0.csv", "0a1b/part_0.csv", id="a folder a run without a time"),
        pytest.param("focus_77.csv", "focus_1b2c-9.csv", id="a file a run"),
    ],
)
def test_of_azures_runs_over_a_period_the_newest_counts(tmp_path: Path, old: str, new: str) -> None:
    """The month to date twice, whose lines have nothing in common any more: the later run alone, month by month."""
    for age, name, resource, usd in ((2, old, "/vm/a", "158.40"), (1, new, "/VM/A", "192.00")):
        rows = [_line(day, usd, resource) for day in range(1, 11)]
        write_export(tmp_path / "focus" / "20261101-20261130" / name, rows, age=age)
    october = _line(1, "5", ChargePeriodStart="2026-10-30T00:00:00Z", ChargePeriodEnd="2026-10-31T00:00:00Z")
    write_export(tmp_path / "focus" / "20261001-20261031" / old, [october], age=9)
    assert _usd(_read(tmp_path / "**" / "*.csv")) == Decimal(1925)


def test_azures_manifest_names_the_files_beside_it(tmp_path: Path) -> None:
    """By the newest run's manifest, wherever the container was copied to."""
    for age, run in ((2, "202611100600/1b2c"), (1, "202611110600/0a1b")):
        folder = tmp_path / "focus" / "20261101-20261130" / run
        write_export(folder / "part_0_0001.csv", [_line(day, "192", f"vm-{age}") for day in range(1, 11)], age=age)
        name = f"exports/focus/20261101-20261130/{run}/part_0_0001.csv"
        (folder / "manifest.json").write_text(json.dumps({"blobs": [{"blobName": name, "byteCount": 1}]}))
    assert _usd(_read(tmp_path / "**" / "*")) == 1920


def test_a_bill_is_another_when_a_file_a_manifest_or_its_rules_change(export: Path) -> None:
    """And the same while nothing does."""
    pattern = str(export / "data" / "**" / "*.csv")
    words = [FocusBills(pattern, Rules()).files().word for _ in range(2)]
    words.append(FocusBills(pattern, Rules(cluster="other")).files().word)
    os.utime(export / "metadata" / MONTH / "20261113T060000Z-b" / "focus-Manifest.json", (1, 1))
    words.append(FocusBills(pattern, Rules()).files().word)
    write_export(export / "data" / MONTH / "20261114T060000Z-d" / "focus-00001.csv", [_line(1, "1")])
    words.append(FocusBills(pattern, Rules()).files().word)
    assert [words.index(word) for word in words] == [0, 0, 2, 3, 4]
