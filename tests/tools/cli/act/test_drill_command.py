"""pilotlight drill, and why of an interruption, as a person runs them."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from pilotlight.adapters.world_client import WorldClient
from pilotlight.codec.policy_file import read_policy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.settings import Settings
from pilotlight.tools.cli import served
from pilotlight.tools.serve.world_server import WorldServer
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import WallClock

PILOTLIGHT = Path(sys.executable).parent / "pilotlight"
NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
SPEED = 20.0
POLICY = """
version: 1
pools:
  a10g: {instance_type: g5.xlarge, capacity_type: spot, relaunches: true}
classes:
  batch: {gpu_models: any, capacity_types: [spot]}
prices: {max_age_days: 36500}
"""


def _run(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **environ, "NO_COLOR": "1"}
    return subprocess.run([PILOTLIGHT, *words], env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def drilled(tmp_path: Path) -> Iterator[tuple[World, dict[str, str]]]:
    """A served world, much faster than the wall, in which a pod that can save runs on a spot node."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    pools = [WorldPool.from_policy(name, rules) for name, rules in read_policy(POLICY, "policy").pools.items()]
    world = World(App(Settings()).catalog, pools, clock=WallClock(NOW, SPEED))
    server = WorldServer(world, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pod = PodDemand(
        uid="u", namespace="ml", name="train-0", shape=shape(gpu=GpuRequest(count=1)), created_at=NOW,
        checkpoint_takes_s=15,
    )  # fmt: skip
    WorldClient(server.url).create([pod], 36_000)
    with world.call("launch"):
        world.set_faults(msgspec.structs.replace(world.faults, boot_s=1.0))
        world.launch("a10g")
    environ = {"PILOTLIGHT_HOME": str(tmp_path), "PILOTLIGHT_WORLD": server.url, "PILOTLIGHT_POLICY": str(policy)}
    while not world.running:
        with world.call("look"):
            pass
    yield world, {**environ, "PILOTLIGHT_MODE": "act"}
    server.shutdown()
    server.server_close()


def test_a_drill_takes_a_node_and_prints_what_became_of_it(drilled: tuple[World, dict[str, str]]) -> None:
    """The pod is asked to save, evicted, and its node given back before the cloud takes it; why tells the same."""
    world, environ = drilled
    done = _run(environ, "drill", "--pool", "a10g")
    assert done.returncode == 0, done.stderr
    assert "spot-interruption of n1 (n1, pool a10g)" in done.stdout
    steps = [line.split(" ", 3)[3] for line in done.stdout.splitlines() if line.startswith("  ") and line[2].isdigit()]
    assert steps == ["asked ml/train-0 for a checkpoint", "evicted ml/train-0"]
    assert "  verified: the cloud says so too" in done.stdout
    assert "  released; 0.0" in done.stdout
    assert "GPU-hours of work ($0.00) lost in all" in done.stdout
    assert "n1" not in world.nodes
    assert world.launches == 2
    assert "spot-interruption of n1" in _run(environ, "why", "n1").stdout
    answer = _run(environ, "why", "ml/train-0", "--json")
    assert answer.returncode == 0, answer.stderr
    (found, *_) = json.loads(answer.stdout)
    assert (found["instance"], found["outcome"]) == ("n1", "released")


def test_a_drill_without_a_world_says_what_to_do(tmp_path: Path) -> None:
    """One line, and exit code 2."""
    done = _run({"PILOTLIGHT_HOME": str(tmp_path), "PILOTLIGHT_WORLD": ""}, "drill")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "set PILOTLIGHT_WORLD" in done.stderr


def test_a_drill_finds_the_world_of_the_serve_over_the_same_state(
    drilled: tuple[World, dict[str, str]], tmp_path: Path
) -> None:
    """As other commands it goes by what a serve has left of its address and its settings."""
    _, environ = drilled
    state = f"sqlite:{tmp_path}/state.db"
    served.leave(Settings(state=state, environ=environ), environ["PILOTLIGHT_WORLD"])
    done = _run({"PILOTLIGHT_HOME": str(tmp_path)}, "drill", "--pool", "nosuch", "--state", state)
    assert (done.returncode, done.stderr) == (2, "error: the policy has no pool 'nosuch': there are a10g\n")


def test_a_drill_of_an_empty_world_names_no_pool_that_nobody_named(tmp_path: Path) -> None:
    """No node is ready: one line that says so, and of which pool only where one was asked for."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    pools = [WorldPool.from_policy(name, rules) for name, rules in read_policy(POLICY, "policy").pools.items()]
    server = WorldServer(World(App(Settings()).catalog, pools, clock=WallClock(NOW, SPEED)), 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environ = {"PILOTLIGHT_HOME": str(tmp_path), "PILOTLIGHT_WORLD": server.url, "PILOTLIGHT_POLICY": str(policy)}
    bare, named = _run(environ, "drill"), _run(environ, "drill", "--pool", "a10g")
    server.shutdown()
    server.server_close()
    said = [each.stderr.splitlines()[-1] for each in (bare, named)]
    assert said == [
        "error: no node is ready: send a pod and wait for its node",
        "error: no node of pool a10g is ready: send a pod and wait for its node, or name another pool",
    ]
