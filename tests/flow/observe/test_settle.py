"""What a tick settles: capacity that came, capacity that never came, and what the pool's history learns of it."""

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import msgspec
import pytest
from stage import MINUTE, Stage

from pilotlight.errors import NoCapacity
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.records import flight_log, ledger
from pilotlight.world.faults import Faults

ONE = {"one": PoolPolicy(instance_type="one", max=20)}


def open_entries(stage: Stage) -> int:
    """Entries of capacity asked for that are not settled."""
    return len(flight_log.in_flight(stage.deps.state, "c"))


def test_what_came_and_was_used_is_closed() -> None:
    """An entry lives from the purchase to the first tick after its pod was bound."""
    stage = Stage(pools=ONE)
    stage.event(stage.submit("p"))
    assert open_entries(stage) == 1
    stage.minutes(2)
    assert open_entries(stage) == 1
    stage.minutes(1)
    assert open_entries(stage) == 0


def test_a_refused_purchase_leaves_no_entry() -> None:
    """What the cloud refused is not waited for; what came of it before the refusal is."""
    none = Stage(pools=ONE, faults=Faults(api_errors=(("grow", NoCapacity("none")),)))
    none.event(none.submit("p"))
    assert open_entries(none) == 0
    some = Stage(pools=ONE, faults=Faults(quota_nodes=2))
    pods = [some.submit(f"p{n}") for n in range(3)]
    some.event(pods[0])
    ((_, entry),) = flight_log.in_flight(some.deps.state, "c")
    assert (entry.count, some.world.launches) == (2, 2)


def test_a_rest_until_tomorrow_keeps_nobody_waiting() -> None:
    """No refusal rests for so long: a clock that was wrong wrote it."""
    stage = Stage(pools=ONE, faults=Faults(api_errors=(("grow", NoCapacity("none")),)))
    stage.event(stage.submit("p"))
    was = ledger.recall(stage.deps.state, "c")
    [rest] = was.memory.backoffs
    for hours, served in ((1, False), (24, True)):
        until = msgspec.structs.replace(rest, until=stage.deps.now() + timedelta(hours=hours))
        memory = msgspec.structs.replace(was.memory, backoffs=(until,))
        was = ledger.remember(stage.deps.state, "c", was, memory)
        stage.wait(60)
        stage.tick()
        was = ledger.recall(stage.deps.state, "c")
        assert (stage.world.launches == 1) is served


def test_a_pod_deleted_while_its_node_boots_leaves_nothing() -> None:
    """Its node comes, idles its time and goes; nothing is quarantined for a pod that is not there."""
    stage = Stage(pools=ONE)
    stage.event(stage.submit("p", run_s=0))
    stage.minutes(30)
    assert (open_entries(stage), stage.nodes("one"), stage.world.launches) == (0, 0, 1)
    assert ledger.recall(stage.deps.state, "c").memory.quarantines == ()


def test_work_taken_by_an_older_pod_is_bought_anew() -> None:
    """The scheduler gives the new node to another pod: the pod it was meant for is bought for once more, not blamed."""
    stage = Stage(pools=ONE)
    stage.event(stage.submit("p"))
    stage.wait(2 * MINUTE)
    stage.submit("first", priority=10)
    stage.minutes(8)
    assert sorted(stage.world.running) == ["uid-first", "uid-p"]
    assert stage.world.launches == 2
    assert ledger.recall(stage.deps.state, "c").memory.quarantines == ()


def test_a_refused_offering_rests_longer_each_time() -> None:
    """Out of stock again and again: it is asked less and less often, and is had once it is there."""
    errors = tuple(("grow", NoCapacity("none")) for _ in range(4))
    stage = Stage(pools=ONE, faults=Faults(api_errors=errors))
    stage.submit("p")
    asked: list[int] = []
    for minute in range(60):
        before = stage.failures_left
        stage.minutes(1)
        asked += [minute] if stage.failures_left < before else []
    gaps = [b - a for a, b in pairwise(asked)]
    assert len(asked) == 4
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 2 * gaps[0]
    assert stage.world.launches == 1


@pytest.mark.parametrize(("jobs", "kept"), [(2, False), (40, True)], ids=["seldom taken", "taken every quarter hour"])
def test_a_pool_learns_from_the_nodes_that_were_taken(jobs: int, kept: bool) -> None:
    """A pool whose idle node is taken again and again keeps one; one that is seldom used does not."""
    stage = Stage(pools=ONE, classes={"batch": ClassPolicy(gpu_models="any")}, value_of_wait=Decimal(300))
    for n in range(jobs):
        stage.submit(f"p{n}", run_s=5 * MINUTE)
        stage.minutes(15)
    stage.minutes(60)
    assert bool(stage.nodes("one")) is kept
    stage.minutes(48 * 60)
    assert stage.nodes("one") == 0
