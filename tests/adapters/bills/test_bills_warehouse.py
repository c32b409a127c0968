"""Exports in BigQuery and Athena: one SQL text in three dialects, and queries that are submitted, waited for and paged.

No warehouse was called: what the local servers answer is written after the services' own references (jobs.query and
jobs.getQueryResults; StartQueryExecution, GetQueryExecution and GetQueryResults). DuckDB runs the third dialect.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from answering import Answer, answering
from aws_server import KEYS

from pilotlight.adapters.bills import athena, bigquery, warehouse
from pilotlight.adapters.bills.athena import AthenaBills
from pilotlight.adapters.bills.bigquery import BigQueryBills
from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.adapters.bills.focus_columns import POOL_TAGS, TEAM_TAGS
from pilotlight.codec.policy_file import read_policy
from pilotlight.connections import bills_at
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.errors import BadInput, BadRequest, Forbidden, Unavailable
from pilotlight.facts.money.bill import Bill
from pilotlight.facts.money.money_policy import BillScope, CostBasis
from pilotlight.settings import Settings
from pilotlight.world.world_clock import WallClock

duckdb = pytest.importorskip("duckdb")
sqlglot = pytest.importorskip("sqlglot")
import bill_sql  # noqa: E402  It needs sqlglot.

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
BASES: tuple[CostBasis, ...] = ("list", "billed", "effective")
TABLE = "acme-billing.export.focus"
WHERE = "eu-west-1/primary/billing.focus"
SCOPE = BillScope(tags={"eks:cluster-name": "ml"}, shared=Decimal("0.25"))
COLUMNS = {
    "BilledCost": "DOUBLE", "BillingCurrency": "VARCHAR", "ChargeCategory": "VARCHAR", "ServiceName": "VARCHAR",
    "SubAccountId": "VARCHAR", "BillingAccountId": "VARCHAR", "ChargeDescription": "VARCHAR",
    "ChargePeriodStart": "TIMESTAMP", "ChargePeriodEnd": "TIMESTAMP", "Tags": "MAP(VARCHAR, VARCHAR)",
    "ResourceId": "VARCHAR", "EffectiveCost": "DOUBLE", "ListCost": "DOUBLE", "CommitmentDiscountId": "VARCHAR",
    "CommitmentDiscountStatus": "VARCHAR",
}  # fmt: skip


def _row(day: int, usd: str | None, tags: Mapping[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    """A line of an export."""
    at = datetime(2026, 11, day, tzinfo=UTC)
    return {
        "BilledCost": usd, "BillingCurrency": "USD", "ChargeCategory": "Usage", "ServiceName": "EC2",
        "SubAccountId": "1", "BillingAccountId": "9", "ChargeDescription": "p4d.24xlarge by the hour",
        "ChargePeriodStart": at, "ChargePeriodEnd": at + timedelta(days=1), "Tags": dict(tags or {}),
        "ResourceId": None, "EffectiveCost": usd, "ListCost": usd, "CommitmentDiscountId": None,
        "CommitmentDiscountStatus": None, **fields,
    }  # fmt: skip


PLAN = {"CommitmentDiscountId": "sp-1"}
OURS = {"eks:cluster-name": "ml", "eks:nodegroup-name": "gpu-a100"}
EXPORT = [
    *(_row(day, "786.400000001", {**OURS, "team": "nlp" if day % 2 else "cv"}) for day in range(1, 11)),
    *(_row(day, "250", ServiceName="RDS") for day in range(1, 11)),
    *(_row(day, "0.0000004", OURS, ServiceName="SQS") for day in range(1, 11)),
    _row(3, "12.5", OURS, ChargeDescription="$0.09 per GB - data transfer out"),
    _row(4, "-3.25", OURS, ChargeCategory="Credit", BillingCurrency=None),
    _row(5, None, OURS),
    _row(6, "7", {"eks:cluster-name": "web"}),
    _row(7, "100", OURS, BillingCurrency="EUR"),
    _row(1, "90", OURS, ChargeCategory="Purchase", ChargePeriodEnd=END),
    _row(8, "5", OURS, ChargePeriodStart=None),
    _row(9, "1", OURS, ChargePeriodStart=END),
    _row(2, "8", OURS, ResourceId="arn:aws:ec2:eu-west-1:1:instance/i-0abc1234567890def"),
    _row(2, "9", OURS, ResourceId="i-0abc1234"),
    _row(2, "2", OURS, ResourceId="//compute.googleapis.com/projects/p/zones/z/instances/gke-n-1"),
    _row(2, "3", OURS, ResourceId="vol-0abc1234"),
    _row(2, "0", OURS, EffectiveCost="500.25", ListCost="786.5", **PLAN, CommitmentDiscountStatus="Used"),
    _row(2, "0", OURS, EffectiveCost="20.5", ListCost=None, **PLAN, CommitmentDiscountStatus="Unused"),
    _row(2, "520.75", OURS, EffectiveCost="0", ListCost="0", **PLAN, ChargeCategory="Purchase"),
]
"""Two services, a credit, data that was moved, another cluster's, euros, fees, a plan, and what cannot be counted."""


