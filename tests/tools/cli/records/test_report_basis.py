"""A p4d.24xlarge for 20 days under a Savings Plan: billed $0.00, and $12,000.00 of the plan. In every basis."""

import csv
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.money.counted_days import counted_days
from pilotlight.decide.money.spend import budget_spend
from pilotlight.errors import BadInput
from pilotlight.facts.money.bill import CostLine, MeterDay, MeteredNode, MeterPart
from pilotlight.facts.money.money_policy import Budget, BudgetScope, CostBasis
from pilotlight.flow.billing import billed_days
from pilotlight.ports.state import State
from pilotlight.state_schema.billing_records import METER, METERING
from pilotlight.tools.cli.main import build
from pilotlight.world.world_clock import WallClock

duckdb = pytest.importorskip("duckdb")

DAY = timedelta(days=1)
DAYS = [date(2026, 10, n) for n in range(1, 21)]
START, END = datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 21, tzinfo=UTC)
OCTOBER = ("--month", "2026-10")
NODE = "i-0abc1234567890def"
POLICY = "version: 1\npools: {p4d: {instance_type: p4d.24xlarge}}\nprices: {unused_commitments: held}\n"


def _rows(day: date) -> list[dict[str, str]]:
    """A day's lines: the node, what nothing used of the plan, the plan's price, and a bucket of the team's."""
    plan = {"CommitmentDiscountId": "sp-1", "ChargeCategory": "Usage", "Tags": json.dumps({"team": "nlp"})}
    used = {"ResourceId": f"arn:aws:ec2:eu-west-1:1:instance/{NODE}", "CommitmentDiscountStatus": "Used"}
    lines = [
        {**plan, **used, "ListCost": "786.48", "BilledCost": "0", "EffectiveCost": "600"},
        {**plan, "CommitmentDiscountStatus": "Unused", "BilledCost": "0", "EffectiveCost": "25", "Tags": ""},
        {**plan, "ChargeCategory": "Purchase", "BilledCost": "625", "EffectiveCost": "0", "Tags": ""},
        {"ChargeCategory": "Usage", "Tags": plan["Tags"], "ListCost": "1", "BilledCost": "1", "EffectiveCost": "1"},
    ]
    at = {"ChargePeriodStart": f"{day}T00:00:00Z", "ChargePeriodEnd": f"{day + DAY}T00:00:00Z"}
    whole = {"ServiceName": "EC2", "BillingCurrency": "USD", "ListCost": "0", "ResourceId": ""}
    return [{**whole, "CommitmentDiscountId": "", "CommitmentDiscountStatus": "", **line, **at} for line in lines]


def _books(state: State, folder: Path) -> State:
    """The meter's 20 days, of which team nlp held three quarters, and the export as it is imported."""
    for day in DAYS:
        begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
        of: dict[str, Any] = {
            "pool": "p4d", "node": "n", "instance_type": "p4d.24xlarge", "capacity_type": "on-demand", "begin": begin
        }  # fmt: skip
        lines = (
            CostLine(kind="used", team="nlp", usd=Decimal("589.86"), gpu_hours=Decimal(144), **of),
            CostLine(kind="idle", usd=Decimal("196.62"), gpu_hours=Decimal(48), **of),
        )
        METER.write(state, f"local/{day}", MeterDay(day=day, until=begin + DAY, lines=lines))
        node = MeteredNode(
            name="n",
            pool="p4d",
            instance_type="p4d.24xlarge",
            capacity_type="on-demand",
            since=begin,
            until=begin + DAY,
        )
        METERING.put(state, f"local/{day}/0", MeterPart(day=day, seen=begin + DAY, nodes={NODE: node}))
    rows = [row for day in DAYS for row in _rows(day)]
    with (folder / "bill.csv").open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    bill = FocusBills(str(folder / "bill.csv"), Rules(cluster="local")).read(START, END)
    assert billed_days.store(state, "local", bill, START, END) == len(DAYS)
    return state


BUDGETS: dict[CostBasis | None, tuple[str, str, str]] = {
    "effective": ("12020", "0", "12000"),
    "billed": ("20", "0", "0"),
    "list": ("15749.6", "0", "15729.6"),
    None: ("20", "11797.2", "0"),
}


@pytest.mark.parametrize(("basis", "expected"), BUDGETS.items())
def test_a_teams_budget_counts_twenty_days_of_a_plan_by_its_basis(
    tmp_path: Path, basis: CostBasis | None, expected: tuple[str, str, str]
) -> None:
    """Billed, metered and sunk: a plan's usage at $0 sets no metered dollar aside unless the budget asks for it."""
    state = _books(MemoryState(WallClock(END)), tmp_path)
    known = counted_days(
        [entry.value for entry in METER.scan(state, "local/")], billed_days.days(state, "local", DAYS[0], DAYS[-1])
    )
    budget = Budget(name="nlp", scope=BudgetScope(team="nlp"), usd=Decimal(20_000), basis=basis)
    (meter,) = meters([budget], END)
    found = budget_spend(meter, known, Decimal(0), END)
    assert (found.billed, found.metered, found.sunk) == tuple(map(Decimal, expected))


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store with the books, and a policy that shares unused commitment by what teams held."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("PILOTLIGHT_POLICY", str(tmp_path / "policy.yaml"))
    (tmp_path / "policy.yaml").write_text(POLICY)
    _books(SqliteState(tmp_path / "state.db", SystemClock()), tmp_path)


