"""pilotlight report, as a person runs it on a deployment's state: every form of it says the same figures."""

import csv
import json
import os
from datetime import date, datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput
from pilotlight.facts.money.bill import Anomaly, BillDay, BilledDay, CostLine, LineKind, MeterDay
from pilotlight.facts.offers.paid_capacity import UnusedMonth, UnusedPool
from pilotlight.state_schema.billing_records import ANOMALY, BILL, METER, PAID_IDLE
from pilotlight.tools.cli.main import build
from pilotlight.units import EPOCH

DAY = date(2026, 10, 5)
OCTOBER = ("--month", "2026-10")


def _line(kind: LineKind, usd: str, team: str = "") -> CostLine:
    where: dict[str, Any] = {"pool": "t4", "node": "n", "instance_type": "g4dn.xlarge", "capacity_type": "spot"}
    return CostLine(kind=kind, team=team, usd=Decimal(usd), gpu_hours=Decimal(usd), **where)


@pytest.fixture(autouse=True)
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store with one day of October: two teams, idle and shared time, a part of a cent each; and its bill."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    state = SqliteState(tmp_path / "state.db", SystemClock())
    lines = (
        _line("used", "10.004", "research"), _line("used", "5.004", "vision"),
        _line("idle", "2.004"), _line("shared", "1.004"),
    )  # fmt: skip
    begin = datetime(DAY.year, DAY.month, DAY.day, tzinfo=EPOCH.tzinfo)
    made = MeterDay(day=DAY, until=begin + timedelta(days=1), lines=lines)
    METER.write(state, f"local/{DAY}", made)
    billed = BillDay(day=DAY, source="s", rows=(BilledDay(day=DAY, usd=Decimal(20)),))
    BILL.write(state, f"local/{DAY}/s", billed)


def run(*words: str) -> Result:
    """The command's outcome; what it raises goes on to the test."""
    return CliRunner().invoke(build(["report"]), ["report", *words], catch_exceptions=False)


def test_the_table_adds_up_and_is_held_against_the_bill() -> None:
    """Teams, idle and shared as printed are the total as printed; what the meter cannot explain is told."""
    shown = " ".join(run(*OCTOBER).stdout.split())
    assert "2026-10-01 to 2026-10-31: $18.02" in shown
    assert "teams $15.02 + idle $2.00 + shared $1.00 = $18.02" in shown
    assert "billed $20.00 for 1 whole day on which the meter counted $18.02: $1.98 is unexplained" in shown


def test_with_nothing_set_up_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a cluster, a serve and a record it names the next command, and no table of zeros."""
    said = " ".join(run(*OCTOBER).stdout.split())
    assert said.startswith("cluster local, a pretend world with pretend dollars (no cluster is set up); state ")
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path / "fresh"))
    for words in ((), ("--by", "team"), ("--json",)):
        with pytest.raises(BadInput, match=r"nothing is set up here: .*; next: pilotlight plan --sample"):
            run(*words)
    monkeypatch.setenv("PILOTLIGHT_CLUSTER", "prod")
    assert "no node was lit" in run().stderr


def test_odd_hours_egress_and_a_thousand_requests_are_told_beside_the_lines() -> None:
    """Two odd hours of a day and pool are one line with the worst one's cause; all of it is in --json."""
    state = SqliteState(Path(os.environ["PILOTLIGHT_HOME"]) / "state.db", SystemClock())
    at = datetime(2026, 10, 5, 11, tzinfo=EPOCH.tzinfo)
    for hour, usd in ((10, 64), (11, 96)):
        odd = Anomaly(
            at=at, usd=Decimal(usd), usual=Decimal(2), spread=Decimal(0), hours=5, weekday=0, pool="t4",
            pool_usd=Decimal(usd), pool_usual=Decimal(2), team="research", team_usd=Decimal(usd), team_usual=Decimal(0),
            decision="01795324291264-5d3ade71",
        )  # fmt: skip
        ANOMALY.put(state, f"local/2026-10-05T{hour}", odd)
    moved = BilledDay(day=DAY, usd=Decimal("1.25"), egress=True)
    BILL.write(state, f"local/{DAY}/s", BillDay(day=DAY, source="s", rows=(moved,)))
    shown = " ".join(run(*OCTOBER, "--per", "requests=4000").stdout.split())
    assert "of the bill, $1.25 is for data that was moved (egress)" in shown
    assert "$4.5040 for each thousand of 4,000 requests" in shown
    assert "odd: 2 hours of 2026-10-05 cost $156.00 above what is usual: 5 Mondays at that hour: median $2.00" in shown
    assert "pool t4 $96.00 an hour (usually $2.00), research $96.00 (usually $0.00); bought by decision 01795" in shown
    found = json.loads(run(*OCTOBER, "--json").stdout)
    assert [one[1]["usd"] for one in found["anomalies"]] == ["64", "96"]
    assert (found["egress"], found["idle_hour"]) == ("1.25", "1")


