"""Nodes that come to stand by in their group's warm pool: only where no other instance could be meant."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aws_server import Aws, error, serving
from civo_server import Fault
from test_asg import Here, opened
from test_standby_world import world

from pilotlight.adapters.pools.asg import pools as asg_pools
from pilotlight.errors import Busy, Retry, Unsure
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.ports.clouds import StandbyPools

END = "TerminateInstanceInAutoScalingGroup"


@pytest.fixture
def here() -> Iterator[Here]:
    """A group of two nodes that work, whose warm pool takes nodes back and is empty."""
    cloud = world()
    aws = Aws(cloud, at_once=False)
    aws.reuse["one"] = {"MaxGroupPreparedCapacity": 0, "MinSize": 0}
    with serving(aws) as environ:
        made = Here(aws, opened(aws, environ))
        made.pools.grow("one", 2)
        cloud.advance(100)
        aws.calls.clear()
        yield made


def stop(here: Here, instance: str = "n1", **options: Any) -> list[str]:
    """Stop one; the changes that were asked for."""
    assert isinstance(here.pools, StandbyPools)
    here.pools.stop("one", instance, **options)
    return [name for name, _ in here.aws.changes()]


def standing(here: Here) -> list[str]:
    """Those that stand by."""
    return sorted(here.aws.world.fleet.standing)


def test_the_named_instance_comes_to_stand_by_and_starts_again(here: Here) -> None:
    """It alone loses its protection, that is read back, the group is smaller by one; AWS launches nothing into the
    warm pool. The next node is that one, and it is protected again."""
    assert stop(here) == ["PutWarmPool", "SetInstanceProtection", "SetDesiredCapacity"]
    assert (list(here.aws.world.nodes), standing(here), here.aws.refilled) == (["n2"], ["n1"], 0)
    told = here.pool()
    assert (told.desired, told.stops, told.stopped, told.standby) == (1, True, ("n1",), 0)
    assert stop(here) == ["PutWarmPool", "SetInstanceProtection", "SetDesiredCapacity"], "again is no error"
    here.aws.world.advance(400)
    assert here.pool().standby == 1
    here.pools.grow("one", 2)
    world = here.aws.world
    assert (sorted(world.nodes), standing(here), world.launches, world.wakes) == (["n1", "n2"], [], 2, 1)
    assert here.aws.refilled == 0


def test_one_after_another_comes_to_stand_by(here: Here) -> None:
    """Each leaves what stands by already as it is."""
    stop(here, "n1")
    stop(here, "n2")
    assert (standing(here), here.pool().desired, here.aws.refilled) == (["n1", "n2"], 0, 0)


def _exposed(aws: Aws) -> None:
    aws.unprotected.add("n2")


def _growing(aws: Aws) -> None:
    aws.world.fleet.desired["one"] = 3


def _unprotected_when_new(aws: Aws) -> None:
    aws.extra["one"] = {"NewInstancesProtectedFromScaleIn": False}


def _kept(aws: Aws) -> None:
    aws.extra["one"] = {"SuspendedProcesses": [{"ProcessName": "Terminate"}]}


def _may_not(aws: Aws) -> None:
    aws.faults = [Fault((403, error("AccessDenied", "no").decode()), "before", "SetInstanceProtection")]


UNSURE: dict[str, Callable[[Aws], None]] = {
    "another instance is not protected": _exposed,
    "the group is still growing": _growing,
    "an instance that came meanwhile would not be protected": _unprotected_when_new,
    "the group ends nothing by itself": _kept,
    "the role may not take a protection off": _may_not,
}


@pytest.mark.parametrize("doubt", UNSURE.values(), ids=UNSURE)
def test_where_another_could_be_meant_the_named_one_is_given_back(here: Here, doubt: Callable[[Aws], None]) -> None:
    """No size is lowered by a count; the instance ends by its name."""
    doubt(here.aws)
    made = stop(here)
    assert made[-1] == END
    assert "SetDesiredCapacity" not in made
    assert "n2" in here.aws.world.nodes
    assert (standing(here), "n1" in here.aws.world.nodes) == ([], False)


def test_what_is_read_back_counts_not_what_was_read_first(here: Here) -> None:
    """Another hand takes a protection off while ours is: the count is not sent."""
    honest = here.aws._SetInstanceProtection

    def both(asked: dict[str, Any]) -> dict[str, Any]:
        here.aws.unprotected.add("n2")
        return honest(asked)

    here.aws._SetInstanceProtection = both  # type: ignore[method-assign]
    assert stop(here)[-1] == END
    assert "n2" in here.aws.world.nodes


def test_one_that_got_work_at_the_last_look_is_protected_again(here: Here) -> None:
    """The gate stops the call: the group is as it was."""

    def taken() -> None:
        raise Busy("a pod was bound to it")

    with pytest.raises(Busy):
        stop(here, gate=taken)
    assert (here.aws.unprotected, sorted(here.aws.world.nodes), here.pool().desired) == (set(), ["n1", "n2"], 2)


@pytest.mark.parametrize("what", ["hang", "reset", "cut", (500, "<p>"), (200, "<x/>")], ids=str)
def test_a_lost_answer_stops_no_other(here: Here, what: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS acted and nobody heard: asking again finds the instance gone from the group, and asks for nothing."""
    monkeypatch.setattr(asg_pools, "WRITE_S", 0.2)
    here.aws.faults = [Fault(what, "after", "SetDesiredCapacity")]
    with pytest.raises(Unsure):
        stop(here)
    before = len(here.aws.changes())
    stop(here)
    assert (len(here.aws.changes()), sorted(here.aws.world.nodes), standing(here)) == (before, ["n2"], ["n1"])