def run(*words: str) -> Result:
    """The command's outcome; what it raises goes on to the test."""
    return CliRunner().invoke(build(["report"]), ["report", *words], catch_exceptions=False)


REPORTS = {
    "effective": ("12500", "9000", "3000", "500", "12500"),
    "billed": ("12500", "0", "0", "12500", "12500"),
    "list": ("15729.6", "11797.2", "3932.4", "0", "15729.6"),
}


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize(("basis", "expected"), REPORTS.items())
def test_a_report_and_its_chargeback_go_by_the_basis(basis: str, expected: tuple[str, ...]) -> None:
    """In all, used, idle, commitments that no node used, and what the team pays with its share: to the cent."""
    told = json.loads(run(*OCTOBER, "--basis", basis, "--json").stdout)
    parts = [told[name]["usd"] for name in ("total", "used", "idle", "commitment")]
    (team,) = told["teams"]
    pays = team["with_share"] if basis != "billed" else expected[4]
    assert (*map(Decimal, parts), Decimal(pays)) == tuple(map(Decimal, expected))
    assert (told["basis"], Decimal(told["told"])) == (basis, Decimal(expected[0]))
    rows = json.loads(run(*OCTOBER, "--basis", basis, "--by", "team", "--json").stdout)["rows"]
    assert {row["kind"]: Decimal(row["usd"]) for row in rows if Decimal(row["usd"])} == {
        kind: Decimal(usd)
        for kind, usd in zip(("used", "idle", "commitment"), expected[1:], strict=False)
        if usd != "0"
    }


@pytest.mark.usefixtures("deployment")
def test_a_report_goes_by_effective_dollars_and_says_so() -> None:
    """Where no basis is named; what nothing used of the plan is a line of its own, and teams share it by the policy."""
    shown = " ".join(run(*OCTOBER).stdout.split())
    assert "2026-10-01 to 2026-10-31: $12,500.00 for 3,840.0 GPU-hours" in shown
    assert "teams $9,000.00 + idle $3,000.00 + shared $0.00 + commitments $500.00 = $12,500.00" in shown
    assert (
        "dollars are effective ones (commitments spread over what used them) where a bill tells them, $12,500.00 of "
        "it; else they are metered, by the policy's prices"
    ) in shown
    team = " ".join(run(*OCTOBER, "--team", "nlp").stdout.split())
    assert "2026-10-01 to 2026-10-31: $9,000.00 for 2,880.0 GPU-hours" in team
    assert "where a bill tells them; else they are metered" in team
    assert "nlp 2,880.0 h $9,000.00 $12,500.00 with its share of idle, shared and commitments" in shown
    with pytest.raises(BadInput, match="--basis net: write list, billed or effective"):
        run(*OCTOBER, "--basis", "net")
    assert "unused commitment" in run(*OCTOBER, "--csv").stdout


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_file_of_focus_has_every_basis_in_its_column(tmp_path: Path, form: str) -> None:
    """Each cost adds up to the report of its basis by kind of line, as DuckDB alone reads the file."""
    file = tmp_path / f"out.{form}"
    assert run(*OCTOBER, "--focus", str(file)).stdout == f"{file} written: 80 rows of FOCUS 1.2\n"
    costs = {"effective": "EffectiveCost", "billed": "BilledCost", "list": "ListCost"}
    for basis, (total, used, idle, commitment, _) in REPORTS.items():
        asked = f"SELECT x_LineKind, sum({costs[basis]})::DECIMAL(18, 2) FROM '{file}' GROUP BY ALL"
        found = dict(duckdb.sql(asked).fetchall())
        assert [found[kind] for kind in ("used", "idle", "commitment")] == [*map(Decimal, (used, idle, commitment))]
        assert sum(found.values()) == Decimal(total)
    status = f"SELECT CommitmentDiscountStatus, sum(EffectiveCost)::INT FROM '{file}' GROUP BY ALL ORDER BY ALL"
    assert duckdb.sql(status).fetchall() == [("Unused", 500), ("Used", 12000), (None, 0)]
    with pytest.raises(BadInput, match="leave --basis out"):
        run(*OCTOBER, "--basis", "billed", "--focus", str(file))


@pytest.mark.usefixtures("deployment")
def test_unused_commitment_that_no_rule_shares_is_shown_unshared(tmp_path: Path) -> None:
    """A policy that names no rule charges it to nobody."""
    (tmp_path / "policy.yaml").write_text(POLICY.partition("prices")[0])
    shown = " ".join(run(*OCTOBER).stdout.split())
    assert "nlp 2,880.0 h $9,000.00 $12,000.00 with its share of idle and shared" in shown
    assert (
        "with their shares they pay all of it but $500.00 of commitments, which prices.unused_commitments shares with "
        "nobody"
    ) in shown
