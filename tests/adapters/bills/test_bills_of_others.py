"""Bills that no one here wrote, and sixteen ways to write one, each held against sums over raw lines."""

import csv
import gzip
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.facts.money.bill import Bill
from pilotlight.facts.money.money_policy import BillScope, CostBasis

duckdb = pytest.importorskip("duckdb")

Row = dict[str, Any]
START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
CLUSTERS = ("ml", "web")
BASES: tuple[CostBasis, ...] = ("list", "billed", "effective")
COSTS = ("ListCost", "BilledCost", "EffectiveCost")
CENT = Decimal("0.01")


def test_the_focus_project_s_own_sample_comes_to_its_sums(shelf: Path) -> None:
    """A thousand lines of several providers, summed by DuckDB alone: equal by day, service and basis, to the last
    digit."""
    file = shelf / "contracts" / "billing" / "focus" / "focus_1.0_sample_1000.csv"
    if not file.exists():
        pytest.skip("the sample is not there")
    asked = f"""SELECT CAST(ChargePeriodStart[:10] AS DATE), COALESCE(ServiceName, ''),
            sum(CAST(ListCost AS DECIMAL(38, 15))), sum(CAST(BilledCost AS DECIMAL(38, 15))),
            sum(CAST(EffectiveCost AS DECIMAL(38, 15)))
        FROM read_csv('{file}', all_varchar=true, nullstr='NULL') GROUP BY ALL"""  # fmt: skip
    raw = {
        (basis, *row[:2]): usd
        for row in duckdb.sql(asked).fetchall()
        for basis, usd in zip(BASES, row[2:], strict=True)
    }
    bill = FocusBills(str(file), Rules()).read(datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC))
    ours: dict[tuple[CostBasis, date, str], Decimal] = defaultdict(Decimal)
    for row in bill.days:
        for basis in BASES:
            ours[basis, row.day, row.service] += row.amount(basis) or 0
    assert dict(ours) == raw
    assert bill.findings == ()
    assert sum(raw.values()) > 0


def _line(day: int, usd: str, node: str, cluster: str = "ml", **fields: Any) -> Row:
    return {
        "BilledCost": usd, "BillingCurrency": "USD", "ChargeCategory": "Usage", "ChargeClass": None,
        "ServiceName": "Amazon EC2", "SubAccountId": "1", "ChargePeriodStart": datetime(2026, 11, day, tzinfo=UTC),
        "ChargePeriodEnd": datetime(2026, 11, day + 1, tzinfo=UTC), "ResourceId": f"i-0abc1234{node}",
        "ChargeDescription": "p5.48xlarge per hour", "Tags": {"eks:cluster-name": cluster, "team": "nlp"},
        "EffectiveCost": usd, "ListCost": usd, "CommitmentDiscountId": None, "CommitmentDiscountStatus": None, **fields,
    }  # fmt: skip


FIRST = [
    _line(day, f"{98.32 + day}", f"{node}", cluster) for day in range(1, 8) for node, cluster in enumerate(CLUSTERS)
]
"""A week of a node of each of two clusters."""

PLAN = {"CommitmentDiscountId": "sp-1"}
USED = {**PLAN, "CommitmentDiscountStatus": "Used"}
COMMITMENT = [
    _line(day, "0", "8", cluster, ListCost="786.51", EffectiveCost=f"512.{day:02}", **USED)
    for day in range(1, 21) for cluster in CLUSTERS
] + [
    _line(2, "0", "", EffectiveCost="31.33", ListCost="0", CommitmentDiscountStatus="Unused", **PLAN),
    _line(2, "10900.01", "", EffectiveCost="0", ListCost="0", ChargeCategory="Purchase", **PLAN),
]  # fmt: skip
"""Twenty days of a node of each cluster under a Savings Plan, what nothing used of it, and its fee."""

SCENARIOS: dict[str, tuple[Sequence[Row], Sequence[Row]]] = {
    "a re-export": ([], [*FIRST[:-1], {**FIRST[-1], "BilledCost": "77.01"}]),
    "tags that are back-filled": ([], [{**row, "Tags": {**row["Tags"], "env": "prod"}} for row in FIRST]),
    "a refund": (FIRST, [_line(3, "-50.5", "0", ChargeCategory="Credit")]),
    "a late line": (FIRST, [_line(5, "12.34", "9")]),
    "one file alone": (FIRST, []),
    "a commitment": (FIRST, COMMITMENT),
}
"""The lines of the first file that still count, and those of the second."""


