"""Rows of FOCUS 1.2: as the specification wants them, with the report's sums, and readable by our own bill reader."""

import csv
import re
import shutil
import subprocess
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.errors import BadInput, Failed
from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, LineKind, MeterDay
from pilotlight.facts.money.money_policy import CostBasis
from pilotlight.tools.advice.money.month import month
from pilotlight.tools.advice.money.priced_days import price_days
from pilotlight.tools.advice.money.spend_by import BY, PodTime, parts_by_pod, spend_by, whole_lines
from pilotlight.tools.report.tables.focus_file import write_focus_file
from pilotlight.tools.report.tables.focus_rows import COLUMNS, PRICES, TEXTS, TIMES, focus_rows
from pilotlight.tools.report.tables.month_table import plain_name

BASES = get_args(CostBasis)
COST: dict[CostBasis, str] = {"billed": "BilledCost", "effective": "EffectiveCost", "list": "ListCost"}
FIRST, LAST = date(2026, 10, 1), date(2026, 10, 31)

ALLOWED = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"", "Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"Standard", "Dynamic", "Committed", "Other"},
    "BillingCurrency": {"USD"},
    "ServiceCategory": {"Compute"},
    "ServiceSubcategory": {"Containers", "End User Computing", "Quantum Compute", "Serverless Compute",
                           "Virtual Machines", "Other (Compute)"},
}  # fmt: skip
"""Values that FOCUS 1.2 allows; of the subcategories those of Compute."""

NEVER_NULL = (
    "BilledCost", "BillingAccountId", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory",
    "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost",
    "ProviderName", "PublisherName", "ServiceCategory", "ServiceName",
    # Of usage and purchases that are no correction:
    "PricingQuantity", "PricingUnit", "ListUnitPrice", "ContractedUnitPrice", "SkuId", "SkuPriceId", "ChargeFrequency",
    "ServiceSubcategory", "PricingCategory",
)  # fmt: skip
MANDATORY = (*NEVER_NULL, "ConsumedQuantity", "ConsumedUnit", "BillingAccountName", "ChargeClass", "ChargeDescription")
"""Columns that FOCUS 1.2 wants of every provider, or of every row of usage."""

APPLIES = (
    "ACCOUNT_NAMING_SUPPORTED", "BILLING_BASED_ON_PROVISIONED_RESOURCES_SUPPORTED", "COMMITMENT_DISCOUNT_SUPPORTED",
    "MULTIPLE_BILLING_ACCOUNT_TYPES_SUPPORTED", "MULTIPLE_PRICING_CATEGORIES_SUPPORTED",
    "MULTIPLE_SUB_ACCOUNT_TYPES_SUPPORTED", "PUBLIC_PRICE_LIST_SUPPORTED",
    "RESOURCE_TYPE_ASSIGNMENT_SUPPORTED", "SUB_ACCOUNT_SUPPORTED", "TAGGING_SUPPORTED", "UNIT_PRICING_SUPPORTED",
    "USAGE_MEASUREMENT_SUPPORTED",
)  # fmt: skip
"""Of what FOCUS asks of some providers all but regions, zones, reservations of capacity, and other currencies."""

MISREAD = re.compile(
    r"InvoiceId-C-005-C|CommitmentDiscountStatus-C-00[024]-C"
    r"|PricingCurrency\w+-C-.*|CostAndUsage-D-0(00|01|02|46|47|48|50|51|52|54|55|56)-."
)
"""Rules whose conditions its 2.2.1 does not try: an invoice that was issued, a category of usage, virtual currencies;
and the sums of rules that these are in."""

OF_FOCUS = {
    *MANDATORY, "BillingAccountType", "CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName",
    "CommitmentDiscountQuantity", "CommitmentDiscountStatus", "CommitmentDiscountType", "CommitmentDiscountUnit",
    "ContractedUnitPrice", "InvoiceId", "ListUnitPrice", "ResourceId", "ResourceName", "ResourceType", "SkuId",
    "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId", "SubAccountName", "SubAccountType", "Tags",
}  # fmt: skip
"""Its columns that are written."""

