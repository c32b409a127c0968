"""pilotlight targets, as a person runs it."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.facts.memory import Memory, Tally
from pilotlight.facts.money.bill import CostLine, LineKind, MeterDay
from pilotlight.state_schema.billing_records import METER
from pilotlight.state_schema.decision_records import MEMORY
from pilotlight.tools.cli.main import build

AT = datetime(2026, 10, 5, tzinfo=UTC)


def _line(kind: LineKind, hours: int) -> CostLine:
    return CostLine(
        kind=kind, pool="t4", node="n", instance_type="x", capacity_type="spot",
        gpu_hours=Decimal(hours), usd=Decimal(hours),
    )  # fmt: skip


def test_the_card_comes_from_the_state_and_says_what_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods held half of what was paid for; 20 nodes were there within minutes; memory nobody measured."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    state = SqliteState(tmp_path / "state.db", SystemClock())
    METER.write(
        state, "local/2026-10-05", MeterDay(day=AT.date(), until=AT, lines=(_line("used", 5), _line("idle", 5)))
    )
    tally = Tally()
    for _ in range(20):
        tally = tally.count_duration("boot", 150)
    MEMORY.put(state, "local", Memory(tally=tally))

    def run(*words: str) -> str:
        line = ["targets", "--month", "2026-10", *words]
        return CliRunner().invoke(build(line), line, catch_exceptions=False, env={"COLUMNS": "200"}).stdout

    shown = " ".join(run().split())
    assert "fleet use 65% to 85% at most 50.0% no" in shown
    assert "P95 wait, production under 10 min at most 3 min yes" in shown
    assert "not measured: name a Prometheus with --prometheus" in shown
    assert [one["met"] for one in json.loads(run("--json"))] == [False, None, None, True, True]
