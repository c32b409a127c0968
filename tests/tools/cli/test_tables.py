"""Every command that prints a table, at 60, 80 and 120 columns: nothing cut, money whole, no line too wide."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from both_ways import served
from civo_server import REGION, TOKEN, Civo, serving
from small_cloud import world
from typer.testing import CliRunner

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.facts.money.bill import CostLine, MeterDay
from pilotlight.state_schema.billing_records import METER
from pilotlight.tools.cli.command_table import COMMANDS
from pilotlight.tools.cli.main import build
from pilotlight.units import EPOCH

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "events" / "samples"
TODAY = datetime.now(EPOCH.tzinfo).date().replace(day=1)
MONEY = re.compile(r"\$[\d,]+(?:\.\d+)?")

POLICY = """
version: 1
pools: {t4: {instance_type: g4dn.xlarge}}
budgets:
  - {name: everything-that-the-research-teams-do, scope: {team: research}, usd: 2345678.90, period: month}
  - {name: rate, usd: 1234567.89, period: hour}
alerts: {channels: {the-channel-of-the-people-on-call: {kind: console}}}
"""
TRACE = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\na,0,60,1,1000,,team,,\n"

TABLES = {
    "report": "report",
    "bill": "bill",
    "targets": "targets",
    "commitments --rate g4dn.xlarge:one-year=0.35": "commitments",
    "pools": "pools",
    "budget": "budget",
    "alerts list": "alerts",
    "state ls": "state",
    f"sizes --region {REGION}": "sizes",
    "cost-of-self --events-per-day 999999999": "cost-of-self",
    "whatif": "whatif",
    "replay trace.csv --against karpenter": "replay",
    "tune trace.csv --values 3 --against keda": "tune",
    "stats trace.csv": "stats",
    "runs trace.csv": "runs",
    "synth -o week.csv.gz": "synth",
    "trace --from openb openb.csv -o out.csv.gz": "trace",
}
"""The words that print one, and their command. ``week`` prints replay's, ``demo`` those of report and budget."""


ELSEWHERE = {
    "waste": "test_waste_command.py",
    "gpus": "test_gpus_command.py",
    "plan": "test_plan_command.py",
    "queues": "test_queue_commands.py",
    "reclaim": "test_reclaim_commands.py",
    "shadow": "test_shadow_commands.py",
    "spot": "test_spot_command.py",
}
"""Commands whose tables are tried where there is a Prometheus, a queue, or a record of what others did, for them."""


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment: a store with a day's costs and an alert, a cloud that sells sizes, a trace."""
    home = tmp_path_factory.mktemp("home")
    (home / "policy.yaml").write_text(POLICY)
    (home / "trace.csv").write_text(TRACE)
    (home / "openb.csv").write_text(OPENB)
    environ = {
        "PILOTLIGHT_HOME": str(home),
        "PILOTLIGHT_POLICY": str(home / "policy.yaml"),
        "CIVO_TOKEN": TOKEN,
    }
    begin = datetime(TODAY.year, TODAY.month, 1, tzinfo=EPOCH.tzinfo)
    line = CostLine(
        kind="used", team="research-of-large-language-models", usd=Decimal("1234567.89"), gpu_hours=Decimal("98765.4"),
        begin=begin, pool="t4", node="n", instance_type="g4dn.xlarge", capacity_type="on-demand",
    )  # fmt: skip
    state = SqliteState(home / "state.db", SystemClock())
    METER.write(state, f"local/{TODAY}", MeterDay(day=TODAY, until=begin + timedelta(days=1), lines=(line,)))
    with serving(Civo(world())) as url:
        environ["CIVO_API_URL"] = url
        _run("send " + str(SAMPLES / "pilotlight" / "alert.json"), environ)
        yield environ


@pytest.fixture(scope="module")
def outside() -> Iterator[str]:
    """Address of a served world, whose pools are asked for."""
    with served(world()) as server:
        yield server.url


OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,0\n"
)


def _run(line: str, environ: dict[str, str], columns: int = 160) -> str:
    home = Path(environ["PILOTLIGHT_HOME"])
    words = [str(home / word) if word.endswith((".csv", ".csv.gz")) else word for word in line.split()]
    done = CliRunner().invoke(build(words), words, env={**environ, "COLUMNS": str(columns)}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("line", [pytest.param(line, id=line.split(" -")[0]) for line in TABLES])
def test_a_table_is_whole_at_any_width(deployment: dict[str, str], outside: str, line: str) -> None:
    """What is printed wide is printed narrow: the same dollars and the same letters, in lines that fit."""
    own = {**deployment, "PILOTLIGHT_WORLD": outside} if line == "pools" else deployment
    wide, *others = (_run(line, own, columns) for columns in (1000, 120, 80, 60))
    for columns, text in zip((120, 80, 60), others, strict=True):
        assert max(map(len, text.splitlines())) <= columns
        assert "…" not in text
        assert set(MONEY.findall(text)) == set(MONEY.findall(wide))


def test_every_command_that_prints_a_table_is_here() -> None:
    """Where a module of the command line makes a sheet, one of its commands is in the list above."""
    cli = ROOT / "shared" / "pilotlight" / "tools" / "cli"
    for module, commands in COMMANDS.items():
        if re.search(r"Sheet\(|_table import|render\(", (cli / f"{module.replace('.', '/')}.py").read_text()):
            assert {*commands} & {*TABLES.values(), *ELSEWHERE, "demo"}, module


def test_one_module_alone_makes_tables() -> None:
    """Rich's own table is used in one place, so that all look alike."""
    package = ROOT / "shared" / "pilotlight"
    found = [
        path.name
        for path in package.rglob("*.py")
        if re.search(r"import .*\bTable\b|Table\.grid|rich\.table", path.read_text()) and "rich" in path.read_text()
    ]
    assert found == ["sheet.py"]
