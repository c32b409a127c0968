"""Nodes that are still seen after their instance was given back: a cloud takes seconds to minutes to stop a machine."""

from dataclasses import replace

import msgspec
import pytest
from stage import MINUTE, Stage

from pilotlight.errors import Unsure
from pilotlight.facts.nodes.pool_state import InstanceState, PoolState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import ledger, node_marks
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, SizeGate
from pilotlight.world.world_pools import WorldPools


class Slow(WorldPools):
    """A cloud that no longer counts an instance once it was given back, while its node stays up until ``stop``.

    The answers to so many ``lost`` releases never come.
    """

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.world)
        self.stage, self.asked, self.going, self.lost = stage, list[str](), set[str](), 0

    def turn_off(self) -> None:
        """The machines are off now."""
        for node in self.going:
            super().release(self.stage.world.nodes[node].pool, node)
        self.going.clear()

    def describe(self) -> tuple[PoolState, ...]:
        """Pools without what goes."""
        return tuple(
            msgspec.structs.replace(pool, desired=pool.desired - self._going(pool.name)) for pool in super().describe()
        )

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """One that goes says so."""
        found = super().instance(pool, instance)
        return msgspec.structs.replace(found, going=True) if found and instance in self.going else found

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        """As many more as what goes."""
        return super().grow(pool, to + self._going(pool), zone, gate=gate, token=token, most=most)

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Taken at once, stopped later."""
        if instance in self.going:
            return
        gate()
        self.asked.append(instance)
        self.going.add(instance)
        if self.lost:
            self.lost -= 1
            raise Unsure("the answer is lost")

    def _going(self, pool: str) -> int:
        return sum(self.stage.world.nodes[node].pool == pool for node in self.going)


def idle() -> tuple[Stage, Slow, str]:
    """A cluster whose only node has run its pod, one tick before it idles for too long."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=20)})
    cloud = Slow(stage)
    stage.deps = replace(stage.deps, pools=cloud)
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(8)
    (node,) = stage.world.nodes
    return stage, cloud, node


def released() -> tuple[Stage, Slow, str]:
    """Its node was given back and is still seen."""
    stage, cloud, node = idle()
    stage.minutes(2)
    assert cloud.asked == [node]
    return stage, cloud, node


def open_nodes(stage: Stage) -> list[str]:
    """The nodes that take new pods."""
    return [node.name for node in stage.deps.cluster.observe().nodes if node.schedulable]


def test_a_node_that_was_given_back_is_not_opened_while_it_is_still_seen() -> None:
    """A pod that comes gets a node of its own, bought once: on the old one it would be killed with it."""
    stage, cloud, node = released()
    late = stage.submit("late", run_s=7200)
    stage.event(late)
    stage.wait(10)
    stage.tick()
    stage.minutes(2)
    assert (node in open_nodes(stage), stage.world.launches) == (False, 2)
    cloud.turn_off()
    stage.minutes(6)
    assert late.uid in stage.world.running
    assert (stage.world.launches, list(node_marks.every(stage.deps))) == (2, [])


def test_a_node_that_was_given_back_is_given_back_and_told_once() -> None:
    """It is no idle node to be released again, no dead one, and no node that lacks its instance."""
    stage, cloud, node = released()
    stage.minutes(8)
    assert cloud.asked == [node]
    assert [alert.kind for alert in stage.alerts] == ["capacity-grow", "capacity-release"]


def test_a_node_that_a_person_opens_after_it_was_given_back_is_closed_again() -> None:
    """The call is made: there is nothing left to cancel."""
    stage, _, node = released()
    stage.world.open_by_hand(node)
    stage.minutes(1)
    assert open_nodes(stage) == []
    assert [a.kind for a in stage.alerts if a.kind == "finding-opened-by-hand"] == []


def test_a_node_that_did_not_go_after_all_is_opened_again() -> None:
    """Whatever the cloud said: after ten minutes the node is judged like any other."""
    stage, cloud, node = released()
    cloud.going.clear()
    stage.minutes(8)
    assert (open_nodes(stage), cloud.asked) == ([], [node])
    stage.minutes(3)
    assert cloud.asked == [node, node]


def test_a_lost_release_that_landed_is_known_by_its_instance_while_the_node_is_still_seen() -> None:
    """Past the time in which it could land the node is not opened: its instance goes."""
    stage, cloud, node = idle()
    cloud.lost = 1
    with pytest.raises(Unsure):
        stage.minutes(3)
    stage.submit("late")
    stage.wait(MINUTE)
    stage.tick()
    assert (open_nodes(stage), cloud.asked) == ([], [node])
    steps = [s.state for r in ledger.filed_records(stage.deps.state, "c") for s in r.steps if s.call == "release"]
    assert steps == ["done"]
