"""Where instances were: known while they are there and two days after, without a look reading all of that."""

from datetime import timedelta

import msgspec
import pytest
from stage import Stage

from pilotlight.flow.observe import known_instances
from pilotlight.flow.observe.snapshot import look
from pilotlight.state_schema.instance_records import INSTANCES


def test_an_instance_that_is_gone_is_known_for_two_days() -> None:
    """What a look shows lies together and what it misses apart; a late notice of either finds its pool."""
    stage = Stage()
    stage.event(stage.submit("a", gpus=8, run_s=600))
    stage.minutes(1)
    name = next(iter(stage.world.nodes))
    assert known_instances.find_instance(stage.deps, name) is not None
    stage.world.terminate(name, "reclaimed", evict=True)
    stage.minutes(1)
    assert name not in INSTANCES.read(stage.deps.state, "c").values
    found = known_instances.find_instance(stage.deps, name)
    assert found is not None
    assert found.pool == "eight"
    stage.wait(timedelta(days=2, hours=1).total_seconds())
    assert known_instances.find_instance(stage.deps, name) is None


@pytest.mark.parametrize("hours", [0, 2], ids=["within the hour", "after hours"])
def test_the_newest_place_of_an_instance_counts(hours: int) -> None:
    """A name that came back and is missed again is known as it was last."""
    stage = Stage()
    stage.event(stage.submit("a", gpus=8, run_s=20_000))
    stage.wait(400)
    first = look(stage.deps)
    known_instances.learn(stage.deps, first.pools, first.view.nodes, first.now)
    (node,) = first.view.nodes
    for pool in ("one", "two"):
        moved = msgspec.structs.replace(node, pool=pool)
        for nodes in ((moved,), ()):
            known_instances.learn(stage.deps, (), nodes, stage.deps.now())
        stage.wait(hours * 3600)
    found = known_instances.find_instance(stage.deps, node.instance)
    assert found is not None
    assert found.pool == "two"