names = st.sampled_from(["", "research", "vision", "=1+1", 'a "b", c', "ü"])
sums = st.decimals("0", "9999", places=11)


@st.composite
def _lines(draw: st.DrawFn) -> CostLine:
    kind: LineKind = draw(st.sampled_from(("used", "idle", "shared")))
    team, project, name = (draw(names) if kind == "used" else "" for _ in range(3))
    return CostLine(
        kind=kind, pool=draw(st.sampled_from(("a100", "t4"))), node=draw(st.sampled_from(("", "n1", "n2"))),
        instance_type=draw(st.sampled_from(("", "p4d.24xlarge"))),
        capacity_type=draw(st.sampled_from(("on-demand", "spot", "reserved"))),
        team=team, project=project, workload_class=name, gpu_hours=draw(sums | st.just(Decimal(0))), usd=draw(sums),
    )  # fmt: skip


@st.composite
def _days(draw: st.DrawFn) -> list[MeterDay]:
    days = draw(st.lists(st.integers(1, 31), min_size=1, max_size=4, unique=True))
    return [_day(date(2026, 10, day), *draw(st.lists(_lines(), max_size=6))) for day in days]


def _day(day: date, *lines: CostLine, hours: float = 24) -> MeterDay:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return MeterDay(day=day, until=start + timedelta(hours=hours), lines=lines)


def _line(kind: LineKind, hours: str, usd: str, **of: Any) -> CostLine:
    fields = {"pool": "a100", "node": "n1", "instance_type": "p4d.24xlarge", "capacity_type": "spot", **of}
    return CostLine(kind=kind, gpu_hours=Decimal(hours), usd=Decimal(usd), **fields)


OCTOBER = [
    _day(
        FIRST,
        _line("used", "12.333333333", "40.111111111", team="research", project="nlp", workload_class="training"),
        _line("idle", "3", "9.9"),
        _line("shared", "0.5", "1.2", capacity_type="on-demand"),
    ),
    _day(
        date(2026, 10, 2),
        _line("used", "5", "0", capacity_type="reserved", team="vision", project="cv"),
        _line("shared", "0", "7.25", node=""),
        hours=10,
    ),
]


def rows_of(days: list[MeterDay]) -> list[dict[str, str]]:
    """The rows of some days, without pods and without a bill."""
    return list(focus_rows("prod", {basis: whole_lines(days, FIRST, LAST) for basis in BASES}))


def _billed(resource: str, usd: str, effective: str, listed: str, **of: Any) -> BilledDay:
    costs = Decimal(usd), Decimal(effective), Decimal(listed)
    return BilledDay(day=FIRST, resource=resource, usd=costs[0], effective_usd=costs[1], list_usd=costs[2], **of)


BILL = BillDay(
    day=FIRST,
    source="focus",
    rows=(
        _billed("n1", "0", "30.123456789", "51.5", commitment="used"),
        _billed("n1", "10.5", "10.5", "12"),
        _billed("", "0", "7.25", "0", commitment="unused"),
        _billed("", "60", "0", "60", commitment="fee", pool="a100"),
        _billed("", "-3.5", "0", "-3.5", commitment="fee"),
    ),
)
"""A node under a plan for most of its day, what nothing used of the plan, its price, and a refund of that."""


def rows_of_bill(pods: list[PodTime] | None = None) -> list[dict[str, str]]:
    """The rows of October with that bill."""
    bases = {basis: price_days(OCTOBER, {FIRST: [BILL]}, basis) for basis in BASES}
    parts = {
        basis: whole_lines(of.days, FIRST, LAST) if pods is None else parts_by_pod(of.days, FIRST, LAST, pods)
        for basis, of in bases.items()
    }
    return list(focus_rows("prod", parts, bases["effective"].covered))


