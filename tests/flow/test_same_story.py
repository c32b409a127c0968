"""The same story told to the world itself and through the real adapter over HTTP, in calm and in a storm of faults."""

import random
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from api_server import Fault, api_server
from stage import MINUTE, Stage
from world_as_kubernetes import WorldApi

from pilotlight.errors import Denied, Retry


def live(stage: Stage, seed: int) -> list[dict[str, object]]:
    """Half a day of pods and gangs that come and end, with events lost, doubled and late; the world's log of it."""
    draw = random.Random(seed)
    for hour in range(8):
        for n in range(draw.randrange(3)):
            pod = stage.submit(f"p{hour}-{n}", gpus=draw.choice((1, 1, 2, 8)), run_s=draw.randrange(5, 90) * MINUTE)
            for _ in range(draw.randrange(3)):
                with suppress(Retry, Denied):
                    stage.event(pod, f"{pod.uid}/{draw.randrange(2)}")
        if draw.random() < 0.3:
            stage.submit_gang(f"g{hour}", draw.randrange(2, 5), run_s=draw.randrange(5, 60) * MINUTE)
        _minutes(stage, draw.randrange(20, 60))
    return stage.log


def _minutes(stage: Stage, count: int) -> None:
    for _ in range(count):
        stage.wait(MINUTE)
        with suppress(Retry, Denied):
            stage.tick()


@pytest.mark.parametrize("seed", range(2))
def test_the_same_story_ends_the_same(seed: int) -> None:
    """What was bought, what ran where and when, and what was given back, record for record."""
    plain, real = Stage(), Stage()
    told = live(plain, seed)
    _minutes(plain, 120)
    with api_server(WorldApi(world=real.world)) as api:
        assert isinstance(api, WorldApi)
        real.deps = replace(real.deps, cluster=api.cluster(real.deps.policy))
        live(real, seed)
        _minutes(real, 120)
    assert real.log == told
    assert plain.world.launches == real.world.launches > 0
    assert real.world.nodes == {}


@dataclass
class Stormy(WorldApi):
    """An API server of which every eighth call fails, half of them after they took effect."""

    seed: int = 0
    over: bool = False

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)

    def fault_for(self, line: str) -> Fault | None:
        """A fault by the seed."""
        if self.over or self._draw.random() > 1 / 8:
            return None
        kind = self._draw.choice((403, 409, 410, 429, 503, "reset", "cut", "truncated", "cut", "truncated"))
        return Fault(kind=kind, on="", times=1, after="60", seconds=0, skip=0)


@pytest.mark.parametrize("seed", range(2))
def test_a_storm_of_faults_loses_and_doubles_nothing(seed: int) -> None:
    """Every job starts exactly once and none is interrupted, nothing is bought twice, and all goes out in the end."""
    stage = Stage()
    with api_server(Stormy(world=stage.world, seed=seed)) as api:
        assert isinstance(api, Stormy)
        stage.deps = replace(stage.deps, cluster=api.cluster(stage.deps.policy))
        live(stage, seed)
        api.over = True
        _minutes(stage, 180)
    starts, world = stage.events("start"), stage.world
    assert len(starts) == len(world.finished) > 0
    assert not world.pending
    assert world.interruptions == 0
    assert world.nodes == {}
