"""pilotlight bill: the bill beside the meter, as a person reads it, and its proof by node."""

import json
import os
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.decide.money.metering import day_start
from pilotlight.errors import BadInput
from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, MeterDay, MeteredNode, MeterPart, Stretch
from pilotlight.state_schema.billing_records import BILL, METER, METERING
from pilotlight.tools.cli.main import build
from pilotlight.tools.cli.records.bill_proof import meter_nodes_of

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
    found = CliRunner().invoke(build(["bill"]), ["bill", *words], catch_exceptions=False, env={"COLUMNS": "160"})
    return found.stdout


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


def _metered_node(day: date, since: datetime, until: datetime, instance: str) -> MeteredNode:
    begin = max(since, day_start(day))
    micros = (until - begin) // timedelta(microseconds=1)
    return MeteredNode(
        name=f"node-{instance}", pool="t4", instance_type="g4dn.xlarge", capacity_type="on-demand", gpus=1,
        usd_per_hour=Decimal("3.6"), since=since, until=until, gone_at=until, ready=True,
        stretches=(Stretch("used", "ml", "nlp", "", day_start(day), micros),),
    )  # fmt: skip


@pytest.fixture
def proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that ran from ten to two on the 2nd, billed to the hour by a price ten cents up, and one never metered."""
    state = SqliteState(tmp_path / "state.db", SystemClock())
    day = date(2026, 10, 2)
    ten = day_start(day) + timedelta(hours=10)
    node = _metered_node(day, ten, ten + timedelta(hours=3.5), "i-0aaaaaaaa")
    METERING.put(state, f"local/{day}/00", MeterPart(day=day, seen=day_start(day), nodes={"i-0aaaaaaaa": node}))
    names = (
        "BilledCost,EffectiveCost,ListCost,ListUnitPrice,PricingQuantity,PricingUnit,ChargeCategory,"
        "ChargePeriodStart,ChargePeriodEnd,ResourceId,Tags"
    )
    rows = [
        f"3.7,3.1,3.7,3.7,1,Hours,Usage,2026-10-02T{hour}:00:00Z,2026-10-02T{hour + 1}:00:00Z,i-0aaaaaaaa,"
        for hour in range(10, 14)
    ]
    tag = '"{""pilotlight.dev/pool"": ""t4""}"'
    rows.append(f"5,5,5,5,1,Hours,Usage,2026-10-03T10:00:00Z,2026-10-03T11:00:00Z,i-0bbbbbbbb,{tag}")
    rows.append("9,9,9,9,1,Hours,Usage,2026-10-04T23:00:00Z,2026-10-05T00:00:00Z,i-0cccccccc,")
    (tmp_path / "bill.csv").write_text("\n".join([names, *rows]) + "\n", "utf-8")
    monkeypatch.setenv("PILOTLIGHT_BILLS", f"focus:{tmp_path}/bill.csv")


@pytest.mark.usefixtures("proved")
def test_a_proof_tells_by_node_why_its_bill_differs() -> None:
    """Half an hour rounded up and a dearer price; a node that was never metered is unexplained; others are not ours."""
    shown = " ".join(run("--proof", "2026-10").split())
    assert "2026-10-01 to 2026-10-04: the bill by node" in shown
    assert "node-i-0aaaaaaaa $12.60 $14.80 $12.40 $2.20 rounding $1.80, price $0.40" in shown
    assert "i-0bbbbbbbb $0.00 $5.00 $5.00 $5.00 unexplained $5.00" in shown
    assert "i-0cccccccc" not in shown
    assert "n $30.00 $0.00 $0.00 -$30.00 unexplained -$30.00" in shown
    assert "metered $42.60, 215.15 % of $19.80 billed; $35.00 unexplained, on 2 nodes" in shown


@pytest.mark.usefixtures("proved")
def test_a_proof_as_json_has_parts_that_add_up() -> None:
    """Every figure as text, and the parts of each difference are it."""
    found = json.loads(run("--proof", "2026-10", "--json"))
    assert (found["first"], found["last"], found["unexplained"]) == ("2026-10-01", "2026-10-04", "35")
    for one in (*found["nodes"], found["total"]):
        assert sum(map(Decimal, one["parts"].values())) == Decimal(one["more"])
    assert [one["node"] for one in found["nodes"]] == ["n", "i-0bbbbbbbb", "node-i-0aaaaaaaa"]


@pytest.mark.usefixtures("proved")
def test_what_a_proof_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two months, a month that is not billed, and a bill that is no file."""
    with pytest.raises(BadInput, match="--proof names its month: leave --month out"):
        run("--proof", "2026-10", "--month", "2026-10")
    with pytest.raises(BadInput, match="--proof October: write it as 2026-10"):
        run("--proof", "October")
    assert "no whole day of 2026-12 is both metered and billed" in run("--proof", "2026-12")
    assert run("--proof", "2026-12", "--json") == "null\n"
    monkeypatch.setenv("PILOTLIGHT_BILLS", "civo:LON1")
    with pytest.raises(BadInput, match="set PILOTLIGHT_BILLS to focus:URI of its files"):
        run("--proof", "2026-10")


def test_a_node_that_was_stopped_and_started_again_is_two_lives(tmp_path: Path) -> None:
    """Its dollars and hours are of both, and the first ends where the second begins; the bill's hours go by that."""
    state = SqliteState(tmp_path / "state.db", SystemClock())
    first, last = date(2026, 10, 2), date(2026, 10, 3)
    ten, noon = day_start(first) + timedelta(hours=10), day_start(last) + timedelta(hours=12)
    before = msgspec.structs.replace(_metered_node(first, ten, day_start(last), "i-0aaaaaaaa"), gone_at=None)
    after = _metered_node(last, noon, noon + timedelta(hours=1), "i-0aaaaaaaa")
    for day, node in ((first, before), (last, after)):
        METERING.put(state, f"local/{day}/00", MeterPart(day=day, seen=day_start(day), nodes={"i-0aaaaaaaa": node}))
    days = [MeterDay(day=day, until=day_start(day + timedelta(days=1))) for day in (first, last)]
    (meter,) = meter_nodes_of(state, "local", days, [first, last])
    assert (meter.usd, meter.hours) == (Decimal("54"), Decimal(15))
    assert [(life.since, life.ended) for life in meter.lives] == [(ten, noon), (noon, noon + timedelta(hours=1))]
