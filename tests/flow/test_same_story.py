"""The same story told twice, once to the world itself and once through the real adapter over HTTP, ends the same."""

import random
from dataclasses import replace

import pytest
from api_server import api_server
from stage import MINUTE, Stage
from world_as_kubernetes import WorldApi


def live(stage: Stage, seed: int) -> list[dict[str, object]]:
    """Half a day of pods and gangs that come and end, with events lost, doubled and late; the world's log of it."""
    draw = random.Random(seed)
    for hour in range(8):
        for n in range(draw.randrange(3)):
            pod = stage.submit(f"p{hour}-{n}", gpus=draw.choice((1, 1, 2, 8)), run_s=draw.randrange(5, 90) * MINUTE)
            for _ in range(draw.randrange(3)):
                stage.event(pod, f"{pod.uid}/{draw.randrange(2)}")
        if draw.random() < 0.3:
            stage.submit_gang(f"g{hour}", draw.randrange(2, 5), run_s=draw.randrange(5, 60) * MINUTE)
        stage.minutes(draw.randrange(20, 60))
    stage.minutes(120)
    return stage.log


@pytest.mark.parametrize("seed", range(3))
def test_the_same_story_ends_the_same(seed: int) -> None:
    """What was bought, what ran where and when, and what was given back, record for record."""
    plain, real = Stage(), Stage()
    told = live(plain, seed)
    with api_server(WorldApi(world=real.world)) as api:
        assert isinstance(api, WorldApi)
        real.deps = replace(real.deps, cluster=api.cluster(real.deps.policy))
        assert live(real, seed) == told
    assert plain.world.launches == real.world.launches > 0
    assert real.world.nodes == {}
