"""pilotlight commitments: what to pay ahead, with its sum."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput
from pilotlight.facts.money.bill import HourCost, HourSums
from pilotlight.state_schema.billing_records import HOUR
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
