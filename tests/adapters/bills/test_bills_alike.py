"""Lines of a bill that are alike: the same tags again and again, columns with one value, and packed text."""

import csv
import gzip
import json
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.facts.money.bill import Bill
from pilotlight.facts.money.money_policy import BillScope

duckdb = pytest.importorskip("duckdb")

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
LINE = """1.5::DOUBLE AS BilledCost, 'USD' AS BillingCurrency, TIMESTAMP '2026-11-02 10:00' AS ChargePeriodStart,
    TIMESTAMP '2026-11-02 11:00' AS ChargePeriodEnd"""


def _read(uri: Path, rules: Rules | None = None) -> Bill:
    return FocusBills(str(uri), rules or Rules()).read(START, END)


def _sums(bill: Bill, of: str) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for row in bill.days:
        sums[getattr(row, of)] += row.usd
    return dict(sums)


TEAMS = {'{"team": "a"}': "a", '{"Team": "b"}': "b", '{"team": "", "Team": "c"}': "c", "no JSON": "", None: ""}


@pytest.mark.parametrize("times", [pytest.param(1, id="each once"), pytest.param(50, id="again and again")])
def test_tags_say_the_same_however_often_they_are_there(tmp_path: Path, times: int) -> None:
    """Teams are told by each spelling of the tag, lines without one are nobody's, and none is lost."""
    tags = [text for text in TEAMS for _ in range(times)]
    duckdb.sql("CREATE OR REPLACE TEMP TABLE tagged (Tags VARCHAR)")
    duckdb.executemany("INSERT INTO tagged VALUES (?)", [[text] for text in tags])
    duckdb.sql(f"SELECT {LINE}, Tags FROM tagged").write_parquet(str(tmp_path / "a.parquet"))
    each = Decimal("1.5") * times
    assert _sums(_read(tmp_path / "a.parquet"), "team") == {"a": each, "b": each, "c": each, "": 2 * each}
    scoped = _read(tmp_path / "a.parquet", Rules(scope=BillScope(tags={"Team": "b"})))
    assert sum(row.usd for row in scoped.days) == each


@pytest.mark.parametrize("groups", [3, 1])
def test_a_column_with_one_value_in_a_file_is_no_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    """Statistics of Parquet say that all lines of a file have one service: another file, read apart or at once, has its
    own."""
    monkeypatch.setattr("pilotlight.adapters.bills.exports.MOST_GROUPS", groups)
    for name, service in (("a1", "'it''s'"), ("a2", "'S3'"), ("a3", "NULL::VARCHAR")):
        duckdb.sql(f"SELECT {LINE}, {service} AS ServiceName, '{name}' AS ResourceId FROM range(3)").write_parquet(
            str(tmp_path / f"{name}.parquet")
        )
    each = Decimal("4.5")
    assert _sums(_read(tmp_path / "a1.parquet"), "service") == {"it's": each}
    assert _sums(_read(tmp_path / "*.parquet"), "service") == {"it's": each, "S3": each, "": each}


def test_a_column_that_begins_with_one_value_has_others_too(tmp_path: Path) -> None:
    """The first group of lines of a Parquet file has one account, the second has two and lines without."""
    account = "CASE WHEN i < 2048 THEN '1' WHEN i % 2 = 0 THEN '2' END"
    rows = f"SELECT {LINE}, {account} AS ServiceName FROM range(4096) t(i) ORDER BY i"
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/a.parquet' (FORMAT PARQUET, ROW_GROUP_SIZE 2048)")
    sums = _sums(_read(tmp_path / "a.parquet"), "service")
    assert sums == {"1": Decimal(3072), "2": Decimal(1536), "": Decimal(1536)}


@pytest.mark.parametrize("said", ["x", "two\nlines", 'a "quote"', "half;semicolons;here"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_packed_text_is_read_as_it_is_unpacked(tmp_path: Path, said: str, delimiter: str) -> None:
    """Whatever stands between columns and within quotes, longer than what its dialect is told by."""
    names = ["BilledCost", "BillingCurrency", "ChargePeriodStart", "ChargePeriodEnd", "ServiceName", "Tags"]
    row = ["0.25", "USD", "2026-11-02T10:00:00Z", "2026-11-02 11:00:00", said, json.dumps({"team": "a"})]
    for path, opened in ((tmp_path / "a.csv", open), (tmp_path / "b.csv.gz", gzip.open)):
        with opened(path, "wt", newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows([names, *[row] * 30_000])
    plain, packed = (_read(tmp_path / name) for name in ("a.csv", "b.csv.gz"))
    assert (packed.days, packed.findings, packed.horizon) == (plain.days, plain.findings, plain.horizon)
    assert _sums(packed, "service") == {said: Decimal(7500)}


def test_a_packed_text_that_is_no_table_is_told_by_its_own_name(tmp_path: Path) -> None:
    """Where a remark stands before columns of no dialect the finding names the export's file."""
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("# a remark\nx;y,z|w\n" + '"1"2"";3,4|5\n' * 100)
    (finding,) = _read(tmp_path / "a.csv.gz").findings
    assert "/a.csv.gz" in finding.message


@pytest.mark.parametrize(
    "time",
    [
        "2026-11-02 23:00",
        "2026-11-02T23:00:00.5",
        "2026-11-02 22:59:60.5",
        " 2026-11-02 23:00:00.5",
        "2026/11/02 23:00:00.5",
    ],
)
def test_a_time_without_a_zone_is_utc_whatever_zone_the_line_before_names(tmp_path: Path, time: str) -> None:
    """A line that names New York's time moves no later line of the file to another day."""
    lines = [("2026-11-05 10:00:00 America/New_York", "2026-11-05T16:00:00Z", "1"), (time, "2026-11-02T23:30:00Z", "2")]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        written = csv.writer(file)
        written.writerow(["ChargePeriodStart", "ChargePeriodEnd", "BilledCost", "BillingCurrency"])
        written.writerows([*line, "USD"] for line in lines)
    days = {row.day.isoformat(): row.usd for row in _read(tmp_path / "a.csv").days}
    assert days == {"2026-11-05": Decimal(1), "2026-11-02": Decimal(2)}
