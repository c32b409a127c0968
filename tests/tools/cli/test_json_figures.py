"""``--json`` of every command that has figures: short ones, and parts that add up to their total as it is printed."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from both_ways import served
from small_cloud import world
from typer.testing import CliRunner

from pilotlight.tools.cli.main import build

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = ROOT / "examples" / "cluster"
LONG = re.compile(r"[\w\" :]*\d\.\d{10,}")
TRACE = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\n" + "".join(
    f"j{n},{n * 1111.5},{700 + n / 8},1,1000,,team,,\n" for n in range(7)
)


def run(words: str, tmp_path: Path, **environ: str) -> str:
    """What a command prints."""
    named = words.format(cluster=CLUSTER, samples=ROOT / "events" / "samples", tmp=tmp_path).split()
    done = CliRunner().invoke(
        build(named), named, env={"PILOTLIGHT_HOME": str(tmp_path / "home"), **environ}, catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(
    "words",
    [
        "plan --pods {cluster}/pods.json --nodes {cluster}/nodes.json --json",
        "send {samples}/kubernetes/failed_scheduling.json --dry-run --json",
        "whatif --json",
        "pools --json",
        "cost-of-self --events-per-day 2003 --json",
        "replay {tmp}/trace.csv --against keda --json",
        "stats {tmp}/trace.csv --json",
        "check {cluster}/../policy.yaml --json",
    ],
)
def test_json_has_no_digits_that_a_division_left(tmp_path: Path, words: str) -> None:
    """Nine after the point at most."""
    (tmp_path / "trace.csv").write_text(TRACE)
    with served(world()) as outside:
        said = run(words, tmp_path, **({"PILOTLIGHT_WORLD": outside.url} if words.startswith("pools") else {}))
    json.loads(said)
    assert LONG.findall(said) == []


@pytest.mark.parametrize("events", ["0", "2000", "2003", "777777"])
def test_what_pilotlight_costs_adds_up_as_it_is_printed(tmp_path: Path, events: str) -> None:
    """As JSON and, in cents, in the table."""
    body = json.loads(run(f"cost-of-self --events-per-day {events} --json", tmp_path))
    assert sum(Decimal(line["usd"]) for line in body["lines"]) == Decimal(body["usd_per_month"])
    table = run(f"cost-of-self --events-per-day {events}", tmp_path)
    *lines, total = [Decimal(usd.replace(",", "")) for usd in re.findall(r"\$([\d,]+\.\d\d)", table)]
    assert sum(lines) == total == round(Decimal(body["usd_per_month"]), 2)


def test_what_a_plan_changes_adds_up_as_it_is_printed(tmp_path: Path) -> None:
    """Dollars an hour now, and what the plan adds, are those after it."""
    said = run("plan --pods {cluster}/pods.json --nodes {cluster}/nodes.json", tmp_path)
    [(now, after, change)] = re.findall(r"\$([\d.]+)/h now, \$([\d.]+)/h after this plan \(\+\$([\d.]+)/h\)", said)
    assert Decimal(now) + Decimal(change) == Decimal(after)
