"""Calls whose worker died before they were sent: whoever looks next takes their traces back, in the same look."""

from dataclasses import replace

import pytest
from stage import MINUTE, Stage

from pilotlight.errors import NoCapacity
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import flight_log, ledger
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, SizeGate
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools


class Died(BaseException):
    """The worker is no more."""


class Deadly(WorldPools):
    """A cloud whose next call its worker does not live to send."""

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        """It dies before."""
        raise Died

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """It dies before."""
        raise Died


def test_a_purchase_that_was_never_sent_is_on_its_way_to_nobody() -> None:
    """The next look forgets it, and buys the pod its node."""
    stage = Stage()
    alive = stage.deps
    stage.deps = replace(alive, pools=Deadly(stage.world))
    pod = stage.submit("a")
    with pytest.raises(Died):
        stage.event(pod)
    assert len(flight_log.in_flight(alive.state, "c")) == 1
    stage.deps = alive
    stage.wait(2 * MINUTE)
    stage.tick()
    assert stage.world.launches == 1
    assert len(flight_log.in_flight(alive.state, "c")) == 1


def test_a_node_whose_release_was_never_sent_is_open_again() -> None:
    """A pod that came meanwhile runs on it after the next look."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(8)
    alive = stage.deps
    stage.deps = replace(alive, pools=Deadly(stage.world))
    with pytest.raises(Died):
        stage.minutes(5)
    (node,) = stage.world.nodes.values()
    assert node.cordoned
    stage.deps = alive
    stage.wait(2 * MINUTE)
    stage.submit("b")
    stage.tick()
    assert not node.cordoned
    assert stage.world.launches == 1
    assert "uid-b" in stage.world.running


class Closing(WorldCluster):
    """A cluster whose answer to the next closing of a node its worker does not live to hear."""

    def cordon(self, node: str, by: str = "") -> None:
        """It is closed, and the worker dies."""
        super().cordon(node, by)
        raise Died


class Deaf(WorldCluster):
    """A cluster whose next node its worker does not live to close."""

    def cordon(self, node: str, by: str = "") -> None:
        """It dies before."""
        raise Died


def test_a_node_that_a_person_opens_whose_worker_died_before_its_release_was_sent_is_kept_for_an_hour() -> None:
    """Only what the closing left on the node tells of it: its release was never sent, and its mark is taken back."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(8)
    alive = stage.deps
    stage.deps = replace(alive, cluster=Closing(stage.world))
    with pytest.raises(Died):
        stage.minutes(5)
    (node,) = stage.world.nodes
    stage.wait(2 * MINUTE)
    stage.world.open_by_hand(node)
    stage.deps = alive
    stage.minutes(55)
    assert list(stage.world.nodes) == [node]
    assert [alert.kind for alert in stage.alerts].count("finding-opened-by-hand") == 1
    stage.minutes(15)
    assert not stage.world.nodes


def test_a_node_whose_worker_died_before_it_closed_it_was_opened_by_nobody() -> None:
    """Nothing is on the node: its release goes on at the next look, and nobody is told of a person."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(8)
    alive = stage.deps
    stage.deps = replace(alive, cluster=Deaf(stage.world))
    with pytest.raises(Died):
        stage.minutes(5)
    stage.deps = alive
    stage.minutes(5)
    assert not stage.world.nodes
    assert [alert.kind for alert in stage.alerts].count("finding-opened-by-hand") == 0


def test_the_rest_of_a_gang_whose_first_part_is_refused_is_not_sent() -> None:
    """Its step says that nothing of it was asked for, and why."""
    stage = Stage(pools={name: PoolPolicy(instance_type="eight", max=1) for name in ("eight", "more")})
    stage.fail("grow", NoCapacity("no large node is left"))
    stage.event(stage.submit_gang("g", 2)[0])
    record = ledger.filed_records(stage.deps.state, "c")[0]
    assert [(step.state, step.code, step.count) for step in record.steps] == [
        ("denied", "refused", 0),
        ("revoked", "failed", 0),
    ]
    assert stage.world.launches == 0
