"""``pilotlight gpus`` over a served world whose nodes a stand-in of AWS sells, and its rows as a table of cases."""

import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aws_server import EKS, REGION, Aws, serving
from both_ways import served
from small_cloud import START, pod, world
from typer.testing import CliRunner

from pilotlight.errors import BadInput
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.memory import Backoff, Memory
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.flow.records import brake_records
from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.main import build
from pilotlight.tools.glance.gpu_rows import GpuRow, gpu_rows
from pilotlight.tools.report.tables.gpus_table import summary
from pilotlight.wiring import App

POLICY = """
version: 1
pools:
  one: {cloud: eks, cluster_pool: one-nodes, instance_type: one, max: 4, mode: act}
  other: {cloud: eks, instance_type: no.such, max: 2}
"""
CATALOG = """
name: small
as_of: 2026-11-01T00:00:00Z
instance_types:
  one: {cloud: eks, gpu_model: T4, gpus: 1, cpu: "4", memory: 16Gi,
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


def run(*words: str, command: str = "gpus") -> str:
    """What is printed."""
    done = CliRunner().invoke(build([command]), [command, *words], catch_exceptions=False, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


def _rows(text: str) -> list[tuple[Any, ...]]:
    (rows,) = json.loads(text).values()
    return [(r["pool"], r["lit"], r["free"], r["could_buy"], r["usd_per_gpu_hour"]) for r in rows]


def test_what_is_free_and_what_could_be_bought_stands_by_pool(aws: Aws) -> None:
    """A lit GPU is free until a pod has it; the pool's max leaves two more; nothing is changed."""
    aws.world.submit([pod("held", on="one")], 7200.0)
    aws.world.advance(3600)
    found = _rows(run("--json"))
    assert found == [("one", 2, 1, 2, "2"), ("other", 0, 0, 0, None)]
    shown = run()
    assert "1 of 2 lit GPUs free; the cheapest to buy: T4 on-demand at $2.0000 a GPU-hour in pool one" in shown
    assert shown.startswith("cluster ")
    assert _rows(run("--free", "--model", "t4", "--json")) == found[:1]
    assert aws.changes() == []


def test_a_model_that_no_pool_has_is_bad_input(aws: Aws) -> None:
    """The error names those that there are."""
    with pytest.raises(BadInput, match=r"--model h100: no pool has it; there are T4"):
        run("--model", "h100")


def _node(name: str, **fields: Any) -> Node:
    plain: dict[str, Any] = {
        "pool": "a", "instance_type": "big", "capacity_type": "spot", "created_at": START, "ready": True,
        "devices": (1000, 500, 0), "zone": "z1",
    }  # fmt: skip
    return Node(name=name, **{**plain, **fields})


def _found(nodes: list[Node], *, size: int = 1, backoffs: tuple[Backoff, ...] = (), zone: str = "z1") -> list[GpuRow]:
    policy = Policy(version=1, pools={"a": PoolPolicy(cloud="eks", instance_type="big", capacity_type="spot", max=3)})
    sold = Offering(
        pool="a", instance_type="big", capacity_type="spot", gpu_model="T4", gpus=3, usd_per_hour=Decimal(6), zone=zone
    )
    clouds = [PoolState(name="a", desired=size)]
    return [*gpu_rows(policy, [sold], clouds, nodes, Memory(backoffs=backoffs), START)]


RESTS = Backoff(offering="a/big/z1/spot", until=START + timedelta(hours=1), why="no capacity")


def test_a_node_that_boots_is_shown_with_when_it_was_asked_for(aws: Aws) -> None:
    """In the table, in the sum and as JSON; once it is there it is lit."""
    aws.world.advance(3600)
    aws.world.launch("one", 1)
    (rows,) = json.loads(run("--json")).values()
    since = rows[0]["boots_since"]
    assert (rows[0]["lit"], rows[0]["booting"]) == (2, 1)
    assert f"1 node since {since[11:19]} UTC" in run()
    assert "2 of 2 lit GPUs free, 1 node boots; " in run()
    aws.world.advance(7200)
    (rows,) = json.loads(run("--json")).values()
    assert (rows[0]["lit"], rows[0]["booting"], rows[0]["boots_since"]) == (3, 0, None)