def test_columns_are_focus_own_or_begin_with_x() -> None:
    """All that the specification wants are there, and every other says that it is ours."""
    assert {name for name in COLUMNS if not name.startswith("x_")} == OF_FOCUS
    assert all(re.fullmatch(r"(x_)?([A-Z][a-z]*)+", name) for name in COLUMNS)


def _check_rows(rows: list[dict[str, str]]) -> None:
    for row in rows:
        usage, unused = row["ChargeCategory"] == "Usage", row.get("CommitmentDiscountStatus") == "Unused"
        assert not [name for name in NEVER_NULL if not row.get(name)]
        assert all(row.get(name, "") in values for name, values in ALLOWED.items())
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[name]) for name in TIMES)
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
        numbers = {name: value for name, value in row.items() if COLUMNS[name] == "decimal"}
        assert all(re.fullmatch(r"-?\d+(\.\d+)?", value) for value in numbers.values())
        assert bool(row.get("SubAccountId")) == bool(row.get("SubAccountType"))
        assert bool(row.get("ResourceId")) == bool(row.get("ResourceType"))
        for price, cost in zip(PRICES, ("ListCost", "ContractedCost"), strict=True):
            assert Decimal(row[price]) >= 0
            assert abs(Decimal(row[price]) * Decimal(row["PricingQuantity"]) - Decimal(row[cost])) <= Decimal("1e-8")
        assert row["SkuPriceId"].startswith(f"{row['SkuId']}/")
        assert row.get("ConsumedQuantity") == (row["PricingQuantity"] if usage and not unused else None)
        assert bool(row.get("ConsumedQuantity")) == bool(row.get("ConsumedUnit"))
        discount = {name for name in COLUMNS if name.startswith("CommitmentDiscount") and row.get(name)}
        assert len(discount) == (0 if "CommitmentDiscountId" not in row else 7 if usage else 6)
        assert usage or (row["ChargeFrequency"], row["EffectiveCost"]) == ("Recurring", "0")


@given(_days())
def test_every_row_is_as_the_specification_wants_it(days: list[MeterDay]) -> None:
    """No null where none may be, allowed values, times in UTC, plain numbers, and prices that come to the cost."""
    _check_rows(rows_of(days))


def test_rows_of_commitments_are_as_the_specification_wants_them() -> None:
    """Used, unused and bought: one discount in dollars, which no row of other usage has."""
    rows = rows_of_bill()
    _check_rows(rows)
    told = {
        (row["ChargeCategory"], row.get("CommitmentDiscountStatus", ""), row["PricingCategory"])
        for row in rows
        if "CommitmentDiscountId" in row
    }
    assert told == {("Usage", "Used", "Committed"), ("Usage", "Unused", "Committed"), ("Purchase", "", "Standard")}
    used = [row for row in rows if row.get("CommitmentDiscountStatus") == "Used"]
    assert {row.get("ResourceId") for row in used} == {"n1"}
    assert abs(sum(Decimal(row["CommitmentDiscountQuantity"]) for row in used) - Decimal("30.123456789")) < Decimal(
        "1e-8"
    )


@pytest.mark.parametrize("by_pod", [False, True])
def test_each_cost_is_the_reports_of_its_basis(by_pod: bool) -> None:
    """By team, class and pool, with idle, shared and commitments: BilledCost, EffectiveCost and ListCost each."""
    pods = [PodTime(FIRST, "n1", "nlp", name, weight) for name, weight in (("train-0", 3.0), ("train-1", 1.0))]
    rows = rows_of_bill(pods if by_pod else None)
    for basis, cost in COST.items():
        days = price_days(OCTOBER, {FIRST: [BILL]}, basis).days
        for by, column in (("team", "x_Team"), ("class", "x_WorkloadClass"), ("pool", "x_Pool")):
            want = {(one.kind, one.name): one.amount.usd for one in spend_by(days, FIRST, LAST, BY[by])}
            found: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
            for row in rows:
                found[row["x_LineKind"], row.get(column, "") if row["x_LineKind"] == "used" else ""] += Decimal(
                    row[cost]
                )
            assert {key: usd for key, usd in found.items() if usd} == {key: usd for key, usd in want.items() if usd}


