"""The meter of a served deployment: several workers tick, some die, and its dollars stay those of the cloud."""

from decimal import Decimal
from http.client import HTTPException
from pathlib import Path
from random import Random

import pytest
from both_ways import served

from fleet import POLICY, Fleet, crew, post
from pilotlight.codec.events import encode
from pilotlight.codec.policy_file import read_policy
from pilotlight.facts.messages import Tick
from pilotlight.flow.billing import meter_nodes
from pilotlight.settings import Settings
from pilotlight.tools.serve import tick_schedule
from pilotlight.wiring import app
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock

TICK_S = 60.0
KILLS = 3


def metered(here: Fleet) -> Decimal:
    """All dollars that the meter counted."""
    now = here.world.report().now.date()
    found = meter_nodes.days(here.state, "local", now.replace(day=1), now)
    return sum((line.usd for day in found for line in day.lines), Decimal(0))


def minute(here: Fleet, world: World) -> None:
    """A minute of the world, and the ticks at its end: posted again where the worker died over them."""
    world.advance(world.now_s + TICK_S)
    for what, function in tick_schedule.TICKED.items():
        body = encode(Tick(cluster="local", what=what), id=f"{what}-{world.now_s:g}")
        while not _taken(here.port, f"/{function}", body):
            pass


def _taken(port: int, path: str, body: bytes) -> bool:
    try:
        return post(port, path, body)[0] == 200
    except (OSError, HTTPException):
        return False


@pytest.mark.slow
def test_killed_workers_meter_what_the_cloud_charged(tmp_path: Path) -> None:
    """What dies between a release and its note costs a tick's time, no more."""
    policy, catalog = read_policy(POLICY.encode(), "policy"), app(Settings()).catalog
    pools = [WorldPool.from_policy(name, rules) for name, rules in policy.pools.items()]
    world = World(catalog, pools, clock=VirtualClock(catalog.as_of))
    with served(world) as outside, crew(tmp_path, outside.url, workers=2, tick_s=86_400) as here:
        pods = here.create(8, run_s=150)
        with here.load(pods):
            for _ in range(KILLS):
                here.kill_one(Random(7))
                minute(here, world)
        while len(world.finished) < len(pods) or world.nodes:
            minute(here, world)
        report = here.world.report()
        assert (report.pods["finished"], report.nodes) == (8, 0)
        hourly = catalog.instance_types["g4dn.xlarge"].prices["on-demand"].usd_per_hour
        assert abs(metered(here) - report.cost_usd) <= KILLS * hourly * Decimal(TICK_S) / 3600
