"""A purchase in parts: what one call did not get, the next does not ask for, and what comes late is no second node."""

import dataclasses
from contextlib import suppress
from datetime import timedelta

import pytest
from msgspec.structs import replace
from stage import MINUTE, Stage
from test_call_steps import Cloud, on_cloud, states

from pilotlight.errors import Denied, NoCapacity, Unsure
from pilotlight.facts.labels import ZONE
from pilotlight.facts.money.money_policy import Caps, Limits
from pilotlight.facts.nodes.pool_state import InFlight, PoolState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.workload import Requirement
from pilotlight.flow.records import flight_log, ledger
from pilotlight.ports.clouds import OPEN, UNBOUNDED, SizeGate
from pilotlight.world.faults import Faults
from pilotlight.world.world_pools import WorldPools

ZONES = {"one": PoolPolicy(instance_type="one", zones=("a", "b"))}


def of_zone(zone: str) -> object:
    """A pod's wish for a zone."""
    return ((Requirement(key=ZONE, operator="In", values=(zone,)),),)


def test_what_one_zone_has_not_is_not_asked_of_another() -> None:
    """Two pods of two zones, and the first zone has nothing: the second gets its one node, and not the other's too."""
    stage = Stage(pools=ZONES)
    stage.fail("grow", NoCapacity("none in zone a"))
    stage.submit("b", terms=of_zone("b"))
    stage.event(stage.submit("a", terms=of_zone("a")))
    assert stage.world.launches == 1
    assert not stage.failures_left


class LastOfZone(WorldPools):
    """A cloud whose zone a has one node fewer than it is asked for, each time."""

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        """Raise the pool; in zone a by one less, which is said."""
        if zone != "a":
            return super().grow(pool, to, zone, gate=gate, token=token, most=most)
        super().grow(pool, to - 1, zone, gate=lambda size: gate(to), token=token, most=most)
        raise NoCapacity("one less than that is left in zone a")


def test_of_what_one_zone_has_in_part_only_the_rest_is_not_asked_of_another() -> None:
    """Two of three nodes came of zone a: the call for zone b raises the pool by its own one, and no more."""
    stage = Stage(pools=ZONES)
    stage.deps = dataclasses.replace(stage.deps, pools=LastOfZone(stage.world))
    stage.submit("b", terms=of_zone("b"))
    for name in ("a1", "a2", "a3"):
        pod = stage.submit(name, terms=of_zone("a"))
    stage.event(pod)
    zones = sorted(node.zone for node in stage.world.nodes.values())
    assert zones[:3] == ["a", "a", "b"]
    first = ledger.filed_records(stage.deps.state, "c")[0]
    assert [(step.state, step.count, step.to) for step in first.steps] == [("denied", 2, 3), ("done", 1, 3)]


def test_a_part_of_a_gang_that_could_not_be_given_back_at_once_goes_at_the_next_look() -> None:
    """The quota ends after two of three nodes, and the cloud refuses to take the first back: a minute later it does."""
    stage = Stage(pools={"eight": PoolPolicy(instance_type="eight", max=20)}, faults=Faults(quota_nodes=2))
    stage.fail("release", Denied("not now"))
    stage.event(stage.submit_gang("g", 3)[0])
    stage.minutes(2)
    assert (stage.world.launches, len(stage.world.nodes)) == (2, 0)
    assert not stage.failures_left
    assert flight_log.in_flight(stage.deps.state, "c") == []


def test_what_is_left_of_a_broken_purchase_is_forgotten_after_its_deadline() -> None:
    """Its nodes went by other hands: it is kept for the plan that would give them back, and for no longer."""
    stage = Stage(pools={"eight": PoolPolicy(instance_type="eight", max=20)})
    now = stage.deps.now()
    entry = InFlight(
        decision="d", offering="eight/eight/on-demand", pool="eight", count=1, requested_at=now,
        ready_by=now + timedelta(minutes=3), demands=("gone",), gangs=("g",), broken=True,
    )  # fmt: skip
    flight_log.write_flight(stage.deps.state, "c/d.0", entry)
    patience = stage.deps.policy.gpu_ready_deadline / MINUTE
    stage.minutes(patience + 3)
    assert [kept for _, kept in flight_log.in_flight(stage.deps.state, "c")] == [entry]
    stage.minutes(3)
    assert flight_log.in_flight(stage.deps.state, "c") == []