def _csv(rows: Sequence[Row], path: Path, spelt: Callable[[str], str], prefix: str, **shapes: Any) -> None:
    with path.with_suffix(".csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow([spelt(name) for name in rows[0]])
        for row in rows:
            tags = {f"{prefix}{key}": value for key, value in row["Tags"].items()}
            at = {name: f"{row[name]:{shapes.get('time', '%Y-%m-%dT%H:%M:%SZ')}}" for name in row if "Period" in name}
            told = [{"Key": key, "Value": value} for key, value in tags.items()] if "listed" in shapes else tags
            own = {**row, **at, "Tags": json.dumps(told), "BillingCurrency": shapes.get("currency", "USD")}
            out.writerow(["NULL" if value is None else value for value in own.values()])


def _as(name: str, change: Callable[[bytes], bytes], write: "Writer") -> "Writer":
    """What another writes, under another name and as other bytes."""

    def rewrite(rows: Sequence[Row], path: Path) -> None:
        write(rows, path)
        (written,) = path.parent.glob(f"{path.name}.*")
        path.with_name(f"{path.name}{name}").write_bytes(change(written.read_bytes()))
        written.unlink()

    return rewrite


def _parquet(rows: Sequence[Row], path: Path, tags: str, prefix: str) -> None:
    def told(row: Row) -> Any:
        named = {f"{prefix}{key}": value for key, value in row["Tags"].items()}
        if tags == "text":
            return json.dumps(named)
        listed = [{"key": key, "value": value} for key, value in named.items()]
        return json.dumps(listed) if tags == "list in text" else named if tags == "map" else listed

    kinds = {
        "text": "VARCHAR",
        "list in text": "VARCHAR",
        "map": "MAP(VARCHAR, VARCHAR)",
        "list": "STRUCT(key VARCHAR, value VARCHAR)[]",
    }
    columns = {name: "TIMESTAMP" if "Period" in name else "VARCHAR" for name in rows[0]} | {"Tags": kinds[tags]}
    with duckdb.connect() as db:
        db.execute(f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")
        for row in rows:
            at = {name: row[name].replace(tzinfo=None) for name in row if "Period" in name}
            own = {**row, **at, "Tags": duckdb_map(told(row)) if tags == "map" else told(row)}
            db.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", list(own.values()))
        db.execute(f"COPY t TO '{path.with_suffix('.parquet')}' (FORMAT parquet)")


def duckdb_map(values: dict[str, str]) -> dict[str, list[str]]:
    """A map as DuckDB takes one of Python."""
    return {"key": list(values), "value": list(values.values())}


def _utf16(text: bytes, encoding: str = "utf-16") -> bytes:
    return text.decode().encode(encoding)


def _snake(name: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()


Writer = Callable[[Sequence[Row], Path], None]
DIALECTS: dict[str, Writer] = {
    "CSV": lambda rows, path: _csv(rows, path, str, ""),
    "CSV in small letters": lambda rows, path: _csv(rows, path, str.lower, ""),
    "CSV with underscores": lambda rows, path: _csv(rows, path, _snake, ""),
    "AWS's prefix of tags": lambda rows, path: _csv(rows, path, str, "user:"),
    "the prefix of AWS's older export": lambda rows, path: _csv(rows, path, str, "resourceTags/user:"),
    "times without seconds": lambda rows, path: _csv(rows, path, str, "", time="%Y-%m-%dT%H:%MZ"),
    "a currency in small letters": lambda rows, path: _csv(rows, path, str, "", currency="usd"),
    "Parquet with a map": lambda rows, path: _parquet(rows, path, "map", ""),
    "Parquet with a list": lambda rows, path: _parquet(rows, path, "list", "user:"),
    "Parquet with text": lambda rows, path: _parquet(rows, path, "text", ""),
    "CSV with a list as text": lambda rows, path: _csv(rows, path, str, "user:", listed=True),
    "Parquet with a list as text": lambda rows, path: _parquet(rows, path, "list in text", ""),
}
DIALECTS |= {
    ".PARQUET": _as(".PARQUET", bytes, DIALECTS["Parquet with a map"]),
    ".CSV.GZ": _as(".CSV.GZ", gzip.compress, DIALECTS["CSV"]),
    "UTF-16": _as(".txt", _utf16, DIALECTS["CSV"]),
    "UTF-16 without a mark": _as(".txt", lambda text: _utf16(text, "utf-16-le"), DIALECTS["CSV"]),
    "UTF-16 the other way without a mark": _as(".txt", lambda text: _utf16(text, "utf-16-be"), DIALECTS["CSV"]),
    "UTF-16, packed": _as(".csv.gz", lambda text: gzip.compress(_utf16(text)), DIALECTS["CSV"]),
}


def _bill(folder: Path, cluster: str) -> Bill:
    rules = Rules(cluster, BillScope(tags={"eks:cluster-name": "{cluster}"}))
    return FocusBills(str(folder / "*"), rules).read(START, END)


def _sums(bill: Bill) -> dict[tuple[Any, ...], Decimal]:
    sums: dict[tuple[Any, ...], Decimal] = defaultdict(Decimal)
    for row in bill.days:
        for basis in BASES:
            sums[basis, row.day, row.team, row.resource, row.commitment] += row.amount(basis) or 0
    return dict(sums)


def _worked(rows: Sequence[Row], cluster: str) -> dict[tuple[Any, ...], Decimal]:
    """The sums that DuckDB makes of the lines by itself."""
    with duckdb.connect() as db:
        db.execute("CREATE TABLE t (day DATE, node VARCHAR, of VARCHAR, list DECIMAL(38, 15), billed DECIMAL(38, 15), "
                   "effective DECIMAL(38, 15))")  # fmt: skip
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", [
            [row["ChargePeriodStart"].date(), row["ResourceId"], _of(row), row["ListCost"], row["BilledCost"],
             row["EffectiveCost"]]
            for row in rows if row["Tags"]["eks:cluster-name"] == cluster
        ])  # fmt: skip
        asked = "SELECT day, node, of, sum(list), sum(billed), sum(effective) FROM t GROUP BY ALL"
        return {
            (basis, day, "nlp", node, of): usd.quantize(CENT)
            for day, node, of, *sums in db.execute(asked).fetchall()
            for basis, usd in zip(BASES, sums, strict=True)
        }


def _of(row: Row) -> str:
    if row["CommitmentDiscountStatus"]:
        return str(row["CommitmentDiscountStatus"]).lower()
    return "fee" if row["CommitmentDiscountId"] else ""


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_eighteen_dialects_come_to_the_sums_of_their_lines(tmp_path: Path, dialect: str, scenario: str) -> None:
    """Written again, with tags back-filled, a refund, a late line or a plan, for two clusters: to the cent by basis,
    day and node."""
    stays, second = SCENARIOS[scenario]
    DIALECTS[dialect](FIRST, tmp_path / "bill-2026-11-08")
    if second:
        DIALECTS[dialect](second, tmp_path / "bill-2026-11-09")
    for cluster in CLUSTERS:
        assert _sums(_bill(tmp_path, cluster)) == _worked([*stays, *second], cluster)


@pytest.mark.parametrize("tags", ["map", "list", "text", "list in text"])
def test_a_csv_beside_parquet_is_one_bill(tmp_path: Path, tags: str) -> None:
    """Two parts of one export, each in its own format."""
    _parquet(FIRST[:7], tmp_path / "bill-1", tags, "")
    _csv(FIRST[7:], tmp_path / "bill-2", _snake, "user:")
    found = sum((sum(_sums(_bill(tmp_path, cluster)).values()) for cluster in CLUSTERS), Decimal(0))
    assert found == sum((Decimal(row[name]) for row in FIRST for name in COSTS), Decimal(0))


@pytest.mark.parametrize(("name", "usd"), [("bill-2", "512.25"), ("bill-1", "7")], ids=["a part", "written again"])
def test_parts_of_two_formats_are_told_apart_by_their_numbers(tmp_path: Path, name: str, usd: str) -> None:
    """A node under a plan in one, its disk in the other: both count, unless the number is the same."""
    _csv([_line(5, "0", "1", EffectiveCost="505.25", SkuId="plan")], tmp_path / "bill-1", str, "")
    os.utime(tmp_path / "bill-1.csv", (1_700_000_000, 1_700_000_000))
    _parquet([_line(5, "7", "1", SkuId="disk")], tmp_path / name, "map", "")
    assert sum(row.amount("effective") or 0 for row in _bill(tmp_path, "ml").days) == Decimal(usd)


@pytest.mark.parametrize("name", ["bill-1", "bill-2"])
def test_the_whole_again_in_another_format_counts_once(tmp_path: Path, name: str) -> None:
    """Under the same number or the next."""
    _csv(FIRST, tmp_path / "bill-1", str, "")
    os.utime(tmp_path / "bill-1.csv", (1_700_000_000, 1_700_000_000))
    _parquet(FIRST, tmp_path / name, "map", "")
    assert _sums(_bill(tmp_path, "ml")) == _worked(FIRST, "ml")