@pytest.mark.parametrize("method", ["PutWarmPool", "SetInstanceProtection", "DescribeWarmPool"])
def test_a_fault_before_the_count_changes_no_size(here: Here, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What prepares it may fail at any point: both nodes are still there."""
    monkeypatch.setattr(asg_pools, "WRITE_S", 0.3)
    monkeypatch.setattr("pilotlight.adapters.aws_api.services.QUERY_PAUSES_S", ())
    here.aws.reuse["one"] = {"MaxGroupPreparedCapacity": 9, "MinSize": 0}
    here.aws.world.fleet.desired["one"] = 2
    here.aws.warming["one"] = ["i-warming"]
    here.aws.faults = [Fault((500, error("InternalFailure", "no").decode()), "after", method)]
    with pytest.raises(Retry):
        stop(here)
    assert sorted(here.aws.world.nodes) == ["n1", "n2"]


def test_a_stopped_one_is_given_back_by_the_size_of_the_warm_pool(here: Here) -> None:
    """One less stands by, and AWS launches nothing in its place; again is no error."""
    stop(here, "n1")
    stop(here, "n2")
    gates: list[int] = []
    here.pools.release("one", "n1", gate=lambda: gates.append(1))
    assert (len(standing(here)), gates, here.aws.refilled) == (1, [1], 0)
    gone = next(one for one in ("n1", "n2") if one not in standing(here))
    here.pools.release("one", gone, gate=lambda: gates.append(1))
    assert (len(standing(here)), gates) == (1, [1])


def test_a_node_that_ends_leaves_what_stands_by_as_it_is(here: Here) -> None:
    """One stands by and the other is given back: AWS neither ends the stopped one nor fills the warm pool, also when
    the next node is drawn from it."""
    stop(here, "n1")
    here.pools.release("one", "n2")
    assert (standing(here), list(here.aws.world.nodes), here.aws.refilled) == (["n1"], [], 0)
    here.aws.world.advance(400)
    here.pools.grow("one", 1)
    assert (standing(here), list(here.aws.world.nodes), here.aws.refilled) == ([], ["n1"], 0)


def test_a_warm_pool_of_somebody_elses_size_is_left_to_them() -> None:
    """Without reuse, or up to the group's max size, AWS fills it by itself: nothing is put into it."""
    aws = Aws(world(), at_once=False)
    config = {"MinSize": 1, "PoolState": "Stopped", "InstanceReusePolicy": {"ReuseOnScaleIn": True}}
    with serving(aws) as environ:
        here = Here(aws, opened(aws, environ))
        for more in ({}, {"MaxGroupPreparedCapacity": -1}):
            aws.extra["one"] = {"WarmPoolConfiguration": {**config, **more}, "WarmPoolSize": 0}
            assert isinstance(here.pool(), PoolState)
            assert not here.pool().stops
