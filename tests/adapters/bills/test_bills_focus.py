"""FOCUS exports as a bill: real exports' oddities, what cannot be counted, and exports that are written again."""

import csv
import gzip
import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from answering import answering
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.adapters.object_store import Objects
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.errors import BadInput, Unavailable
from pilotlight.facts.money.bill import Bill

duckdb = pytest.importorskip("duckdb")

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
ROW = {
    "BilledCost": "1.50", "BillingCurrency": "USD", "ChargeCategory": "Usage", "ServiceName": "EC2",
    "ChargePeriodStart": "2026-11-02T10:00:00Z", "ChargePeriodEnd": "2026-11-02T11:00:00Z",
    "Tags": '{"team": "research", "eks:nodegroup-name": "gpu-a100"}',
}  # fmt: skip


def _write(path: Path, *rows: Mapping[str, str | None]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(names)
        out.writerows([row.get(name) if row.get(name) is not None else "NULL" for name in names] for row in rows)
    return path


def _read(uri: object, pools: dict[str, str] | None = None, objects: Objects | None = None) -> Bill:
    return FocusBills(str(uri), Rules(pools=pools or {}), (lambda: objects) if objects else None).read(START, END)


def test_a_row_is_billed_to_its_day_team_and_pool(tmp_path: Path) -> None:
    """Cost goes to the UTC day, the tagged team, and the policy's name of the tagged node group."""
    bill = _read(_write(tmp_path / "a.csv", ROW), {"gpu-a100": "a100"})
    (row,) = bill.days
    assert (row.day, row.usd, row.team, row.pool, row.service) == (
        date(2026, 11, 2), Decimal("1.5"), "research", "a100", "EC2",
    )  # fmt: skip
    assert (bill.horizon, bill.findings) == (datetime(2026, 11, 2, 11, tzinfo=UTC), ())


@pytest.mark.parametrize(
    ("resource", "instance"),
    [
        pytest.param("i-0abc12345def67890", "i-0abc12345def67890", id="a machine of EC2"),
        pytest.param("arn:aws:ec2:eu-west-1:1:instance/i-0abc1234", "i-0abc1234", id="by its ARN"),
        pytest.param("//compute.googleapis.com/projects/1/zones/z/instances/gke-gpu-1", "gke-gpu-1", id="of Google"),
        pytest.param("vol-0abc12345def67890", "", id="a disk is no machine"),
        pytest.param(None, "", id="nor is nothing"),
    ],
)
def test_a_row_names_the_machine_that_it_is_of(tmp_path: Path, resource: str | None, instance: str) -> None:
    """As its node does, so that what a node cost can be held against it."""
    (row,) = _read(_write(tmp_path / "a.csv", {**ROW, "ResourceId": resource})).days
    assert (row.resource, row.usd) == (instance, Decimal("1.5"))


TIMES = {
    "Z": ("2026-11-02T23:30:00Z", date(2026, 11, 2)),
    "without a zone, as UTC": ("2026-11-02 23:30:00", date(2026, 11, 2)),
    "an offset": ("2026-11-02T23:30:00-05:00", date(2026, 11, 3)),
    "with a fraction": ("2026-11-02T23:30:00.000Z", date(2026, 11, 2)),
}


@pytest.mark.parametrize(("text", "day"), TIMES.values(), ids=TIMES)
def test_times_are_read_however_they_are_written(tmp_path: Path, text: str, day: date) -> None:
    """The day is the UTC day."""
    row = {**ROW, "ChargePeriodStart": text, "ChargePeriodEnd": text}
    assert [r.day for r in _read(_write(tmp_path / "a.csv", row)).days] == [day]


def test_columns_more_or_fewer_do_no_harm(tmp_path: Path) -> None:
    """Only cost and period are needed; unknown columns are not looked at; tags that are no JSON name nobody."""
    bare = {name: ROW[name] for name in ("BilledCost", "ChargePeriodStart", "ChargePeriodEnd")}
    odd = {**ROW, "x_More": "1", "Id": "7", "Tags": "{broken"}
    for rows in ([bare], [odd], [{**ROW, "Tags": None, "ServiceName": None}]):
        bill = _read(_write(tmp_path / "a.csv", *rows))
        assert (bill.days[0].usd, bill.days[0].team, bill.findings) == (Decimal("1.5"), "", ())


def test_credits_and_corrections_are_what_they_are(tmp_path: Path) -> None:
    """Costs below zero lower the sum: they are the cloud's own lines."""
    credit = {**ROW, "ChargeCategory": "Credit", "BilledCost": "-0.25", "ChargeClass": "Correction"}
    days = _read(_write(tmp_path / "a.csv", ROW, credit)).days
    assert sum((row.usd for row in days), Decimal(0)) == Decimal("1.25")


def test_a_months_fee_does_not_say_that_the_month_is_over(tmp_path: Path) -> None:
    """How far an export reaches is told by usage of at most a day; a fee counts on its first day."""
    fee = {**ROW, "ChargeCategory": "Purchase", "ChargePeriodStart": "2026-11-01", "ChargePeriodEnd": "2026-12-01"}
    bill = _read(_write(tmp_path / "a.csv", ROW, fee))
    assert bill.horizon == datetime(2026, 11, 2, 11, tzinfo=UTC)
    assert {row.day.day: row.usd for row in bill.days} == {1: Decimal("1.5"), 2: Decimal("1.5")}


DOUBTFUL = {
    "no cost": ({"BilledCost": None}, "1 row: BilledCost"),
    "a cost that is no number": ({"BilledCost": "much"}, "1 row: BilledCost"),
    "a cost without end": ({"BilledCost": "inf"}, "1 row: BilledCost"),
    "another currency": ({"BillingCurrency": "EUR"}, "1 row: BillingCurrency"),
    "no time": ({"ChargePeriodStart": "soon"}, "1 row: ChargePeriodStart"),
}


@pytest.mark.parametrize(("change", "says"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_a_row_that_cannot_be_counted_is_a_finding(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    """It is told of, counts nothing, and its day is in doubt; the rest is billed as far as it reaches."""
    later = {**ROW, "ChargePeriodStart": "2026-11-09T10:00:00Z", "ChargePeriodEnd": "2026-11-09T11:00:00Z"}
    bill = _read(_write(tmp_path / "a.csv", {**ROW, **change}, later))
    assert [f.message.startswith(says) for f in bill.findings] == [True]
    assert sum(row.usd for row in bill.days) == Decimal("1.5")
    assert bill.horizon == datetime(2026, 11, 9, 11, tzinfo=UTC)
    # A row without a time may be of any day.
    assert bill.doubtful == ((date(2026, 11, 9),) if "ChargePeriodStart" in change else (date(2026, 11, 2),))


def test_parquet_is_read_with_tags_as_a_map(tmp_path: Path) -> None:
    """Typed columns give the same bill as text."""
    file = tmp_path / "a.parquet"
    duckdb.sql(
        f"""COPY (SELECT 1.5::DOUBLE AS BilledCost, 'USD' AS BillingCurrency, 'Usage' AS ChargeCategory,
        TIMESTAMP '2026-11-02 10:00:00' AS ChargePeriodStart, TIMESTAMP '2026-11-02 11:00:00' AS ChargePeriodEnd,
        MAP {{'team': 'research'}} AS Tags, 'EC2' AS ServiceName) TO '{file}' (FORMAT PARQUET)"""
    )
    (row,) = _read(file).days
    assert (row.day, row.usd, row.team) == (date(2026, 11, 2), Decimal("1.5"), "research")


def test_the_same_file_twice_counts_once(tmp_path: Path) -> None:
    """An export that was copied beside itself, packed parts and all, is one export."""
    _write(tmp_path / "part-1.csv.gz", ROW)
    _write(tmp_path / "part-2.csv.gz", {**ROW, "BilledCost": "2"})
    shutil.copy(tmp_path / "part-1.csv.gz", tmp_path / "part-1-again.csv.gz")
    assert sum(row.usd for row in _read(tmp_path / "*.csv.gz").days) == Decimal("3.5")


def test_the_public_sample_sums_to_the_cent(shelf: Path) -> None:
    """A thousand rows of real exports sum to what their own BilledCost sums to, by exact decimals."""
    sample = shelf / "contracts" / "billing" / "focus" / "focus_1.0_sample_1000.csv"
    with sample.open(newline="") as file:
        costs = [Decimal(row["BilledCost"]) for row in csv.DictReader(file)]
    bill = FocusBills(str(sample), Rules()).read(datetime(2024, 9, 1, tzinfo=UTC), datetime(2024, 10, 1, tzinfo=UTC))
    assert (len(costs), bill.findings) == (1000, ())
    assert sum(row.usd for row in bill.days) == sum(costs)
    assert round(sum(costs), 2) == Decimal("20.52")


BREAKS: list[Callable[[random.Random, bytes], bytes]] = [
    lambda r, b: b[: r.randrange(len(b))],
    lambda r, b: bytes(r.randrange(256) for _ in range(r.randrange(400))),
    lambda r, b: b.replace(b"BilledCost", b"Cost", 1),
    lambda r, b: b.replace(b",", b";"),
    lambda r, b: b"".join(bytes([c]) if r.random() > 0.02 else bytes([r.randrange(256)]) for c in b),
    lambda r, b: json.dumps({"rows": [ROW]}).encode(),
    lambda r, b: b.replace(b"1.50", r.choice([b"NaN", b"1e400", b"-", b"0x1", b"1,5", b'"', b""])),
    lambda r, b: b.replace(b"2026-11-02T10", r.choice([b"2026-13-02T10", b"yesterday", b"", b"9999999-01-01T10"])),
]


@pytest.mark.parametrize("kind", range(len(BREAKS)))
def test_a_broken_export_is_a_finding_and_never_a_crash(tmp_path: Path, kind: int) -> None:
    """Two hundred exports broken in eight ways: what is counted is from whole rows, the rest is told of."""
    whole = _write(tmp_path / "a.csv", *[ROW] * 5).read_bytes()
    for seed in range(25):
        broken = BREAKS[kind](random.Random(seed * 8 + kind), whole)
        (tmp_path / "b.csv").write_bytes(broken)
        bill = _read(tmp_path / "b.csv")
        assert all(row.usd.is_finite() for row in bill.days)
        assert sum(row.usd for row in bill.days) <= Decimal("7.5") or bill.findings or kind == 4


def _no_number(text: str) -> bool:
    try:
        return not Decimal(text.strip()).is_finite()
    except ArithmeticError:
        return True


WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=12)
WRONG: dict[str, st.SearchStrategy[str | None]] = {
    "BilledCost": st.none()
    | st.sampled_from(["NaN", "inf", "-Infinity", "much", "$1", "1,5"])
    | WORD.filter(_no_number),
    "BillingCurrency": st.sampled_from(["EUR", "usd?", "GBP"]),
    "ChargePeriodStart": st.none() | st.sampled_from(["soon", "2026-13-01T00:00:00Z", "20261102T10"]),
}
BAD = st.sampled_from(sorted(WRONG)).flatmap(lambda column: WRONG[column].map(lambda text: {**ROW, column: text}))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(bad=[{**ROW, "BilledCost": "#"}], good=1)  # No comment: no line of a bill is dropped in silence.
@given(st.lists(BAD, min_size=1, max_size=4), st.integers(0, 3))
def test_two_hundred_malformed_exports_are_findings_and_never_counted(
    tmp_path: Path, bad: list[dict[str, str | None]], good: int
) -> None:
    """Whichever rows are wrong, and how: the dollars are those of the good rows alone, and the rest is told of."""
    bill = _read(_write(tmp_path / "a.csv", *bad, *[ROW] * good))
    assert sum(row.usd for row in bill.days) == Decimal("1.5") * good
    assert bill.findings


def test_a_file_that_is_not_there_is_named() -> None:
    """The refusal names the address."""
    with pytest.raises(BadInput, match=r"no file at /no/such/\*\.csv"):
        _read("/no/such/*.csv")


@pytest.fixture
def bucket(dynamodb_server: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An S3 bucket on moto's server."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", dynamodb_server)
    import boto3

    client = boto3.client("s3")
    client.create_bucket(Bucket="bills")
    return client


def test_an_export_in_s3_is_read_by_its_manifest(bucket: Any, tmp_path: Path) -> None:
    """The manifest's own files are read, not what lies beside them; a pattern reads all of them."""
    for name in ("one", "old"):
        file = _write(tmp_path / f"{name}.csv.gz", {**ROW, "ServiceName": name, "ResourceId": name})
        bucket.upload_file(str(file), "bills", f"focus/data/{name}.csv.gz")
    manifest = json.dumps({"dataFiles": ["s3://bills/focus/data/one.csv.gz"]}).encode()
    bucket.put_object(Bucket="bills", Key="focus/metadata/e-Manifest.json", Body=manifest)
    assert [row.service for row in _read("s3://bills/focus/metadata/e-Manifest.json").days] == ["one"]
    assert sorted(row.service for row in _read("s3://bills/focus/data/*.csv.gz").days) == ["old", "one"]
    with pytest.raises(BadInput, match="NoSuchBucket"):
        _read("s3://nobody/x.csv")


def test_of_an_export_in_s3_that_keeps_its_runs_the_newest_manifest_counts(bucket: Any, tmp_path: Path) -> None:
    """The pattern names data files; the manifests beside them say which are current, and a run without one is not."""
    month = "BILLING_PERIOD=2026-11"
    for run, name in (("20261120T060000Z-a", "old"), ("20261121T060000Z-b", "new"), ("20261122T060000Z-c", "unready")):
        file = _write(tmp_path / f"{name}.csv.gz", {**ROW, "ServiceName": name, "ResourceId": name})
        key = f"runs/data/{month}/{run}/focus-00001.csv.gz"
        bucket.upload_file(str(file), "bills", key)
        if name != "unready":
            manifest = json.dumps({"dataFiles": [f"s3://bills/{key}"]}).encode()
            bucket.put_object(Bucket="bills", Key=f"runs/metadata/{month}/{run}/focus-Manifest.json", Body=manifest)
    for pattern in ("data/*.csv.gz", f"metadata/{month}/*Manifest.json"):
        assert [row.service for row in _read(f"s3://bills/runs/{pattern}").days] == ["new"]


def test_an_export_of_another_kind_is_told_with_what_to_do(tmp_path: Path) -> None:
    """AWS's CUR 2.0 has the month's dollars under other names: none is counted."""
    header = "line_item_unblended_cost,line_item_usage_start_date,line_item_usage_end_date"
    (tmp_path / "cur.csv").write_text(f"{header}\n12.50,2026-11-01T00:00:00Z,2026-11-01T01:00:00Z\n")
    bill = _read(str(tmp_path / "cur.csv"))
    words = ": BilledCost, ChargePeriodStart, ChargePeriodEnd; export it as FOCUS, as AWS's own CUR is not read"
    assert (bill.days, [one.message for one in bill.findings]) == ((), [f"columns are missing{words}"])


def test_an_export_in_cloud_storage_is_read() -> None:
    """Listed and fetched over REST; what the service refuses or cannot do now is told apart."""
    said: list[tuple[int, Any]] = []

    def gcs(path: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        if said:
            return said.pop()
        if "alt=media" in path:
            return 200, "BilledCost"  # A JSON text: one column, no row.
        return 200, {"items": [{"name": "focus/a.csv"}, {"name": "other/b.csv"}]}

    with answering(gcs) as host:
        objects = Objects(gcs=f"http://{host}")
        bill = _read("gs://bills/focus/*.csv", objects=objects)
        assert "columns are missing" in bill.findings[0].message
        for status, kind in ((403, BadInput), (503, Unavailable)):
            said[:] = [(status, {})]
            with pytest.raises(kind, match=str(status)):
                _read("gs://bills/focus/*.csv", objects=objects)


TAGGED = """SELECT 1.5::DOUBLE AS BilledCost, 'usd' AS BillingCurrency,
    TIMESTAMP '2026-11-02 10:00' AS ChargePeriodStart, TIMESTAMP '2026-11-02 11:00' AS ChargePeriodEnd,
    {tags} AS Tags"""
LISTS = {
    "a map": "MAP {{'{key}': 'research'}}",
    "a list of keys and values": "[{{'key': 'x', 'value': 'y'}}, {{'key': '{key}', 'value': 'research'}}]",
    "text": """'{{"{key}": "research"}}'""",
}


@pytest.mark.parametrize("key", ["team", "user:team", "resourceTags/team", "resourceTags/user:team"])
@pytest.mark.parametrize("tags", LISTS.values(), ids=LISTS.keys())
def test_a_tag_is_read_however_parquet_has_it(tmp_path: Path, tags: str, key: str) -> None:
    """As a map, a list or text, with whatever AWS puts before its key; alone, and beside a CSV."""
    sql = TAGGED.format(tags=tags.format(key=key))
    duckdb.sql(sql).write_parquet(str(tmp_path / "a1.parquet"))
    assert [(row.usd, row.team) for row in _read(tmp_path / "*").days] == [(Decimal("1.5"), "research")]
    _write(tmp_path / "a2.csv", {**ROW, "BillingCurrency": " usd"})
    assert sum(row.usd for row in _read(tmp_path / "*").days) == 3
    assert {row.team for row in _read(tmp_path / "*").days} == {"research"}


@pytest.mark.parametrize("spelt", [str.lower, lambda name: re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()])
def test_columns_in_small_letters_are_focus_s_own(tmp_path: Path, spelt: Callable[[str], str]) -> None:
    """With underscores and without."""
    row = {**ROW, "ResourceId": "i-0abc12345def67890"}
    bill = _read(_write(tmp_path / "a.csv", {spelt(name): value for name, value in row.items()}))
    assert [(one.usd, one.team, one.service, one.resource) for one in bill.days] == [
        (Decimal("1.5"), "research", "EC2", "i-0abc12345def67890")
    ]


@pytest.mark.parametrize("at", ["2026-11-02T23:30Z", "2026-11-02 23:30", "2026-11-03T01:30+02:00"])
def test_a_time_without_seconds_is_a_time(tmp_path: Path, at: str) -> None:
    """It begins with its minute."""
    (row,) = _read(_write(tmp_path / "a.csv", {**ROW, "ChargePeriodStart": at, "ChargePeriodEnd": at})).days
    assert row.day == date(2026, 11, 2)


def test_dollars_that_commitments_pay_are_told_beside_those_billed(tmp_path: Path) -> None:
    """A node under a Savings Plan is billed $0 and costs $32; what nothing used of the plan is told of its own."""
    node = {**ROW, "BilledCost": "0", "EffectiveCost": "32.00", "CommitmentDiscountStatus": "Used"}
    unused = {**ROW, "BilledCost": "0", "EffectiveCost": "3.50", "CommitmentDiscountStatus": "Unused"}
    bill = _read(_write(tmp_path / "a.csv", ROW | {"EffectiveCost": "1.50"}, node, unused))
    assert sum(row.usd for row in bill.days) == Decimal("1.5")
    assert bill.notes == (
        "$37.00 by EffectiveCost where $1.50 are billed: commitments are paid apart; "
        "$3.50 of it are unused commitment; reports go by effective, a budget by the basis that it names",
    )
    assert {row.commitment: (row.usd, row.effective_usd, row.list_usd) for row in bill.days} == {
        "": (Decimal("1.5"), Decimal("1.5"), None), "unused": (0, Decimal("3.5"), None), "used": (0, 32, None),
    }  # fmt: skip
    assert _read(_write(tmp_path / "b.csv", ROW | {"EffectiveCost": "1.50"})).notes == ()
