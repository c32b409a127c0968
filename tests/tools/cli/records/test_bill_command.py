"""pilotlight bill: the bill beside the meter, as a person reads it."""

import json
import os
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.decide.money.metering import day_start
from pilotlight.errors import BadInput
from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, MeterDay
from pilotlight.state_schema.billing_records import BILL, METER
from pilotlight.tools.cli.main import build

FIRST = date(2026, 9, 28)


@pytest.fixture(autouse=True)
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten days at $10 metered from the 28th on, billed at $11 up to the 5th of October."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    state = SqliteState(tmp_path / "state.db", SystemClock())
    for day in (FIRST + timedelta(days=n) for n in range(10)):
        line = CostLine(kind="used", pool="t4", node="n", instance_type="x", capacity_type="spot", usd=Decimal(10))
        METER.write(state, f"local/{day}", MeterDay(day=day, until=day_start(day), lines=(line,)))
        if day < date(2026, 10, 6):
            row = BilledDay(day=day, usd=Decimal(11), pool="t4")
            BILL.write(state, f"local/{day}/s", BillDay(day=day, source="s", rows=(row,)))


def run(*words: str) -> str:
    """What the command prints."""
    return CliRunner().invoke(build(["bill"]), ["bill", *words], catch_exceptions=False).stdout


def test_days_what_is_learnt_and_what_is_to_come_are_shown() -> None:
    """Five days of October, a correction that comes from September too, and two days that are not billed yet."""
    shown = " ".join(run("--month", "2026-10").split())
    assert "2026-10-05 t4 $11.00 $10.00 $1.00 +10.0 %" in shown
    assert "all $55.00 $50.00 $5.00 +10.0 %" in shown
    assert (
        "pool t4 is billed at 1.100 of what is metered, learnt on 2026-10-05 from 7 days ($77.00 billed, $70.00 metered"
    ) in shown
    assert "not billed yet: pool t4 metered at $20.00, by what is learnt $22.00" in shown
    assert "budgets, holds and caps are not moved by it" in shown


def test_json_has_every_figure_as_text() -> None:
    """Dollars are exact."""
    (found,) = json.loads(run("--month", "2026-10", "--json"))
    assert found["awaited"] == [{"pool": "t4", "metered": "20", "corrected": "22.0"}]
    assert [one["more"] for one in found["days"]] == 5 * ["1"]
    assert found["learnt"][0]["factor"] == "1.1"


def test_a_month_of_nothing_says_what_to_look_at() -> None:
    """It is no error, and neither is a day that is billed alone."""
    state = SqliteState(Path(os.environ["PILOTLIGHT_HOME"]) / "state.db", SystemClock())
    row = BilledDay(day=date(2026, 2, 3), usd=Decimal(11), pool="t4")
    BILL.write(state, "local/2026-02-03/s", BillDay(day=row.day, source="s", rows=(row,)))
    for month in ("2026-01", "2026-02"):
        assert f"no day of {month} is both metered and billed: is PILOTLIGHT_BILLS set" in run("--month", month)


def test_a_wrong_month_or_cluster_is_said() -> None:
    """With what there is."""
    with pytest.raises(BadInput, match="write it as 2026-10"):
        run("--month", "October")
    with pytest.raises(BadInput, match="name one of local"):
        run("--cluster", "west")