@given(_days(), st.lists(st.tuples(st.integers(1, 31), names, st.sampled_from("abc"), st.floats(0, 9)), max_size=8))
def test_the_rows_add_up_to_the_report(days: list[MeterDay], pods: list[tuple[int, str, str, float]]) -> None:
    """By pods or not, to the billionth: in dollars, in GPU-hours, and in those of idle and shared time alone."""
    report = month(days, [], FIRST, LAST)
    times = [PodTime(date(2026, 10, day), "n1", space, pod, weight) for day, space, pod, weight in pods]
    for rows in (
        rows_of(days),
        focus_rows("prod", {basis: parts_by_pod(days, FIRST, LAST, times) for basis in BASES}),
    ):
        sums: dict[str, Decimal] = defaultdict(Decimal)
        hours = Decimal(0)
        for row in rows:
            sums[row["x_LineKind"]] += Decimal(row["BilledCost"])
            hours += Decimal(row["x_GpuHours"])
        assert (sum(sums.values()), hours) == (report.total.usd, report.total.gpu_hours)
        assert (sums["used"], sums["idle"], sums["shared"]) == (report.used.usd, report.idle.usd, report.shared.usd)


def test_idle_time_and_pods_have_rows_of_their_own() -> None:
    """A node's idle hours are nobody's; what a namespace held is divided among its pods; a new price is a new row."""
    noon = datetime(2026, 10, 1, 12, tzinfo=UTC)
    twice = _day(FIRST, _line("used", "1", "2", project="nlp"), _line("used", "1", "3", project="nlp", begin=noon))
    assert [row["BilledCost"] for row in rows_of([twice])] == ["2", "3"]
    pods = [PodTime(FIRST, "n1", "nlp", name, weight) for name, weight in (("train-0", 3.0), ("train-1", 1.0))]
    rows = list(focus_rows("prod", {basis: parts_by_pod(OCTOBER[:1], FIRST, LAST, pods) for basis in BASES}))
    told = [(row["x_LineKind"], row.get("x_Pod", ""), row.get("x_Team", ""), row["BilledCost"][:5]) for row in rows]
    assert told == [
        ("used", "train-0", "research", "30.08"),
        ("used", "train-1", "research", "10.02"),
        ("idle", "", "", "9.9"),
        ("shared", "", "", "1.2"),
    ]
    assert rows[2]["ChargeDescription"] == "p4d.24xlarge spot: lit and held by nobody"


def test_a_day_that_goes_on_ends_where_it_was_counted_to() -> None:
    """So a reader does not take it for a whole day."""
    assert {row["ChargePeriodEnd"] for row in rows_of(OCTOBER[1:])} == {"2026-10-02T10:00:00Z"}


def test_no_spreadsheet_takes_a_name_for_a_formula() -> None:
    """A team's name comes from a label; its tag is text inside JSON."""
    (row,) = rows_of([_day(FIRST, _line("used", "1", "1", team="=1+1"))])
    assert (row["x_Team"], row["Tags"][:31]) == ("'=1+1", '{"pilotlight.dev/team": "=1+1",')


@pytest.mark.parametrize("form", [".csv", ".parquet"])
@settings(max_examples=20, deadline=None)
@given(_days())
def test_our_own_bill_reader_comes_to_the_same_sums(
    form: str, tmp_path_factory: pytest.TempPathFactory, days: list[MeterDay]
) -> None:
    """By day, team and pool, of both forms, without a finding."""
    path = tmp_path_factory.mktemp("focus") / f"october{form}"
    count = write_focus_file(path, rows_of(days))
    want: dict[tuple[date, str, str], Decimal] = defaultdict(Decimal)
    for day, line, _, amount in whole_lines(days, FIRST, LAST):
        want[day.day, plain_name(line.team), line.pool] += amount.usd
    bill = FocusBills(str(path), Rules()).read(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC))
    found: dict[tuple[date, str, str], Decimal] = defaultdict(Decimal)
    for row in bill.days:
        found[row.day, row.team, row.pool] += row.usd
    assert {key: usd for key, usd in found.items() if usd} == {key: usd for key, usd in want.items() if usd}
    assert not bill.findings
    assert bool(count) == bool(bill.days)


