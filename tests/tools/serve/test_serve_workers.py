"""serve's workers on one world and one state: what a burst buys, who ticks, and what dies with a worker."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest

from fleet import PILOTLIGHT, children, fleet, free_port, until
from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.flow.records.ledger import filed_records
from pilotlight.ports.state import State
from pilotlight.settings import Settings
from pilotlight.tools.install.state_store import create_table
from pilotlight.tools.serve.tick_schedule import tick_if_due
from pilotlight.units import EPOCH
from pilotlight.wiring import app
from pilotlight.world.world_clock import VirtualClock

KILLS = 10
"""bench/chaos/kill_workers.py kills more often."""


def _sqlite(request: pytest.FixtureRequest) -> dict[str, str]:
    return {}


def _dynamodb(request: pytest.FixtureRequest) -> dict[str, str]:
    endpoint, table = request.getfixturevalue("dynamodb_server"), f"fleet-{uuid4()}"
    create_table(DynamoDBState(table, VirtualClock(EPOCH), endpoint=endpoint).client, table)
    return {"PILOTLIGHT_STATE": f"dynamodb:{table}", "AWS_ENDPOINT_URL": endpoint}


def _firestore(request: pytest.FixtureRequest) -> dict[str, str]:
    host = request.getfixturevalue("firestore_emulator")
    return {"PILOTLIGHT_STATE": f"firestore:demo/(default)/fleet-{uuid4()}", "FIRESTORE_EMULATOR_HOST": host}


STATES = {"sqlite": _sqlite, "dynamodb": _dynamodb, "firestore": _firestore}
"""What the environment says of each state."""


def _refused(state: State) -> dict[str, str]:
    """Why each pod was refused in the last decision that refused one, by name."""
    refused: dict[str, str] = {}
    for record in filed_records(state, "local"):
        groups = [group for group in record.plan.pods if group.verdict == "refused"]
        refused = {pod: group.why for group in groups for pod in group.pods} or refused
    return refused


@pytest.mark.parametrize("environ", STATES.values(), ids=STATES)
def test_forty_parallel_pods_light_the_four_nodes_of_the_cap(
    tmp_path: Path, environ: Callable[[pytest.FixtureRequest], dict[str, str]], request: pytest.FixtureRequest
) -> None:
    """Each of four pods gets one node; 36 are refused with the cap's figure, whichever worker each post reached."""
    with fleet(tmp_path, workers=4, clock="x30", environ=environ(request)) as here:
        pods = here.create(40, run_s=36_000)
        assert {status for status, _ in here.deliver_all(pods, at_once=40, tries=1000)} == {200}
        until(lambda: here.world.report().pods["running"] == 4)
        report = here.world.report()
        assert (report.launches, report.peak_gpus, report.surplus) == (4, 4, 0)
        lit = {p.name: p.node for p in here.world.pods() if p.state == "running"}
        assert len(set(lit.values())) == 4
        until(lambda: _refused(here.state).keys() == {p.full_name for p in pods} - lit.keys())
        assert all("of 4 GPUs would be lit" in why for why in _refused(here.state).values())


def test_a_burst_of_a_thousand_costs_a_handful_of_resizes(tmp_path: Path) -> None:
    """A thousand deliveries at once are all acknowledged, no pool is resized more than three times, no pod is lost."""
    with fleet(tmp_path, workers=2, clock="x20") as here:
        pods = here.create(1000, run_s=36_000)
        assert {status for status, _ in here.deliver_all(pods, at_once=64, tries=1000)} == {200}
        until(lambda: here.world.report().pods["running"] == 4)
        report = here.world.report()
        assert max(report.resizes.values()) <= 3
        assert (report.launches, report.surplus, sum(report.pods.values())) == (4, 0, 1000)
        until(lambda: len(_refused(here.state)) == 996)


def test_workers_killed_under_load_neither_buy_twice_nor_lose_a_pod(tmp_path: Path) -> None:
    """kill -9 of workers at random moments: every pod runs to its end, the cap holds, no lease stays behind."""
    with fleet(tmp_path, workers=3, clock="x200") as here:
        pods = here.create(30, run_s=120)
        with here.load(pods):
            dice = Random(3)
            for _ in range(KILLS):
                here.kill_one(dice)
        until(lambda: here.world.report().pods["finished"] == 30)
        report = here.world.report()
        assert report.surplus == 0
        assert report.peak_gpus <= 4
        until(lambda: not here.state.scan("lease/").items)


def test_a_world_of_serves_own_ends_with_it(tmp_path: Path) -> None:
    """Without a world to join, the workers get one; all are gone soon after serve is, even when it was killed."""
    port, log = free_port(), tmp_path / "log"
    environ = {**os.environ, "PILOTLIGHT_HOME": str(tmp_path)}
    with log.open("wb") as out:
        serve = subprocess.Popen(
            [PILOTLIGHT, "serve", "--workers", "2", "--port", str(port)], env=environ, stdout=out, stderr=out
        )
    until(lambda: len(children(serve.pid)) == 3)
    family = children(serve.pid)
    serve.kill()
    serve.wait()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family))


def test_one_worker_ticks_in_each_interval(tmp_path: Path, clock: VirtualClock) -> None:
    """The first that looks ticks; another does once the interval is over, whoever ticked before."""
    settings = Settings(state=f"sqlite:{tmp_path / 'state.db'}", outbox="memory:")
    first, second = app(settings, clock=clock), app(settings, clock=clock)
    assert [tick_if_due(worker, 60) is None for worker in (first, second, first)] == [True, False, False]
    clock.advance(61)
    assert [tick_if_due(worker, 60) is None for worker in (second, first)] == [True, False]
