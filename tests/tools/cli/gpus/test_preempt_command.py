"""``pilotlight preempt``, and its advice in ``plan`` and ``why``: on a cluster's objects, with recorded runs."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from api_server import api_server
from both_ways import served
from typer.testing import CliRunner

from pilotlight.codec.policy_file import read_policy
from pilotlight.errors import Failed
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.settings import Settings
from pilotlight.tools.cli.main import build
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World

CLUSTER = Path(__file__).parents[4] / "examples" / "cluster"
POLICY = """
version: 1
value_of_wait: 4
pools: {t4: {instance_type: g4dn.xlarge, max: 1}}
claims: {ml-research: {priority: 100}}
"""
AT = "2026-11-21T01:00:00Z"
HEADER = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """One T4 with a sweep that runs for an hour, and an urgent one that may run ten minutes and waits for the cap."""
    listed = json.loads((CLUSTER / "pods.json").read_text())["items"]
    sweep = next(pod for pod in listed if pod["metadata"]["name"].startswith("sweep-"))
    node = next(n for n in json.loads((CLUSTER / "nodes.json").read_text())["items"] if "t4" in n["metadata"]["name"])
    sweep["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    runs, waits = copy.deepcopy(sweep), copy.deepcopy(sweep)
    runs["metadata"] |= {"name": "sweep-long", "uid": "u-long"}
    runs["spec"]["nodeName"] = node["metadata"]["name"]
    runs["status"] = {"phase": "Running", "startTime": "2026-11-21T00:00:00Z"}
    waits["metadata"] |= {"name": "urgent", "uid": "u-urgent", "ownerReferences": []}
    waits["spec"] |= {"priority": 100, "activeDeadlineSeconds": 600}
    (tmp_path / "policy.yaml").write_text(POLICY)
    rows = "".join(f"j{n},{n},86400,1,1000,,ml-research,,\n" for n in range(12))
    (tmp_path / "runs.csv").write_text(HEADER + rows)
    _list(tmp_path / "pods.json", runs, waits)
    _list(tmp_path / "nodes.json", node)
    words = ["--pods", str(tmp_path / "pods.json"), "--nodes", str(tmp_path / "nodes.json"), "--at", AT]
    return [*words, "--policy", str(tmp_path / "policy.yaml")]


def _list(path: Path, *items: dict[str, Any]) -> None:
    path.write_text(json.dumps({"kind": "List", "items": items}))


def run(*words: str) -> str:
    """What a command prints; raises what it raises."""
    done = CliRunner(env={"COLUMNS": "160"}).invoke(build([*words]), [*words], catch_exceptions=False)
    return done.stdout


def test_who_could_give_way_is_named_with_its_figures(files: list[str], tmp_path: Path) -> None:
    """By recorded runs that lasted longer: 23 hours left; the hour's work it never saved is its price."""
    trace = ["--trace", str(tmp_path / "runs.csv")]
    (found,) = json.loads(run("preempt", "ml-research/urgent", *files, *trace, "--json"))["give_way"]
    assert (found["running"], found["priority"], found["running_priority"]) == ("ml-research/sweep-long", 100, 0)
    assert (found["give_way"], found["left"]["p50_s"], found["needs"]["p90_s"]) == (True, 82800, 600)
    assert (found["waiting_usd"], 0 < found["preempting_usd"] < 10) == (92, True)
    shown = run("preempt", "urgent", *files, *trace)
    assert "could: ml-research/sweep-long on gpu-t4-1 (priority 0), ran 60 min, has probably 23.0 h left" in shown
    assert "nothing is preempted" in shown


def test_a_plan_says_who_could_give_way(files: list[str]) -> None:
    """Beside the pod that waits, in the text and in the JSON; without runs that are known it says that, too."""
    shown = run("plan", *files)
    assert "Could give way (advice: nothing is preempted)" in shown
    assert "what is typical: no runs are known" in shown
    (found,) = json.loads(run("plan", *files, "--json"))["give_way"]
    assert (found["pod"], found["running"]) == ("ml-research/urgent", "ml-research/sweep-long")


def test_a_pod_that_does_not_wait_is_said(files: list[str]) -> None:
    """In one line, with what to do."""
    with pytest.raises(Failed, match="no GPU pod 'nobody' waits; `pilotlight plan` names those that do"):
        run("preempt", "nobody", *files)


