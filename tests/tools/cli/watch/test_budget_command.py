"""pilotlight budget, as a person runs it on a deployment's state."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from both_ways import served
from small_cloud import world
from typer.testing import CliRunner, Result

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.facts.money.bill import CostLine, MeterDay
from pilotlight.state_schema.billing_records import METER
from pilotlight.tools.cli.main import build
from pilotlight.units import EPOCH

POLICY = """
version: 1
pools: {t4: {instance_type: g4dn.xlarge}}
budgets:
  - {name: research, scope: {team: research}, usd: 200, period: month}
  - {name: rate, usd: 50, period: hour}
"""


def run(*words: str) -> Result:
    """The command's outcome; what it raises goes on to the test."""
    wide = {"COLUMNS": "120"}
    return CliRunner().invoke(build(["budget"]), ["budget", *words], catch_exceptions=False, env=wide)


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteState:
    """A store and a policy with two budgets."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("PILOTLIGHT_POLICY", str(tmp_path / "policy.yaml"))
    return SqliteState(tmp_path / "state.db", SystemClock())


def metered(state: SqliteState, day: date, usd: str) -> None:
    """A day that the meter closed, with one line of team research."""
    fields: dict[str, Any] = {"pool": "t4", "node": "n", "instance_type": "g4dn.xlarge", "capacity_type": "on-demand"}
    begin = datetime(day.year, day.month, day.day, tzinfo=EPOCH.tzinfo)
    line = CostLine(kind="used", team="research", usd=Decimal(usd), begin=begin, **fields)
    made = MeterDay(day=day, until=begin + timedelta(days=1), lines=(line,))
    METER.write(state, f"local/{day}", made)


def test_an_empty_deployment_has_a_table(deployment: SqliteState) -> None:
    """Budgets that nothing was spent of are shown too, a rate with what is held of it."""
    shown = run().stdout
    assert "research (team research)" in shown
    assert "$200.00 a month" in shown
    assert "$50.00 an hour" in shown
    assert "0 %" in shown


def test_what_was_metered_is_spent(deployment: SqliteState) -> None:
    """The figures are those of the state, as JSON too."""
    today = datetime.now(UTC).date()
    metered(deployment, today.replace(day=1), "170")
    (research, rate) = json.loads(run("--json").stdout)
    assert (research["metered"], research["billed"], research["used"]) == ("170", "0", "0.85")
    assert (rate["measure"], rate["limit"], rate["period"]) == ("usd_per_hour", "50", None)
    assert "85 %" in run().stdout


def test_nodes_without_a_price_make_it_a_least(deployment: SqliteState) -> None:
    """They are in no dollars: the metered and the end of the period say "at least", and a line says how many."""
    day = datetime.now(UTC).date().replace(day=1)
    begin = datetime(day.year, day.month, day.day, tzinfo=EPOCH.tzinfo)
    made = MeterDay(day=day, until=begin + timedelta(days=1), lines=(), unpriced=("n1", "n2"))
    METER.write(deployment, f"local/{day}", made)
    shown = run().stdout
    assert "2 nodes of unknown price: what is metered is a least" in shown
    assert shown.count("at least") == 2
    (research, rate) = json.loads(run("--json").stdout)
    assert (research["unpriced"], rate["unpriced"]) == (2, 0)


def test_without_budgets_it_says_where_they_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No table, no error."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    with served(world()) as outside:
        monkeypatch.setenv("PILOTLIGHT_WORLD", outside.url)
        assert "no budgets" in run().stdout


def test_help_has_an_example() -> None:
    """As every command's."""
    assert "pilotlight budget --json" in run("--help").stdout


@pytest.mark.parametrize("named", [True, False], ids=["a policy is named", "none is"])
def test_a_state_that_was_left_is_answered_for(
    named: bool, deployment: SqliteState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of records without their cluster it tells the budgets of the policy, or why there are none, as report answers."""
    metered(deployment, date(2026, 10, 5), "1")
    monkeypatch.setenv("PILOTLIGHT_POLICY", str(tmp_path / "policy.yaml") if named else "")
    said = run("--state", f"sqlite:{tmp_path / 'state.db'}").stdout
    assert ("research" in said) is named
    assert ("no policy is named, and the built-in one has no budgets: name yours by --policy" in said) is not named
