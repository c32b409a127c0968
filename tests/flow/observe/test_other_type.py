"""A node that comes as another type than was bought: its pod is bought for elsewhere at once, and people are told."""

import msgspec
import pytest
from stage import MINUTE, Stage

from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import ledger

OPEN = {
    "eight": PoolPolicy(instance_type="eight", max=20),
    "other": PoolPolicy(instance_type="eight", max=20),
    "one": PoolPolicy(instance_type="one", max=20),
}
HOMED = {name: msgspec.structs.replace(pool, taints=(BIRTH_TAINT,)) for name, pool in OPEN.items()}


def coming_as(pools: dict[str, PoolPolicy], **kinds: str) -> Stage:
    """A cluster whose cloud starts nodes of another type in some pools."""
    stage = Stage(pools=pools)
    for pool, kind in kinds.items():
        known = stage.world.fleet.pools[pool]
        stage.world.fleet.pools[pool] = msgspec.structs.replace(known, instance_type=kind)
    return stage


def told(stage: Stage) -> list[str]:
    """What people are told of pools of which a node came as another type."""
    return [alert.what for alert in stage.alerts if alert.kind == "finding-other-type"]


@pytest.mark.parametrize("pools", [OPEN, HOMED], ids=["open", "homed"])
def test_a_pod_that_does_not_fit_the_node_that_came(pools: dict[str, PoolPolicy]) -> None:
    """The first look at the node buys for its pod in another pool; that is all, and it is told once."""
    stage = coming_as(pools, eight="one")
    stage.event(stage.submit("large", gpus=8))
    assert (stage.nodes("eight"), stage.nodes("other")) == (1, 0)
    stage.wait(3 * MINUTE)
    stage.tick()
    assert stage.nodes("other") == 1
    stage.minutes(4)
    assert "uid-large" in stage.world.running
    assert (stage.world.launches, told(stage)) == (2, ["pool eight has a node of another type"])
    [rest] = ledger.recall(stage.deps.state, "c").memory.backoffs
    assert (rest.offering, rest.why.rpartition(" came ")[2]) == ("eight/eight/on-demand", "as one")


@pytest.mark.parametrize("pools", [OPEN, HOMED], ids=["open", "homed"])
def test_a_node_of_another_type_that_its_pod_fits(pools: dict[str, PoolPolicy]) -> None:
    """The pod runs there: nothing more is bought, no pool is kept from anybody, and people are told."""
    stage = coming_as(pools, one="eight")
    stage.event(stage.submit("small"))
    stage.minutes(6)
    assert "uid-small" in stage.world.running
    assert (stage.world.launches, told(stage)) == (1, ["pool one has a node of another type"])
    memory = ledger.recall(stage.deps.state, "c").memory
    assert (memory.quarantines, memory.backoffs) == ((), ())


def test_the_only_pool_that_is_sold() -> None:
    """It is asked again after a minute, then ever more seldom, as one that refuses is: an hour costs few such nodes."""
    stage = coming_as({"eight": OPEN["eight"]}, eight="one")
    stage.event(stage.submit("large", gpus=8))
    stage.minutes(6)
    assert stage.world.launches == 2
    stage.minutes(60)
    assert 4 <= stage.world.launches <= 7


def test_the_next_purchase_that_comes_as_it_should() -> None:
    """A wrong node that is still there says nothing of it: its pod is bound, and the pool rests no longer for it."""
    stage = coming_as({"eight": OPEN["eight"]}, eight="one")
    stage.event(stage.submit("large", gpus=8))
    stage.wait(3 * MINUTE)
    stage.tick()
    stage.world.fleet.pools["eight"] = Stage(pools={"eight": OPEN["eight"]}).world.fleet.pools["eight"]
    stage.world.fleet._machines.clear()
    stage.minutes(6)
    assert "uid-large" in stage.world.running
    [rest] = ledger.recall(stage.deps.state, "c").memory.backoffs
    assert (rest.tries, stage.world.launches) == (1, 2)


def test_a_part_of_a_purchase_that_comes_as_another_type() -> None:
    """Of a small pod and a large one the small one takes what came; only the large one is bought for again."""
    stage = coming_as({"eight": OPEN["eight"], "other": OPEN["other"]}, eight="one")
    first, second = stage.submit("small", gpus=1), stage.submit("large", gpus=8)
    stage.event(first)
    stage.event(second)
    stage.minutes(9)
    assert {"uid-small", "uid-large"} <= set(stage.world.running)
    assert told(stage) == ["pool eight has a node of another type"]
    assert stage.world.launches == 3


def test_a_gang_of_which_a_node_comes_as_another_type() -> None:
    """All or nothing, by its deadline, as ever; it is told at once."""
    stage = coming_as(OPEN, eight="one")
    stage.event(stage.submit_gang("train", 2)[0])
    stage.minutes(4)
    assert told(stage) == ["pool eight has a node of another type"]
    assert stage.nodes("other") == 0