def test_nothing_to_say_is_said() -> None:
    """On the sample cluster everything that can run is bought for."""
    files = ["--pods", str(CLUSTER / "pods.json"), "--nodes", str(CLUSTER / "nodes.json"), "--at", AT]
    done = CliRunner().invoke(build(["preempt"]), ["preempt", *files])
    head = f"cluster in {files[1]} and {files[3]}; state none, a dry run remembers nothing"
    assert (done.stdout, done.stderr) == (
        f"{head}\nno pod waits for a cap, a budget or capacity\n", ""
    )  # fmt: skip
    assert "Could give way" not in run("plan", *files)


def test_pods_that_nothing_that_runs_would_help_are_named(files: list[str], tmp_path: Path) -> None:
    """Where one waits for the cap and no node runs, the place lacks and not the wait."""
    _, waits = json.loads((tmp_path / "pods.json").read_text())["items"]
    _list(tmp_path / "pods.json", waits)
    _list(tmp_path / "nodes.json")
    (tmp_path / "policy.yaml").write_text(POLICY.replace("max: 1", "max: 0"))
    shown = run("preempt", *files)
    assert shown.splitlines()[1:] == [
        "no pod that runs is in a place that would hold one of those that wait: ml-research/urgent"
    ]


def test_why_says_it_of_a_pod_that_waited(files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick refused it for the cap; the cluster is looked at again, and nothing is written."""
    for name in ("POLICY", "CATALOG", "CLUSTER", "CLUSTERS", "MODE", "STATE", "OUTBOX"):
        monkeypatch.delenv(f"PILOTLIGHT_{name}", raising=False)
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PILOTLIGHT_POLICY", files[-1])
    monkeypatch.setenv("PILOTLIGHT_POOLS", "advisor")
    with api_server() as server:
        for listed in ("pods", "nodes"):
            server.add(*json.loads((tmp_path / f"{listed}.json").read_text())["items"])
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        monkeypatch.setenv("PILOTLIGHT_API", f"kubeconfig:{tmp_path / 'kubeconfig'}")
        run("reconcile")
        shown = run("why", "ml-research/urgent")
        written = [asked.method for asked in server.requests if asked.method != "GET"]
        of_cluster = run("preempt", "ml-research/urgent")
        assert [asked.method for asked in server.requests if asked.method != "GET"] == written
    assert "Could give way (advice: nothing is preempted)" in shown
    assert "ml-research/sweep-long on gpu-t4-1 (priority 0)" in shown
    assert "ml-research/sweep-long on gpu-t4-1 (priority 0)" in of_cluster


CONSENTS = """
version: 1
value_of_wait: 4
pools: {t4: {instance_type: g4dn.xlarge, max: 1}}
classes: {batch: {gpu_models: any, may_move: [preempt]}}
prices: {max_age_days: 36500}
"""


@pytest.mark.parametrize("mode", ["act", "observe"])
def test_a_pod_that_consents_is_said_to_give_way_at_the_next_tick(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its deployment acts; where it only watches it is advice. The command itself changes nothing."""
    (tmp_path / "policy.yaml").write_text(CONSENTS)
    pools = [WorldPool.from_policy(name, rules) for name, rules in read_policy(CONSENTS, "policy").pools.items()]
    world = World(App(Settings()).catalog, pools)
    now = world.clock.now()
    for name, run_s, priority in (("long", 36_000.0, 0), ("urgent", 600.0, 100)):
        made = shape(gpu=GpuRequest(count=1), max_run_s=run_s, priority=priority)
        pod = PodDemand(uid=name, namespace="ml", name=name, shape=made, created_at=now, checkpoint_takes_s=30)
        world.submit(pod, run_s)
        if name == "long":
            world.launch("t4")
            world.advance(1200.0)
    for name, value in {"HOME": str(tmp_path), "POLICY": str(tmp_path / "policy.yaml"), "MODE": mode}.items():
        monkeypatch.setenv(f"PILOTLIGHT_{name}", value)
    with served(world) as outside:
        monkeypatch.setenv("PILOTLIGHT_WORLD", outside.url)
        shown = run("preempt", "ml/urgent")
    assert list(world.running) == ["long"]
    assert "could, and consents: ml/long on " in shown
    acts = "At the next tick ml/long is asked to save, and gives way to ml/urgent: its class consents." in shown
    assert acts == (mode == "act")
    assert acts != ("This is advice: nothing is preempted." in shown)