def limited(limits: Limits) -> tuple[Stage, Cloud]:
    """A stage on a cloud that loses answers, with limits of what may change within ten minutes."""
    stage, cloud = on_cloud(made=True)
    policy = replace(stage.deps.policy, caps=Caps(ten_minutes=limits))
    stage.deps = dataclasses.replace(stage.deps, policy=policy)
    return stage, cloud


def test_a_release_whose_answer_is_lost_counts_against_the_limits_of_ten_minutes() -> None:
    """It went: the other idle node stays until ten minutes are over."""
    stage, cloud = limited(Limits(nodes_removed=1))
    for name in ("a", "b"):
        stage.event(stage.submit(name, run_s=60))
    stage.minutes(5)
    assert len(stage.world.nodes) == 2
    cloud.releases = 1
    gone_at = None
    for _ in range(25):
        stage.wait(MINUTE)
        with suppress(Unsure):
            stage.tick()
        if gone_at is None and len(stage.world.nodes) == 1:
            gone_at = stage.world.now_s
        if not stage.world.nodes:
            break
    assert gone_at is not None
    assert not stage.world.nodes
    assert stage.world.now_s - gone_at >= 10 * MINUTE


def test_a_purchase_that_never_came_counts_against_no_limit() -> None:
    """Once it cannot land any more the pod gets its node, though the limit is one in ten minutes."""
    stage, cloud = limited(Limits(nodes_added=1))
    cloud.made, cloud.grows = False, 1
    with pytest.raises(Unsure):
        stage.event(stage.submit("a"))
    stage.minutes(4)
    assert stage.world.launches == 1


def test_a_purchase_that_may_still_land_counts_against_the_limits() -> None:
    """Seconds after its answer was lost a pod for another pool comes: its node would be one too many."""
    stage = Stage(caps=Caps(ten_minutes=Limits(nodes_added=1)))
    cloud = Cloud(stage)
    stage.deps = dataclasses.replace(stage.deps, pools=cloud)
    cloud.made, cloud.grows = False, 1
    with pytest.raises(Unsure):
        stage.event(stage.submit("a"))
    stage.wait(5)
    stage.event(stage.submit("b", gpus=8))
    assert stage.world.launches == 0


def test_a_decision_is_closed_once_each_of_its_calls_is_known() -> None:
    """Of two purchases the first's answer is lost, the other pool's is made: until both are known it is not filed."""
    stage = Stage()
    cloud = Cloud(stage)
    stage.deps = dataclasses.replace(stage.deps, pools=cloud)
    cloud.grows = 1
    stage.submit("big", gpus=8)
    with pytest.raises(Unsure):
        stage.event(stage.submit("small"))
    stage.wait(5)
    stage.tick()
    assert (states(stage), stage.world.launches) == ([], 2)
    stage.minutes(2)
    assert states(stage) == ["done", "done"]


def test_an_instance_that_boots_on_is_not_taken_for_gone() -> None:
    """It never became a node, and its release never arrived, its answer lost: it is sent again by the next look."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=20)}, faults=Faults(boot_s=7200.0))
    cloud = Cloud(stage, made=False)
    stage.deps = dataclasses.replace(stage.deps, pools=cloud)
    stage.event(stage.submit("a", run_s=60))
    cloud.releases = 1
    with pytest.raises(Unsure):
        stage.minutes(25)
    assert states(stage) == ["done"]
    stage.wait(5)
    stage.tick()
    assert [sent for sent in cloud.sent if sent.startswith("release")] == ["release n1", "release n1"]
    assert "n1" not in stage.world.nodes