def _rules(scope: BillScope | None = SCOPE) -> Rules:
    return Rules("ml", scope, (), {"gpu-a100": "a100"})


def _answered(rows: Sequence[Mapping[str, Any]], tags: Sequence[str] = tuple(SCOPE.tags)) -> list[tuple[Any, ...]]:
    """What DuckDB makes of an export by the source of all dialects, each value as warehouses send it: as text."""
    asked = warehouse.query("athena", "export", tags, START, END)
    text = bill_sql.SOURCE.read_text()
    for key in ("tag_1", "tag_2", "tag_3", "tag_4"):
        text = text.replace(
            f"{{{key}}}", dict(zip(("tag_1", "tag_2", "tag_3", "tag_4"), tags, strict=False)).get(key, "")
        )
    text = text.replace("{export}", "export").replace("{start}", f"{START}").replace("{end}", f"{END}")
    assert "{" not in asked.text + text.partition("WITH")[2]
    with duckdb.connect() as db:
        db.execute("SET TimeZone='UTC'")
        db.execute(f"CREATE TABLE export ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
        values = [[_plain(row[name]) for name in COLUMNS] for row in rows]
        db.executemany(f"INSERT INTO export VALUES ({', '.join('?' * len(COLUMNS))})", values)
        return [tuple(None if v is None else str(v) for v in row) for row in db.execute(text).fetchall()]


def _plain(value: Any) -> Any:
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else value


def _of_file(rows: Sequence[Mapping[str, Any]], folder: Path, scope: BillScope | None = SCOPE) -> Bill:
    """The bill of the same lines as a file."""
    with (folder / "bill.csv").open("w", newline="") as file:
        out = csv.DictWriter(file, list(COLUMNS))
        out.writeheader()
        out.writerows({**row, "Tags": json.dumps(row["Tags"])} for row in rows)
    return FocusBills(str(folder / "bill.csv"), _rules(scope)).read(START, END)


def _sums(bill: Bill) -> dict[tuple[Any, ...], Decimal]:
    sums: dict[tuple[Any, ...], Decimal] = defaultdict(Decimal)
    for row in bill.days:
        for basis in BASES:
            key = basis, row.day, row.team, row.pool, row.service, row.egress, row.resource, row.commitment
            sums[key] += row.amount(basis) or 0
    return {key: usd for key, usd in sums.items() if usd}


def test_what_is_shipped_is_what_the_source_comes_to() -> None:
    """Each dialect is compiled anew, and is a query that the dialect's own parser takes."""
    for dialect in bill_sql.DIALECTS:
        text = bill_sql.file_of(dialect).read_text()
        assert text == bill_sql.compiled(dialect), "run python scripts/bill_sql.py"
    for dialect, file in (("duckdb", bill_sql.SOURCE), *((d, bill_sql.file_of(d)) for d in bill_sql.DIALECTS)):
        tree = sqlglot.parse_one(file.read_text(), dialect, error_level=sqlglot.ErrorLevel.RAISE)
        assert [column.alias for column in tree.selects if column.alias][-5:] == [
            "amount", "effective", "list", "charges", "reach",
        ]  # fmt: skip
        assert len(tree.selects) == warehouse.COLUMNS


def test_a_warehouse_knows_the_tags_that_files_know() -> None:
    """Teams and pools have one list of names."""
    text = bill_sql.SOURCE.read_text()
    assert [key for key in (*TEAM_TAGS, *POOL_TAGS) if f"Tags['{key}']" not in text] == []


@contextmanager
def _bigquery(rows: Sequence[Sequence[str | None]], *, runs: int = 1, page: int = 7) -> Iterator[tuple[str, list[Any]]]:
    """A BigQuery that answers these rows in pages after ``runs`` looks at a query that still runs."""
    asked: list[Any] = []
    job = {"projectId": "acme-billing", "jobId": "job_1", "location": "EU"}

    def of(first: int) -> dict[str, Any]:
        some = [{"f": [{"v": value} for value in row]} for row in rows[first : first + page]]
        more = {"pageToken": str(first + page)} if first + page < len(rows) else {}
        return {"jobComplete": True, "jobReference": job, "totalRows": str(len(rows)), "rows": some, **more}

    def answer(path: str, body: bytes, headers: dict[str, str]) -> Answer:
        asked.append((path, json.loads(body) if body else None))
        if len(asked) <= runs:
            return 200, {"jobComplete": False, "jobReference": job}
        token = path.partition("pageToken=")[2].partition("&")[0]
        return 200, of(int(token or 0))

    with answering(answer) as address:
        yield f"http://{address}", asked


@contextmanager
def _athena(
    rows: Sequence[Sequence[str | None]], *, states: Sequence[str] = ("QUEUED", "RUNNING", "SUCCEEDED"), page: int = 7
) -> Iterator[tuple[dict[str, str], list[Any]]]:
    """An Athena that answers these rows in pages, the columns' names first, once its states are through."""
    asked: list[Any] = []
    left = list(states)
    told = [[f"column{n}" for n in range(warehouse.COLUMNS)], *rows]

    def answer(path: str, body: bytes, headers: dict[str, str]) -> Answer:
        action, what = next(v for k, v in headers.items() if k.lower() == "x-amz-target"), json.loads(body)
        asked.append((action, what))
        if action == "AmazonAthena.StartQueryExecution":
            return 200, {"QueryExecutionId": "q-1"}
        if action == "AmazonAthena.GetQueryExecution":
            state = left.pop(0) if len(left) > 1 else left[0]
            return 200, {"QueryExecution": {"Status": {"State": state, "StateChangeReason": "COLUMN_NOT_FOUND: x"}}}
        first = int(what.get("NextToken", 0))
        some = [{"Data": [{} if v is None else {"VarCharValue": v} for v in row]} for row in told[first : first + page]]
        more = {"NextToken": str(first + page)} if first + page < len(told) else {}
        return 200, {"ResultSet": {"Rows": some}, **more}

    with answering(answer) as address:
        yield {**KEYS, "AWS_ENDPOINT_URL_ATHENA": f"http://{address}"}, asked


def test_the_third_dialect_comes_to_the_sums_of_a_file(tmp_path: Path) -> None:
    """DuckDB runs the source of all dialects: dollars, horizon and doubts are those of the same lines in a file."""
    with _bigquery(_answered(EXPORT)) as (url, _):
        found = BigQueryBills(TABLE, _rules(), url=url, sleep=lambda _: None).read(START, END)
    by_file = _of_file(EXPORT, tmp_path)
    assert _sums(found) == _sums(by_file)
    assert (found.horizon, found.findings, found.doubtful, found.notes) == (
        by_file.horizon, by_file.findings, by_file.doubtful, by_file.notes,
    )  # fmt: skip
    # 10 x 786.400000001, a quarter of 10 x 250, 10 x 0.0000004, data, two fees and four resources. The credit has no
    # currency, and the bill has two.
    assert sum((row.usd for row in found.days), Decimal(0)) == Decimal("7864.00000001") + 625 + Decimal("0.000004") + (
        Decimal("12.5") + 90 + 22 + Decimal("520.75")
    )
    told = {row.commitment: (row.usd, row.effective_usd, row.list_usd) for row in found.days if row.commitment}
    assert told == {
        "used": (0, Decimal("500.25"), Decimal("786.5")), "unused": (0, Decimal("20.5"), 0),
        "fee": (Decimal("520.75"), 0, 0),
    }  # fmt: skip
    assert [row.usd for row in found.days if row.egress] == [Decimal("12.5")]


def test_a_real_export_comes_to_the_same_sums(shelf: Path, tmp_path: Path) -> None:
    """A thousand lines of a FOCUS 1.0 sample, in the warehouse's types."""
    with (shelf / "contracts" / "billing" / "focus" / "focus_1.0_sample_1000.csv").open(newline="") as file:
        raw = [{key: None if value == "NULL" else value for key, value in row.items()} for row in csv.DictReader(file)]
    rows = [
        {name: row[name] for name in COLUMNS if name != "Tags"} | {"Tags": json.loads(row["Tags"] or "{}")}
        for row in raw
    ]
    shifted = [row | {name: _november(row[name]) for name in ("ChargePeriodStart", "ChargePeriodEnd")} for row in rows]
    with _athena(_answered(shifted, ()), page=1000) as (environ, _):
        found = AthenaBills(WHERE, _rules(None), environ, sleep=lambda _: None).read(START, END)
    assert _sums(found) == _sums(_of_file(shifted, tmp_path, None))
    assert sum((row.usd for row in found.days), Decimal(0)) == sum(
        (Decimal(row["BilledCost"] or 0) for row in raw), Decimal(0)
    )


def _november(text: str | None) -> datetime:
    """A moment of September or of the first of October 2024, two years and two months later."""
    return START + (datetime.fromisoformat(f"{text}+00:00") - datetime(2024, 9, 1, tzinfo=UTC))


@pytest.mark.parametrize("name", ["bigquery", "athena"])
def test_a_query_is_waited_for_and_read_page_by_page(name: str) -> None:
    """No page is lost and none read twice; one hour asks one question, whose name stays the same."""
    rows = _answered(EXPORT)
    bills: list[Bill] = []
    names = set()
    for end in (END - timedelta(minutes=50), END - timedelta(minutes=5)):
        if name == "bigquery":
            with _bigquery(rows, runs=3) as (url, asked):
                bills.append(BigQueryBills(TABLE, _rules(), url=url, sleep=lambda _: None).read(START, end))
            names.add(asked[0][1]["requestId"])
            assert "FROM `acme-billing.export.focus`" in asked[0][1]["query"]
            assert all("location=EU" in path and "/queries/job_1" in path for path, _ in asked[1:])
            assert len(asked) == 1 + 3 + -(-len(rows) // 7) - 1
        else:
            with _athena(rows) as (environ, asked):
                bills.append(AthenaBills(WHERE, _rules(), environ, sleep=lambda _: None).read(START, end))
            names.add(asked[0][1]["ClientRequestToken"])
            assert 'FROM "billing"."focus"' in asked[0][1]["QueryString"]
            assert asked[0][1]["WorkGroup"] == "primary"
            assert len(asked) == 1 + 3 + -(-(len(rows) + 1) // 7)
    assert len(names) == 1
    assert sum(row.usd for row in bills[0].days) == sum(row.usd for row in bills[1].days) > 8000


def test_a_query_that_runs_on_is_found_again_later() -> None:
    """It is no error of the policy: whoever reads the bill is told to come back, and nothing waits for ever."""
    waited: list[float] = []
    with _bigquery([], runs=999) as (url, _), pytest.raises(Unavailable, match="asked for again later"):
        BigQueryBills(TABLE, _rules(), url=url, sleep=waited.append).read(START, END)
    with _athena([], states=["RUNNING"]) as (environ, _), pytest.raises(Unavailable, match="asked for again later"):
        AthenaBills(WHERE, _rules(), environ, sleep=waited.append).read(START, END)
    assert sum(waited) < 2 * (warehouse.WAIT_S + warehouse.PAUSES_S[-1])


REFUSALS = {
    "no right": (403, "Access Denied: Table acme", Forbidden, "bigquery.jobUser"),
    "no such table": (404, "Not found: Table acme", BadRequest, "check bigquery:PROJECT"),
    "a column that is not there": (400, "Unrecognized name: Tags", BadRequest, "Unrecognized name: Tags"),
    "over quota": (403, "Quota exceeded: too many queries", Unavailable, "Quota exceeded"),
    "down": (503, "backend", Unavailable, "503"),
}


@pytest.mark.parametrize(("status", "words", "kind", "says"), REFUSALS.values(), ids=REFUSALS)
def test_what_bigquery_refuses_says_what_to_do(status: int, words: str, kind: type[Exception], says: str) -> None:
    """A right, a name, or later."""
    with answering(lambda *_: (status, {"error": {"message": words}})) as address, pytest.raises(kind, match=says):
        BigQueryBills(TABLE, _rules(), url=f"http://{address}", sleep=lambda _: None).read(START, END)


def test_a_query_that_athena_ends_says_why() -> None:
    """With its own reason."""
    with _athena([], states=["FAILED"]) as (environ, _), pytest.raises(BadRequest, match="COLUMN_NOT_FOUND"):
        AthenaBills(WHERE, _rules(), environ, sleep=lambda _: None).read(START, END)


@pytest.mark.parametrize("row", [["2026-11-02"], ["soon", *[""] * 19], [*[""] * 15, "much", *[""] * 2, "1", None]])
def test_rows_that_cannot_be_read_are_not_counted_as_nothing(row: list[str | None]) -> None:
    """An answer that is cut or odd is asked for again."""
    with _bigquery([row]) as (url, _), pytest.raises(Unavailable, match="cannot be read"):
        BigQueryBills(TABLE, _rules(), url=url, sleep=lambda _: None).read(START, END)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("bigquery:acme", "bigquery:PROJECT.DATASET.TABLE"),
        ("bigquery:acme.a.b` WHERE 1=1 --", "bigquery:PROJECT.DATASET.TABLE"),
        ("athena:eu-west-1/primary/focus", "athena:REGION/WORKGROUP/DATABASE.TABLE"),
        ('athena:eu-west-1/primary/a"b.c', "athena:REGION/WORKGROUP/DATABASE.TABLE"),
        ("redshift:a", "bigquery:PROJECT.DATASET.TABLE or athena"),
    ],
)
def test_an_address_that_names_no_table_is_refused(address: str, says: str) -> None:
    """Nothing of it reaches a query."""
    with pytest.raises(BadInput, match=says):
        bills_at(Settings.from_environ({"PILOTLIGHT_BILLS": address}), read_policy("version: 1\n", "p"), WallClock(END))


@pytest.mark.parametrize("tags", [["a'b"], ["a\\"], ["{start}"], ["a"] * 5])
def test_a_tag_that_no_query_can_hold_is_refused(tags: list[str]) -> None:
    """Quotes and braces, or more than a query has room for."""
    with pytest.raises(BadInput, match=r"bill\.tags"):
        warehouse.query("bigquery", TABLE, tags, START, END)


def test_both_are_named_by_an_address() -> None:
    """As files are."""
    policy = read_policy("version: 1\n", "p")
    for address, kind in ((f"bigquery:{TABLE}", BigQueryBills), (f"athena:{WHERE}", AthenaBills)):
        assert isinstance(bills_at(Settings.from_environ({"PILOTLIGHT_BILLS": address}), policy, WallClock(END)), kind)
    assert bigquery.SOURCE == athena.SOURCE == "focus"
