"""Lines of a bill that are alike: the same tags again and again, columns with one value, and packed text."""

import csv
import gzip
import json
import subprocess
import sys
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


AMOUNTS = {
    "999.999999999999999": "999.999999999999999", "1000": "1000", "-12345678.5": "-12345678.5",
    "0.0000000000000005": "1E-15",
    "12.3456789012345678": "12.345678901234568", "1e-3": "0.001", "1E2": "100", "1e22": "1E+22",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_amount_in_text_keeps_fifteen_places_however_large_it_is(tmp_path: Path, kind: str) -> None:
    """A narrow decimal is read where one holds it, a wide one elsewhere: both round to the same digits."""
    lines = "UNION ALL ".join(
        f"SELECT * REPLACE ('{text}' AS BilledCost, 's{n}' AS ServiceName) FROM line " for n, text in enumerate(AMOUNTS)
    )
    query = f"WITH line AS (SELECT {LINE}, '' AS ServiceName) {lines}"
    duckdb.sql(f"COPY ({query}) TO '{tmp_path}/a.{kind}'")
    sums = _sums(_read(tmp_path / f"a.{kind}"), "service")
    assert [sums[f"s{n}"] for n in range(len(AMOUNTS))] == [Decimal(text) for text in AMOUNTS.values()]


@pytest.mark.parametrize("large", ["0.1", "1.5", "2500.5"])
@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "DECIMAL(9, 2)", "DECIMAL(38, 15)", "VARCHAR"])
def test_a_line_without_another_basis_has_what_is_billed_whatever_the_type(
    tmp_path: Path, kind: str, large: str
) -> None:
    """Amounts of every type are added up exactly, and EffectiveCost is BilledCost where a line does not tell it."""
    told = f"CASE WHEN i = 0 THEN {large}::{kind} END AS EffectiveCost"
    rows = f"SELECT * REPLACE ({large}::{kind} AS BilledCost), {told} FROM (SELECT {LINE}), range(3) t(i)"
    duckdb.sql(rows).write_parquet(str(tmp_path / "a.parquet"))
    days = _read(tmp_path / "a.parquet").days
    assert [(row.usd, row.effective_usd) for row in days] == [(3 * Decimal(large),) * 2]


@pytest.mark.parametrize(
    ("billed", "effective", "why"),
    [("'nan'", "1", "BilledCost is missing or no number"), ("1", "'nan'", "EffectiveCost or ListCost is no number")],
)
def test_no_number_among_small_ones_is_told(tmp_path: Path, billed: str, effective: str, why: str) -> None:
    """Statistics of Parquet leave NaN out: a line with one is in doubt, and not $0."""
    rows = f"""SELECT * REPLACE (CASE WHEN i = 2 THEN {billed} ELSE '1' END::DOUBLE AS BilledCost),
        CASE WHEN i = 2 THEN {effective} ELSE '1' END::DOUBLE AS EffectiveCost FROM (SELECT {LINE}), range(3) t(i)"""
    duckdb.sql(rows).write_parquet(str(tmp_path / "a.parquet"))
    bill = _read(tmp_path / "a.parquet")
    assert [finding.message for finding in bill.findings] == [f"1 row: {why}"]
    assert sum(row.usd for row in bill.days) == 2


def test_a_machine_is_found_behind_many_lines_of_none(tmp_path: Path) -> None:
    """Only a file in which no resource may be a machine is read without looking for one in each line."""
    resource = "CASE WHEN i = 9999 THEN 'i-0abc12345def67890' ELSE 'i-' || i END"
    duckdb.sql(f"SELECT {LINE}, {resource} AS ResourceId FROM range(10000) t(i)").write_parquet(
        str(tmp_path / "a.parquet")
    )
    assert _sums(_read(tmp_path / "a.parquet"), "resource") == {"i-0abc12345def67890": Decimal("1.5"), "": 14998.5}


def test_one_service_in_other_letters_keeps_them(tmp_path: Path) -> None:
    """Texts that statistics of Parquet say of all lines are read as lines have them."""
    service = "é日 a\\b"
    duckdb.sql(f"SELECT {LINE}, '{service}' AS ServiceName FROM range(3)").write_parquet(str(tmp_path / "a.parquet"))
    assert set(_sums(_read(tmp_path / "a.parquet"), "service")) == {service}


READ = """
import sys
from datetime import UTC, datetime
from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.decide.money.bills.bill_scope import Rules
assert FocusBills(sys.argv[1], Rules()).read(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)).days
print(sorted({"http.client", "ssl", "boto3", "pilotlight.adapters.object_store"} & sys.modules.keys()))
"""


def test_a_bill_on_this_machine_is_read_without_a_client_of_buckets(tmp_path: Path) -> None:
    """Its import would be half of a small bill's reading."""
    duckdb.sql(f"SELECT {LINE}").write_parquet(str(tmp_path / "a.parquet"))
    done = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path / "a.parquet")], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