@pytest.mark.parametrize(
    ("mode", "paused", "says"),
    [
        ("act", "", "its cloud's quota and the budgets are asked at the purchase"),
        ("advise", "", "in mode advise nothing is bought by itself"),
        ("act", "one", "paused since "),
        ("act", "*", ": the bill"),
    ],
)
def test_a_pool_that_buys_nothing_by_itself_says_why(
    aws: Aws, tmp_path: Path, mode: str, paused: str, says: str
) -> None:
    """Its mode or a person's pause, in its note and in the sum; `pools` tells of the pause too."""
    (tmp_path / "policy.yaml").write_text(POLICY.replace("mode: act", f"mode: {mode}"))
    app = App(deployed_settings())
    if paused:
        brake_records.pause(app.state, app.settings.cluster_name, paused.strip("*"), "the bill", app.clock.now())
    text, pools = run(), run(command="pools")
    assert says in text.splitlines()[-1]
    assert ("paused since" in pools and ": the bill" in pools) == bool(paused)
    (rows,) = json.loads(run("--json")).values()
    assert bool(rows[0]["note"]) == (says != "its cloud's quota and the budgets are asked at the purchase")


def test_a_plan_names_each_node_whose_dollars_it_counts(aws: Aws) -> None:
    """One that boots too, by its instance: else dollars an hour now would be more than those of the nodes shown."""
    aws.world.launch("one", 1)
    planned = json.loads(run("--json", command="plan"))
    assert sum(node["usd_per_hour"] for node in planned["nodes"]) == planned["usd_per_hour_before"] == 6
    assert {node["verdict"] for node in planned["nodes"]} == {"keep"}
    text = run(command="plan")
    assert "[one, $2.00/h]: boots: asked for at " in text
    assert "no GPU node" not in text


def test_a_node_that_joined_and_is_not_ready_yet_boots() -> None:
    """Since it joined; one that was ready before is none that boots."""
    new, was = _node("n", ready=False), _node("m", ready=False, ready_since=START)
    assert [(row.booting, row.boots_since) for row in _found([new, was])] == [(1, START)]


@pytest.mark.parametrize(
    ("nodes", "more", "free", "closed", "could_buy", "note"),
    [
        pytest.param([_node("n")], {}, 1, 0, 6, "", id="a whole GPU is free, and room for two nodes more"),
        pytest.param([_node("n", ready=False)], {}, 0, 1, 6, "", id="not ready"),
        pytest.param([_node("n", schedulable=False)], {}, 0, 1, 6, "", id="cordoned"),
        pytest.param([_node("n", home="x")], {}, 0, 1, 6, "", id="kept for the pod it was bought for"),
        pytest.param([], {"size": 3}, 0, 0, 0, "at its max of 3", id="at its max"),
        pytest.param([], {"backoffs": (RESTS,)}, 0, 0, 0, "no capacity", id="refused lately"),
        pytest.param([_node("n")], {"zone": ""}, 1, 0, 6, "", id="a pool without zones has its nodes in one row"),
    ],
)
def test_free_closed_and_buyable_gpus_are_told_apart(
    nodes: list[Node], more: dict[str, Any], free: int, closed: int, could_buy: int, note: str
) -> None:
    """Each by what its node and its pool say."""
    (row,) = _found(nodes, **more)
    assert (row.free, row.closed, row.could_buy, row.note) == (free, closed, could_buy, note)
    assert row.usd_per_gpu_hour == 2


def test_nodes_of_no_pool_have_their_own_row() -> None:
    """They are lit and free, and none can be bought."""
    rows = _found([_node("n", pool="b")])
    assert [(row.pool, row.free, row.could_buy, row.note) for row in rows][1:] == [("b", 1, 0, "not in the policy")]
    assert summary(rows[1:]) == "1 of 3 lit GPUs free; none can be bought now"
