"""Exports that are not whole, overlap, or are written as nobody should: refused, told, or counted once."""

import csv
import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.errors import BadInput, Unavailable
from pilotlight.facts.money.bill import Bill

duckdb = pytest.importorskip("duckdb")

START, END = datetime(2026, 10, 1, tzinfo=UTC), datetime(2027, 2, 1, tzinfo=UTC)
MONTH = "BILLING_PERIOD=2026-11"
Row = dict[str, str]


def _row(since: str = "2026-11-02T00:00:00Z", until: str = "2026-11-02T01:00:00Z", **fields: str) -> Row:
    return {
        "BilledCost": "10", "EffectiveCost": "10", "ChargePeriodStart": since, "ChargePeriodEnd": until,
        "ResourceId": "i-0abcdef01", "ServiceName": "EC2", "Tags": '{"team": "nlp"}', **fields,
    }  # fmt: skip


def _text(rows: Sequence[Row], path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    return path.read_bytes()


def _read(where: Path) -> Bill:
    return FocusBills(str(where), Rules()).read(START, END)


def _usd(bill: Bill) -> Decimal:
    return sum((row.usd for row in bill.days), Decimal(0))


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.9999])
def test_a_packed_file_that_is_cut_off_is_no_bill(tmp_path: Path, share: float) -> None:
    """DuckDB would read what is there of it, and say nothing: its dollars are not counted, and people are told."""
    rows = [_row(ResourceId=f"i-{n:010x}", BilledCost=f"{n}.01") for n in range(5000)]
    packed = gzip.compress(_text(rows, tmp_path / "a.csv"))
    (tmp_path / "b.csv.gz").write_bytes(packed)
    assert _usd(_read(tmp_path / "b.csv.gz")) == sum(Decimal(row["BilledCost"]) for row in rows)
    (tmp_path / "b.csv.gz").write_bytes(packed[: int(len(packed) * share)])
    bill = _read(tmp_path / "b.csv.gz")
    assert (bill.days, bill.findings[0].message) == ((), "cannot be read: b.csv.gz is cut off; write it again")
    with pytest.raises(BadInput, match=r"b\.csv\.gz is cut off"):
        FocusBills(str(tmp_path / "b.csv.gz"), Rules()).read_nodes(START, END)


def test_a_file_that_grows_is_refused_or_counts_whole_lines(tmp_path: Path) -> None:
    """Whatever its last line lacks, no part of an amount is counted."""
    rows = [_row(BilledCost=f"{n}.25", ResourceId=f"i-{n:010x}") for n in range(1, 4)]
    whole = _text(rows, tmp_path / "a.csv")
    sums = {sum((Decimal(row["BilledCost"]) for row in rows[:n]), Decimal(0)) for n in range(4)}
    for end in range(len(whole) - 120, len(whole), 7):
        (tmp_path / "a.csv").write_bytes(whole[:end])
        assert _usd(_read(tmp_path / "a.csv")) in sums


def test_a_manifest_that_names_a_file_which_is_not_there_is_waited_for(tmp_path: Path) -> None:
    """Half of a month is no bill: it is read once the file is there."""
    names = [f"s3://b/data/{MONTH}/x-0000{n}.csv" for n in (1, 2)]
    _text([_row()], tmp_path / "data" / MONTH / "x-00001.csv")
    (tmp_path / "metadata" / MONTH).mkdir(parents=True)
    (tmp_path / "metadata" / MONTH / "x-Manifest.json").write_text(json.dumps({"dataFiles": names}))
    with pytest.raises(Unavailable, match=r"x-00002\.csv is not there yet"):
        _read(tmp_path / "data" / "**" / "*.csv")
    _text([_row(ResourceId="i-0abcdef02")], tmp_path / "data" / MONTH / "x-00002.csv")
    assert _usd(_read(tmp_path / "data" / "**" / "*.csv")) == 20