def test_what_was_paid_for_and_ran_nowhere_is_told_beside_the_lines() -> None:
    """Its GPU-hours and what they cost on demand, in no line and no total; a team's report has none of it."""
    state = SqliteState(Path(os.environ["PILOTLIGHT_HOME"]) / "state.db", SystemClock())
    unused = UnusedPool(gpu_hours=Decimal(96), usd=Decimal("412.8"))
    until = datetime(2026, 10, 7, tzinfo=EPOCH.tzinfo)
    PAID_IDLE.put(state, "local/2026-10", UnusedMonth(until=until, pools={"h100": unused}))
    said = "paid for and unused, in no line: 96.0 GPU-hours of pool h100, $412.80 on demand"
    shown = " ".join(run(*OCTOBER).stdout.split())
    assert (said in shown, "$18.02 for 18.0 GPU-hours" in shown) == (True, True)
    assert json.loads(run(*OCTOBER, "--json").stdout)["paid_idle"][0]["gpu_hours"].startswith("96")
    assert said not in " ".join(run(*OCTOBER, "--team", "research").stdout.split())


def test_json_has_every_figure_unrounded() -> None:
    """As exact text; a unit gives its cost each."""
    told = json.loads(run(*OCTOBER, "--json", "--per", "epochs=9").stdout)
    assert (told["total"]["usd"], told["used"]["usd"], told["billed"]) == ("18.016", "15.008", "20")
    assert [(team["name"], team["held"]["usd"]) for team in told["teams"]] == [
        ("research", "10.004"), ("vision", "5.004"),
    ]  # fmt: skip
    assert "$2.0018 for each of 9 epochs" in run(*OCTOBER, "--per", "epochs=9").stdout


def test_csv_has_each_part_in_cents_that_add_up() -> None:
    """For a spreadsheet."""
    rows = list(csv.DictReader(StringIO(run(*OCTOBER, "--csv").stdout)))
    for part in ("where it went", "by machine", "by pool"):
        assert sum(Decimal(row["usd"]) for row in rows if row["part"] == part) == Decimal("18.02")


def test_one_team_sees_its_own_alone() -> None:
    """What it held, with nothing idle, shared or another's."""
    told = json.loads(run(*OCTOBER, "--team", "research", "--json").stdout)
    assert (told["total"]["usd"], told["idle"]["usd"], told["billed"]) == ("10.004", "0", None)


def test_html_is_one_file_with_charts(tmp_path: Path) -> None:
    """Written where it was asked for, of a team too."""
    file = tmp_path / "october.html"
    assert f"{file} written" in run(*OCTOBER, "--team", "research", "--html", str(file)).stdout.replace("\n", "")
    text = file.read_text("utf-8")
    assert "GPU spending, October 2026, team research" in text
    assert "<svg" in text


@pytest.mark.parametrize(
    ("words", "kind", "says"),
    [
        pytest.param(("--month", "2026-13"), BadInput, "write it as 2026-10", id="a month there is not"),
        pytest.param((*OCTOBER, "--json", "--csv"), BadInput, "choose one", id="two forms"),
        pytest.param((*OCTOBER, "--per", "epochs"), BadInput, "as in epochs=96", id="a unit without a count"),
        pytest.param((*OCTOBER, "--per", "epochs=0"), BadInput, "as in epochs=96", id="none of a unit"),
        pytest.param((*OCTOBER, "--html", "/no/such/x.html"), BadInput, "name a file", id="a file that cannot be"),
        pytest.param((*OCTOBER, "--cluster", "other"), BadInput, "name one of local", id="another's cluster"),
    ],
)
def test_what_cannot_be_reported_is_said(words: tuple[str, ...], kind: type[Exception], says: str) -> None:
    """In one line that says what to write instead."""
    with pytest.raises(kind, match=says):
        run(*words)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(("--month", "2025-01"), "no node was lit in 2025-01", id="a month in which nothing was lit"),
        pytest.param((*OCTOBER, "--team", "nosuch"), "no line of team 'nosuch'", id="a team there is not"),
    ],
)
def test_a_report_of_nothing_is_zeros_and_says_so(words: tuple[str, ...], says: str) -> None:
    """It is no error: the figures are zeros, and the reason is on stderr, beside the JSON."""
    done = run(*words, "--json")
    assert done.exit_code == 0
    assert Decimal(json.loads(done.stdout)["total"]["usd"]) == 0
    assert says in done.stderr
    assert "$0.00" in run(*words).stdout
