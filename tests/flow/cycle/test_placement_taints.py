"""Nodes' doors in a cluster whose scheduler respects taints: who gets in, who is kept out, and who lifts all of it."""

import dataclasses
from typing import Any

import msgspec
import pytest
from stage import Stage

from pilotlight.errors import Denied, Forbidden, Unavailable
from pilotlight.facts.cluster_view import ClusterView
from pilotlight.facts.labels import GPU_MODEL, KARPENTER_NODE_POOL
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.place.closed_nodes import Opening
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.workload import Requirement
from pilotlight.flow.cycle import placement_taints
from pilotlight.flow.records import brake_records
from pilotlight.world.world_cluster import WorldCluster

A100 = ((Requirement(key=GPU_MODEL, operator="In", values=("A100",)),),)


def closed(stage: Stage) -> list[str]:
    """The nodes that are closed, by name."""
    return sorted(node.name for node in stage.deps.cluster.observe().nodes if node.closed)


def dear(**rules: Any) -> Stage:
    """A cluster whose A100 node works for two hours and is closed, and whose T4 node is idle."""
    stage = Stage(placement="taint", **rules)
    stage.event(stage.submit("first", gpus=8, run_s=2 * 3600))
    stage.wait(200)
    stage.event(stage.submit("small", run_s=60))
    stage.minutes(5)
    assert closed(stage) == ["n1"]
    return stage


@pytest.mark.parametrize(("placement", "launches"), [("taint", 2), ("none", 1)])
def test_small_work_stays_off_a_dear_node(placement: str, launches: int) -> None:
    """Once small work was seen there, the next gets a node of its own beside free A100s; without placement it joins."""
    stage = Stage(placement=placement)
    stage.event(stage.submit("large", terms=A100))
    stage.wait(200)
    stage.submit("hint", run_s=90)
    stage.minutes(1)
    stage.event(stage.submit("small"))
    stage.minutes(5)
    assert stage.world.running.keys() >= {"uid-large", "uid-small"}
    assert stage.world.launches == launches


def test_a_closed_node_opens_for_its_own_and_closes_behind_them() -> None:
    """A pod that belongs on it starts at the look that its event begins; the node is closed again at once."""
    stage = dear()
    stage.world.finish("uid-first")
    stage.event(stage.submit("second", gpus=8))
    assert "uid-second" in stage.world.running
    assert (stage.world.launches, closed(stage)) == (2, ["n1"])


def test_no_node_is_opened_for_whom_it_is_not() -> None:
    """While a small pod waits that would have the room first, the dear node stays closed and its own gets another."""
    stage = dear()
    stage.submit("busy", run_s=7200)
    stage.world.finish("uid-first")
    stage.event(stage.submit("thief", run_s=7200))
    stage.wait(5)
    stage.event(stage.submit("owner", gpus=8))
    assert closed(stage) == ["n1"]
    stage.minutes(5)
    on = {p.demand.uid: p.node.pool for job in stage.world.running.values() for p in job.placement}
    assert (on["uid-thief"], on["uid-owner"]) == ("one", "eight")


def test_a_pod_that_nothing_is_bought_for_gets_in() -> None:
    """At a cap the dear node opens for a small pod: nobody is locked out of room that is paid for."""
    stage = dear(caps=Caps(nodes=2))
    stage.world.finish("uid-first")
    stage.submit("t4", run_s=7200)
    stage.event(stage.submit("late", run_s=7200))
    assert stage.world.running.keys() >= {"uid-t4", "uid-late"}


def test_a_pause_lifts_all() -> None:
    """A person's pause opens every node at the next look, and keeps them open."""
    stage = dear()
    brake_records.pause(stage.deps.state, "c", "", "price check", stage.deps.now())
    stage.minutes(1)
    assert closed(stage) == []
    assert brake_records.resume(stage.deps.state, "c", "")
    stage.minutes(1)
    assert closed(stage) == ["n1"]


def test_without_the_policys_word_all_is_lifted() -> None:
    """Placement that was taken out of the policy leaves no node closed."""
    stage = dear()
    off = msgspec.structs.replace(stage.deps.policy, placement="none")
    stage.deps = dataclasses.replace(stage.deps, policy=off)
    stage.minutes(1)
    assert closed(stage) == []


class Unwatched(WorldCluster):
    """A cluster whose watchman is asleep."""

    def observe(self) -> ClusterView:
        """The world, unwatched."""
        return msgspec.structs.replace(super().observe(), watched=False)


class Deaf(WorldCluster):
    """A cluster that refuses the Lease."""

    def beat(self) -> None:
        """Refused."""
        raise Forbidden("no right to the Lease")


class Heard(WorldCluster):
    """A cluster that counts how often we said that we are awake."""

    beats = 0

    def beat(self) -> None:
        """Counted."""
        self.beats += 1


