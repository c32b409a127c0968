"""``pilotlight pools`` over a served world whose nodes a stand-in of AWS sells."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aws_server import EKS, REGION, Aws, activity, serving
from both_ways import served
from small_cloud import world
from typer.testing import CliRunner

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.facts.offers.catalog import LivePrices
from pilotlight.state_schema.billing_records import PRICES
from pilotlight.tools.cli.main import build
from pilotlight.world.fleet import STOPS_S

POLICY = """
version: 1
pools:
  one: {cloud: eks, cluster_pool: one-nodes, instance_type: t4.small, max: 4, mode: act}
  other: {cloud: eks, instance_type: no.such, max: 2}
"""
CATALOG = """
name: small
as_of: 2026-11-01T00:00:00Z
instance_types:
  t4.small: {cloud: eks, gpu_model: T4, gpus: 1, cpu: "4", memory: 16Gi,
             prices: {on-demand: {usd_per_hour: 2, source: a test, date: 2026-11-01}}}
"""


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Aws]:
    """An account with two nodes in one pool, and the environment that leads to it."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "catalog.yaml").write_text(CATALOG)
    here = Aws(world())
    here.world.launch("one", 2)
    with served(here.world) as outside, serving(here) as environ:
        own = {
            "PILOTLIGHT_HOME": str(tmp_path),
            "PILOTLIGHT_POLICY": str(tmp_path / "policy.yaml"),
            "PILOTLIGHT_CATALOG": str(tmp_path / "catalog.yaml"),
            "PILOTLIGHT_WORLD": outside.url,
            "PILOTLIGHT_POOLS": f"asg:{REGION}/{EKS}",
        }
        for name, value in {**own, **environ}.items():
            monkeypatch.setenv(name, value)
        yield here


def run(*words: str) -> str:
    """What is printed."""
    done = CliRunner().invoke(build(["pools"]), ["pools", *words], catch_exceptions=False, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_pool_is_a_row(aws: Aws) -> None:
    """What is there, what a node of it costs and all of them now; a pool that its cloud does not have says so."""
    found: dict[str, Any] = json.loads(run("--json"))
    (rows,) = found.values()
    assert [(row["pool"], row["size"], row["usd_per_hour"], row["paid"], row["mode"]) for row in rows] == [
        ("one", 2, "2", "4", "act"),
        ("other", None, None, None, "act"),
    ]
    shown = run()
    assert all(word in shown for word in ("one", "$2.00/h", "$4.00/h", "not there", "price unknown"))
    assert aws.changes() == []


def test_a_reserved_pool_costs_what_a_bill_spreads_over_it(aws: Aws, tmp_path: Path) -> None:
    """Three nodes at $0.60 of a plan, whether they run or not; without a bill what runs costs $0."""
    own = POLICY.replace("max: 4", "max: 4, capacity_type: reserved, paid: {nodes: 3}")
    (tmp_path / "policy.yaml").write_text(own)
    assert json.loads(run("--json"))["local"][0]["paid"] == "0"
    state = SqliteState(tmp_path / "state.db", SystemClock())
    PRICES.put(state, "local", LivePrices(at=state.now(), committed={"one": Decimal("0.6")}))
    row = json.loads(run("--json"))["local"][0]
    assert (row["reserved"], row["paid"]) == (3, "1.8")


def test_what_stands_by_and_what_failed_is_shown(aws: Aws) -> None:
    """Stopped instances beside the pool, and the cloud's own words of its last failed launch."""
    (name,) = aws.world.launch("one")
    aws.world.advance(3600)
    aws.world.fleet.stop(aws.world.nodes[name], aws.world.now_s - STOPS_S)
    aws.extra["one"] = {"DesiredCapacity": 5}
    aws.failed.append(activity(aws.group_name("one"), "VcpuLimitExceeded: 32 vCPUs", aws.world.clock.now()))
    ((row, _),) = json.loads(run("--json")).values()
    assert (row["standby"], row["last_error"]) == (1, "VcpuLimitExceeded: 32 vCPUs")