@pytest.mark.parametrize("names", [("a-2026-11-04.csv", "b-2026-11-05.csv"), ("b-2026-11-05.csv", "a-2026-11-04.csv")])
def test_a_day_told_by_the_hour_and_again_as_a_whole_counts_once(tmp_path: Path, names: tuple[str, str]) -> None:
    """Two exports of one account below one prefix, of which few lines are alike."""
    hours = [_row(f"2026-11-03T{n:02}:00:00Z", f"2026-11-03T{n:02}:59:59Z", BilledCost="1") for n in range(24)]
    _text(hours, tmp_path / names[0])
    _text([_row("2026-11-03T00:00:00Z", "2026-11-04T00:00:00Z", BilledCost="24")], tmp_path / names[1])
    assert _usd(_read(tmp_path / "*.csv")) == 24


@pytest.mark.parametrize("field", ["ChargePeriodStart", "ChargePeriodEnd"])
def test_a_leap_second_is_a_time(tmp_path: Path, field: str) -> None:
    """It is the one before it."""
    _text([_row("2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z", **{field: "2026-12-31T23:59:60Z"})], tmp_path / "a.csv")
    bill = _read(tmp_path / "a.csv")
    assert (_usd(bill), [row.day.isoformat() for row in bill.days]) == (Decimal(10), ["2026-12-31"])


TAGS = {
    "a struct": "{'team': 'nlp', 'env': 'x'}",
    "a list of maps": "[MAP {'key': 'team', 'value': 'nlp'}]",
    "a list with more beside": "[{'key': 'team', 'value': 'nlp', 'inherited': true}]",
    "two spellings": "MAP {'Team': 'other', 'team': 'nlp'}",
    "a list as text": """'[{"key": "team", "value": "nlp"}, {"key": "team", "value": "x"}, {"key": "env"}, 7]'""",
    "two spellings, one blank": "MAP {'team': '', 'Team': 'nlp'}",
}


@pytest.mark.parametrize("tags", TAGS.values(), ids=TAGS)
def test_tags_of_any_shape_name_the_team(tmp_path: Path, tags: str) -> None:
    """In amounts of eighteen places."""
    file = tmp_path / "a.parquet"
    duckdb.sql(
        f"""COPY (SELECT 0.000000000000999999::DECIMAL(38, 18) AS BilledCost, TIMESTAMP '2026-11-02' AS
        ChargePeriodStart, TIMESTAMP '2026-11-03' AS ChargePeriodEnd, {tags} AS Tags) TO '{file}' (FORMAT parquet)"""
    )
    (row,) = _read(file).days
    assert (row.team, row.usd) == ("nlp", Decimal("1E-12"))


@pytest.mark.parametrize("column", ["EffectiveCost", "ListCost"])
def test_an_amount_that_is_no_number_is_never_what_is_billed(tmp_path: Path, column: str) -> None:
    """A node under a plan is billed at $0: its day is in doubt, and the lines beside it count."""
    rows = [
        _row(BilledCost="0", ListCost="9", CommitmentDiscountStatus="Used", ResourceId="i-0abcdef02"),
        _row(ListCost="12"),
        _row(ListCost="", EffectiveCost=""),
    ]
    rows[0][column] = "1,234.50"
    _text(rows, tmp_path / "a.csv")
    bill = _read(tmp_path / "a.csv")
    assert [one.message for one in bill.findings] == ["1 row: EffectiveCost or ListCost is no number"]
    assert (bill.doubtful, _usd(bill)) == ((datetime(2026, 11, 2, tzinfo=UTC).date(),), Decimal(20))


def _zst(text: bytes) -> bytes:
    """A frame of zstd with one block as it is."""
    size = len(text).to_bytes(4, "little")
    return b"\x28\xb5\x2f\xfd\xa0" + size + (len(text) << 3 | 1).to_bytes(3, "little") + text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_a_zst_with_wide_text_is_refused_with_what_to_do(tmp_path: Path, encoding: str) -> None:
    """In UTF-8 it is read; else one line says how to write it."""
    text = _text([_row()], tmp_path / "a.csv")
    (tmp_path / "b.csv.zst").write_bytes(_zst(text))
    assert _usd(_read(tmp_path / "b.csv.zst")) == 10
    (tmp_path / "b.csv.zst").write_bytes(_zst(text.decode().encode(encoding)))
    (told,) = [one.message for one in _read(tmp_path / "b.csv.zst").findings]
    assert told.endswith("; a .zst must hold text in UTF-8: write it so, or packed by gzip")
    assert "\n" not in told