def test_parquet_has_the_types_of_the_specification(tmp_path: Path) -> None:
    """Decimals, times with UTC, and text; the same values as the CSV."""
    for form in ("csv", "parquet"):
        write_focus_file(tmp_path / f"october.{form}", rows_of(OCTOBER))
    with duckdb.connect() as db:
        db.execute("SET TimeZone='UTC'")
        packed = db.read_parquet(str(tmp_path / "october.parquet"))
        kinds = {"decimal": "DECIMAL(38,12)", "time": "TIMESTAMP WITH TIME ZONE", "text": "VARCHAR"}
        assert list(packed.columns) == list(COLUMNS)
        assert [str(kind) for kind in packed.types] == [kinds[kind] for kind in COLUMNS.values()]
        asked = ", ".join(f'epoch("{name}")' if kind == "time" else f'"{name}"' for name, kind in COLUMNS.items())
        table = [dict(zip(COLUMNS, row, strict=True)) for row in packed.project(asked).fetchall()]
    with (tmp_path / "october.csv").open(encoding="utf-8", newline="") as file:
        plain = list(csv.DictReader(file))
    assert [[row[name] or "" for name in TEXTS] for row in table] == [[row[name] for name in TEXTS] for row in plain]
    assert [row["BilledCost"] for row in table] == [Decimal(row["BilledCost"]) for row in plain]
    begins = {datetime.fromtimestamp(row["ChargePeriodStart"], UTC) for row in table}
    assert begins == {datetime(2026, 10, day, tzinfo=UTC) for day in (1, 2)}


def test_a_file_that_cannot_be_written_leaves_what_stood_there(tmp_path: Path) -> None:
    """Rows that fail halfway leave neither half a file nor scraps beside it."""
    path = tmp_path / "october.csv"
    path.write_text("old", "utf-8")

    def broken() -> Any:
        yield {"BilledCost": "1"}
        raise Failed("Prometheus did not answer")

    with pytest.raises(Failed, match="did not answer"):
        write_focus_file(path, broken())
    assert [(one.name, one.read_text("utf-8")) for one in tmp_path.iterdir()] == [("october.csv", "old")]
    with pytest.raises(Failed, match="name a file that can be written"):
        write_focus_file(tmp_path / "none" / "october.csv", [])
    with pytest.raises(BadInput, match=r"end the file's name with .csv or .parquet"):
        write_focus_file(tmp_path / "october.xlsx", [])


@pytest.mark.parametrize("form", [".csv", ".parquet"])
def test_the_project_s_validator_finds_nothing(tmp_path: Path, form: str) -> None:
    """FOCUS 1.2's own rules, where its validator is installed: all that apply hold, of commitments too."""
    validator = shutil.which("focus-validator")
    if validator is None:
        pytest.skip("no focus-validator: pip install focus-validator in a venv of Python 3.12")
    file = tmp_path / f"ours{form}"
    write_focus_file(file, rows_of_bill())
    where = "import focus_validator, os; print(os.path.dirname(os.path.dirname(focus_validator.__file__)))"
    python = Path(validator).resolve().with_name("python")
    home = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    words = [validator, "--data-file", str(file), "--validate-version", "1.2", "--block-download"]
    words += ["--applicability-criteria", ",".join(APPLIES)]
    # It reads a table of currencies from below its own folder.
    told = subprocess.run(words, capture_output=True, text=True, check=False, cwd=home).stdout
    assert len(re.findall(r": PASS\b", told)) > 200, told
    failed = re.findall(r"^\W*([\w-]+): FAIL\b", told, re.MULTILINE)
    assert not [rule for rule in failed if not MISREAD.fullmatch(rule)], told