@pytest.mark.parametrize(("silence", "heard"), [("keep", 0), ("hand-back", 3)])
def test_a_look_is_heard_of_where_silence_hands_a_pool_back(silence: Any, heard: int) -> None:
    """Each look renews the Lease that the watchman reads; where no pool asks for it, none does."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=3, on_silence=silence)})
    cluster = Heard(stage.world)
    stage.deps = dataclasses.replace(stage.deps, cluster=cluster)
    stage.minutes(3)
    assert cluster.beats == heard


def test_nothing_is_closed_without_a_watchman() -> None:
    """Where nobody would open nodes in our place they are open: those that were closed too."""
    stage = dear()
    stage.deps = dataclasses.replace(stage.deps, cluster=Unwatched(stage.world))
    stage.minutes(1)
    assert closed(stage) == []


def test_nothing_is_closed_where_the_lease_is_refused() -> None:
    """Who cannot say that it is awake closes no node."""
    stage = dear()
    stage.deps.cluster.open("n1")
    stage.deps = dataclasses.replace(stage.deps, cluster=Deaf(stage.world))
    stage.minutes(2)
    assert closed(stage) == []


class Stubborn(WorldCluster):
    """A cluster that turns no door."""

    error: Denied | Unavailable

    def close(self, node: str) -> None:
        """Refused, or lost."""
        raise self.error

    open = close


@pytest.mark.parametrize("error", [Forbidden("no right"), Unavailable("down")], ids=["refused", "down"])
def test_a_door_that_does_not_turn_stops_nothing_else(error: Denied | Unavailable) -> None:
    """Purchases go on while taints cannot be changed."""
    stage = Stage(placement="taint")
    cluster = Stubborn(stage.world)
    cluster.error = error
    stage.deps = dataclasses.replace(stage.deps, cluster=cluster)
    stage.event(stage.submit("large", gpus=8))
    stage.event(stage.submit("small"))
    stage.minutes(5)
    assert stage.world.running.keys() == {"uid-large", "uid-small"}


def test_a_gang_starts_on_closed_nodes_together() -> None:
    """Two closed nodes open for a gang at one look, and close behind it."""
    stage = Stage(placement="taint")
    members = stage.submit_gang("g", 2, run_s=600)
    stage.event(members[0])
    stage.wait(200)
    stage.event(stage.submit("small", run_s=60))
    stage.minutes(11)
    assert (closed(stage), stage.world.running.keys() & {"g"}) == (["n1", "n2"], set())
    again = stage.submit_gang("h", 2)
    stage.event(again[0])
    assert "h" in stage.world.running
    assert closed(stage) == ["n1", "n2"]


class Shared(WorldCluster):
    """A cluster in which Karpenter makes the dear nodes."""

    def observe(self) -> ClusterView:
        """The world, its dear nodes with Karpenter's label."""
        view = super().observe()
        nodes = tuple(
            msgspec.structs.replace(n, labels={**n.labels, KARPENTER_NODE_POOL: "own"}) if n.pool == "eight" else n
            for n in view.nodes
        )
        return msgspec.structs.replace(view, nodes=nodes)


def test_a_pool_that_another_scales_is_left_open() -> None:
    """Where another autoscaler is at a pool its nodes are not closed, and opened where they were."""
    stage = dear()
    stage.deps = dataclasses.replace(stage.deps, cluster=Shared(stage.world))
    stage.minutes(1)
    assert closed(stage) == []


def test_open_nodes_are_watched_until_their_pods_are_bound() -> None:
    """Bound: closed. Gone: nothing is waited for. No answer: looked at again. Once the time is over that is said."""
    stage = Stage(placement="taint")
    pod = stage.submit("a", run_s=9000)
    stage.event(pod)
    stage.minutes(5)
    (node,) = stage.world.nodes
    waits = Opening(pods=("uid-late",), until=stage.deps.now())
    bound = Opening(pods=(pod.uid,), until=stage.deps.now())
    assert not placement_taints.tend(stage.deps, {node: waits}, 10), "time stands still: looked at once"
    assert not stage.world.nodes[node].steered
    assert not placement_taints.tend(stage.deps, {"gone": waits}, 10)
    paused = list[float]()

    def passes(seconds: float) -> None:
        paused.append(seconds)
        stage.wait(seconds)

    stage.deps = dataclasses.replace(stage.deps, pause=passes)
    assert placement_taints.tend(stage.deps, {node: waits}, 5)
    assert paused == [2, 2, 2]
    stage.fail("bound", Unavailable("no answer"))
    paused.clear()
    assert not placement_taints.tend(stage.deps, {node: bound}, 5)
    assert stage.world.nodes[node].steered
    assert paused == [2, 0]
