"""pilotlight commitments: what to pay ahead, with its sum."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput
from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, HourCost, HourSums, MeterDay
from pilotlight.state_schema.billing_records import BILL, HOUR, METER
from pilotlight.tools.cli.main import build

POLICY = """
version: 1
pools:
  h100: {instance_type: p5.48xlarge}
  h100-spot: {instance_type: p5.48xlarge, capacity_type: spot}
"""
RATES = ("--rate", "p5.48xlarge:one-year=65.93", "--rate", "p5.48xlarge:three-years=45.66")


@pytest.fixture(autouse=True)
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteState:
    """A policy with p5.48xlarge, and a state without an hour."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("PILOTLIGHT_POLICY", str(tmp_path / "policy.yaml"))
    (tmp_path / "policy.yaml").write_text(POLICY)
    return SqliteState(tmp_path / "state.db", SystemClock())


WIDE = {"COLUMNS": "200"}


def run(*words: str) -> str:
    """What the command prints."""
    return CliRunner().invoke(build(["commitments"]), ["commitments", *words], catch_exceptions=False, env=WIDE).stdout


def test_what_pays_is_shown_with_its_sum(deployment: SqliteState) -> None:
    """Two nodes lit for half of 200 hours: three years pay for both, one year for none."""
    first = datetime(2026, 11, 1, 1, tzinfo=UTC)
    for number in range(200):
        at = first + timedelta(hours=number)
        machines = {"p5.48xlarge on-demand": Decimal(16)} if number % 2 else {}
        one = HourCost(at=at, hours=Decimal(1), rates=HourSums(machines=machines))
        HOUR.put(deployment, f"local/{at - timedelta(hours=1):%H/%Y-%m-%d}", one)
    shown = " ".join(run(*RATES).split())
    assert "p5.48xlarge one-year $98.32 $65.93 67.1% 0 $0.00" in shown
    assert "p5.48xlarge, three-years: 45.66 / 98.32 = 46.4%: below that use, by the hour is cheaper" in shown
    # 2 x 45.66 x 200 beside 2 x 98.32 x 100.
    assert "2 ahead would have cost $18,264.00 beside $19,664.00 by the hour: $1,400.00 less" in shown
    one, three = json.loads(run(*RATES, "--json"))
    assert (one["commit"], three["commit"], three["uses"]) == (0, 2, ["0.5", "0.5"])


def test_too_few_hours_advise_nothing() -> None:
    """The break-even is told all the same."""
    shown = run(*RATES)
    assert "hours metered: 0, too few; a week is needed: nothing is advised" in shown
    assert "67.1%" in shown


def test_nodes_that_commitments_pay_already_are_left_out(deployment: SqliteState) -> None:
    """Two nodes are always lit; a Savings Plan pays one of them, $45 an hour: one more is worth paying ahead."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for number in range(200):
        at = today - timedelta(hours=number)
        machines = {"p5.48xlarge on-demand": Decimal(16)}
        one = HourCost(at=at, hours=Decimal(1), rates=HourSums(machines=machines))
        HOUR.put(deployment, f"local/{at - timedelta(hours=1):%H/%Y-%m-%d}", one)
    day = (today - timedelta(days=2)).date()
    until = today - timedelta(days=1)
    line = CostLine(
        kind="used", pool="h100", node="n1", instance_type="p5.48xlarge", capacity_type="on-demand",
        gpu_hours=Decimal(192), usd=Decimal("2359.68"),
    )  # fmt: skip
    lines = (line, msgspec.structs.replace(line, node="n2"))
    METER.write(deployment, f"local/{day}", MeterDay(day=day, until=until, lines=lines))
    row = BilledDay(
        day=day, usd=Decimal(0), effective_usd=Decimal(1080), commitment="used", resource="n1", pool="h100"
    )  # fmt: skip
    BILL.write(deployment, f"local/{day}/focus", BillDay(day=day, source="focus", rows=(row,)))
    shown = " ".join(run(*RATES).split())
    assert "commitments of the bill pay for 1.0 nodes already, at $45.00/h each (effective): they are left out" in shown
    one_year, _ = json.loads(run(*RATES, "--json"))
    assert (one_year["commit"], one_year["uses"]) == (1, ["1"])
    assert (one_year["already"]["nodes"], Decimal(one_year["already"]["usd_per_hour"])) == ("1", Decimal(45))


@pytest.mark.parametrize(
    ("rate", "says"),
    [
        ("p5.48xlarge=65", "write MACHINE:TERM=USD"),
        ("p5.48xlarge:one-year=free", "write MACHINE:TERM=USD"),
        ("p9.large:one-year=65", "no pool of the policy sells it on demand"),
    ],
)
def test_a_rate_that_cannot_be_used_is_said(rate: str, says: str) -> None:
    """By what is wrong with it."""
    with pytest.raises(BadInput, match=says):
        run("--rate", rate)
