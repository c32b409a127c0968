"""A state that an earlier version wrote is read, imported, and gone on from.

``exports/before_tables.jsonl`` is what ``pilotlight state export`` of version 0.1 (commit adc7451) wrote after a day of
purchases, holds, bills, alerts, an interruption and a worker that died between its record and its messages, with every
family of keys that there was: the lease of a dead worker, a rescue at work and an open decision among them.
"""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from stage import START, Stage
from typer.testing import CliRunner

from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.cli.main import build
from pilotlight.facts.messages import Tick
from pilotlight.facts.policy import Budget
from pilotlight.flow.billing import bill, meter
from pilotlight.flow.billing.tick import billing
from pilotlight.flow.look import instances
from pilotlight.flow.memory import brakes, ledger
from pilotlight.ports import State
from pilotlight.state_schema.billing import LIVES
from pilotlight.state_schema.registry import read
from pilotlight.state_schema.table import pages
from pilotlight.units import cents

EXPORT = Path(__file__).parents[1] / "state_schema" / "exports" / "before_tables.jsonl"
WRITTEN_AT = START + timedelta(hours=15, minutes=30)
SPENT = {date(2026, 11, 20): "$55.93", date(2026, 11, 21): "$5.94"}
"""What the version that wrote it said its meter had counted."""

FAMILIES = """approved bill bill-read burst cap chat decision event fence flush heard hold inflight instances
interruption ladder lease life look-again memory meter metered metering noticed open pause proof rescue rest runs silent
tick told waiting"""


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a store into which a person imported the export."""
    file = tmp_path / "state.db"
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{file}")
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    done = CliRunner().invoke(build(["state"]), ["state", "import", str(EXPORT)])
    assert done.exit_code == 0, done.output
    assert "wrote 76 records" in done.output
    return file


def on(file: Path) -> Stage:
    """The cluster of the export, at the moment when that was written, with its nodes gone."""
    stage = Stage(budgets=(Budget(name="all", usd=Decimal(10_000)),))
    stage.wait((WRITTEN_AT - START).total_seconds())
    stage.deps = replace(stage.deps, state=SqliteState(file, stage.world.clock))
    # Stores do not tell when a record ends: an import begins its time anew, on the host's clock.
    for key, stored in list(pages(SqliteState(file), "")):
        stage.deps.state.put(key, stored.value, ttl_s=60 if key.startswith("lease/") else None)
    return stage


def spent(state: State) -> dict[date, Decimal]:
    """What the meter says of each day."""
    days = meter.days(state, "c", START.date(), WRITTEN_AT.date())
    return {day.day: sum((line.usd for line in day.lines), Decimal(0)) for day in days}


def test_every_family_of_before_is_in_the_export_and_read() -> None:
    """Each record that the earlier version wrote is brought to what this version has."""
    lines = [msgspec.json.decode(line, type=dict[str, msgspec.Raw]) for line in EXPORT.read_bytes().splitlines()]
    records = {msgspec.json.decode(line["key"], type=str): bytes(line["value"]) for line in lines}
    assert sorted({key.partition("/")[0] for key in records}) == FAMILIES.split()
    for key, record in records.items():
        assert read(key, record) is not None


def test_what_was_counted_and_known_is_there(imported: Path) -> None:
    """The meter's days, the bill, the lives and the places of instances are as they were, to the cent."""
    stage = on(imported)
    state: State = stage.deps.state
    assert {day: cents(usd) for day, usd in spent(state).items()} == SPENT
    assert [str(one.usd) for one in bill.days(state, "c", START.date(), WRITTEN_AT.date())] == ["12.5"]
    lives = {name for entry in LIVES.table.scan(state, "c/") for name in entry.value.items}
    assert len(lives) == 4
    assert instances.where(stage.deps, "n1") is not None


def test_flows_go_on_from_it(imported: Path) -> None:
    """The dead worker's decision is settled, what is left of its messages is sent, and new work is bought for."""
    stage = on(imported)
    brakes.resume(stage.deps.state, "c", "eight")
    stage.wait(61)
    stage.minutes(40)
    assert list(ledger.open_records(stage.deps.state, "c")) == []
    stage.event(stage.submit("new", gpus=8, run_s=600, team="red"))
    assert stage.nodes("eight") == 1
    stage.minutes(5)
    billing(stage.deps, Tick(cluster="c", what="billing"))
    after = spent(stage.deps.state)
    assert cents(after[START.date()]) == SPENT[START.date()]
    assert after[WRITTEN_AT.date()] > Decimal("5.94")
    for key, stored in pages(stage.deps.state, ""):
        assert read(key, stored.value) is not None
