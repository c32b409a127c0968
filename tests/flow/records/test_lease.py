"""One worker a cluster at a time: the lease, the mark to look again, and what ends a dead holder's."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from stage import MINUTE, Stage

from pilotlight.errors import Busy
from pilotlight.facts.capacity import ClusterView
from pilotlight.flow.cycle.cycle import GATHER_S
from pilotlight.flow.records import lease
from pilotlight.flow.records.lease import Lease
from pilotlight.ports.state import State, Stored
from pilotlight.state_schema.lease_records import LEASE, LEASE_S
from pilotlight.state_schema.marks import LOOK_AGAIN, Mark
from pilotlight.world.world_cluster import WorldCluster


def acquire(stage: Stage, holder: str = "me") -> Lease | None:
    """The stage's lease."""
    return lease.acquire(stage.deps.state, "c", holder)


def test_one_holder_at_a_time() -> None:
    """The second asks in vain until the first gives it back; each holder's fence is higher than the last's."""
    stage = Stage()
    first = acquire(stage)
    assert first is not None
    assert acquire(stage) is None
    first.release()
    second = acquire(stage)
    assert second is not None
    assert second.fence > first.fence


def test_many_at_once_get_one_lease() -> None:
    """Of twenty workers that ask in parallel one holds it."""
    stage = Stage()
    with ThreadPoolExecutor(20) as threads:
        held = [found for found in threads.map(lambda n: acquire(stage, str(n)), range(20)) if found]
    assert len(held) == 1


class Late:
    """A state read a moment too early: it shows no lease, though another has just taken it."""

    def __init__(self, state: State) -> None:
        self.state = state

    def get(self, key: str) -> Stored | None:
        """Nothing under a lease's key."""
        return None if key.startswith("lease/") else self.state.get(key)

    def __getattr__(self, name: str) -> object:
        return getattr(self.state, name)


def test_who_read_too_early_gets_no_lease() -> None:
    """Two that both saw no lease do not both get it: the write tells."""
    stage = Stage()
    assert acquire(stage) is not None
    late: Any = Late(stage.deps.state)
    assert lease.acquire(late, "c", "late") is None


def test_a_dead_holders_lease_ends() -> None:
    """A holder that never comes back blocks the cluster for the lease's time, not longer."""
    stage = Stage()
    assert acquire(stage) is not None
    stage.wait(LEASE_S - 1)
    assert acquire(stage) is None
    stage.wait(1)
    assert acquire(stage) is not None


def test_a_worker_keeps_the_lease_by_renewing_it() -> None:
    """A walk that takes longer than the lease holds it as long as it makes sure of it before each effect."""
    stage = Stage()
    held = acquire(stage)
    assert held is not None
    for _ in range(10):
        stage.wait(LEASE_S / 2)
        held.keep()
    assert acquire(stage) is None


def test_who_lost_the_lease_stops() -> None:
    """A worker that slept through its lease does no further effect, and leaves the new holder's lease alone."""
    stage = Stage()
    old = acquire(stage)
    stage.wait(LEASE_S)
    new = acquire(stage)
    assert old is not None
    assert new is not None
    with pytest.raises(Busy):
        old.keep()
    old.release()
    assert acquire(stage) is None


def test_a_delivery_that_finds_the_lease_held_leaves() -> None:
    """It is answered at once, buys nothing, and leaves the mark that makes the holder look again."""
    stage = Stage()
    held = acquire(stage)
    assert held is not None
    answer = stage.event(stage.submit("p"))
    assert (answer.decision, stage.world.launches) == ("", 0)
    assert "look again" in answer.why
    assert lease.asked_again(stage.deps.state, "c")
    assert not lease.asked_again(stage.deps.state, "c")


def test_a_demand_left_to_the_holder_is_bought_by_the_next_look() -> None:
    """What came while the lease was held is not lost when its holder dies: the next tick buys for it."""
    stage = Stage()
    assert acquire(stage) is not None
    stage.event(stage.submit("p"))
    stage.minutes(3)
    assert stage.world.launches == 1


def test_a_burst_is_a_handful_of_decisions() -> None:
    """Two hundred deliveries in parallel for twenty pods: twenty nodes, and fewer decisions than pods."""
    stage = Stage(boot_s=30 * MINUTE)
    pods = [stage.submit(f"p{n}") for n in range(20)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(stage.event, pods * 10))
    assert stage.world.launches == 20
    assert len(stage.deps.state.scan("decision/").items) < 20


def test_a_failed_walk_gives_the_lease_back() -> None:
    """An error in the middle does not leave the cluster locked."""
    stage = Stage()
    stage.fail("observe", Busy("not now"))
    pod = stage.submit("p")
    with suppress(Busy):
        stage.event(pod)
    assert acquire(stage) is not None


def test_a_lease_that_is_fresh_is_asked_after_only_where_that_must_be_sure() -> None:
    """Another took it in the same second: who must be sure hears of it, who need not goes on from what was recorded."""
    stage = Stage()
    held = acquire(stage)
    assert held is not None
    LEASE.delete(stage.deps.state, "c")
    assert acquire(stage, "another") is not None
    held.keep()
    with pytest.raises(Busy):
        held.keep(sure=True)


def test_a_holder_that_is_asked_to_look_again_lets_the_rest_of_a_burst_come_first() -> None:
    """It looks twice, and pauses for a moment in between."""
    paused = list[float]()
    stage = Stage()

    class Marking(WorldCluster):
        looks = 0

        def observe(self) -> ClusterView:
            self.looks += 1
            if self.looks == 1:
                LOOK_AGAIN.put(stage.deps.state, "c", Mark())
            return super().observe()

    cluster = Marking(stage.world)
    stage.deps = replace(stage.deps, cluster=cluster, pause=paused.append)
    stage.tick()
    assert (cluster.looks, paused) == (2, [GATHER_S])
