"""Which nodes are kept closed, for whose sake, and when they open."""

import pytest
from stage import MINUTE, Stage

from pilotlight.errors import Busy, Unavailable
from pilotlight.flow.memory import marks


def lit() -> tuple[Stage, str]:
    """A cluster with one node that has run its pod and is idle."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(6)
    (node,) = stage.world.nodes
    return stage, node


def closed(stage: Stage, node: str) -> bool:
    """Whether a node carries our mark."""
    return next(n.marked for n in stage.deps.cluster.observe().nodes if n.name == node)


def test_a_node_opens_when_its_last_owner_leaves() -> None:
    """Two owners: the first that leaves changes nothing, with the second it opens and no record is left."""
    stage, node = lit()
    marks.hold(stage.deps, node, "budget", "no room")
    marks.hold(stage.deps, node, "rescue", "its cloud takes it")
    marks.lift(stage.deps, node, "rescue")
    assert closed(stage, node)
    marks.lift(stage.deps, node, "budget")
    assert not closed(stage, node)
    assert list(marks.every(stage.deps)) == []


def test_a_release_is_lifted_only_by_the_decision_that_holds_it() -> None:
    """A worker that comes back late does not open a node that a later decision gives back."""
    stage, node = lit()
    marks.hold(stage.deps, node, "release", "idle", by="1")
    marks.hold(stage.deps, node, "release", "idle", by="2")
    marks.lift(stage.deps, node, "release", by="1")
    assert closed(stage, node)


def test_a_person_who_opens_a_node_cancels_its_release_for_an_hour() -> None:
    """It stays, people are told once, and after the hour it is judged like any idle node."""
    stage, node = lit()
    marks.hold(stage.deps, node, "release", "idle", by="1")
    stage.deps.cluster.uncordon(node)
    stage.minutes(50)
    assert list(stage.world.nodes) == [node]
    assert not closed(stage, node)
    assert [alert.kind for alert in stage.alerts].count("finding-opened-by-hand") == 1
    stage.minutes(20)
    assert not stage.world.nodes


def test_what_a_budget_keeps_closed_is_closed_again() -> None:
    """Only a release is a person's to cancel: money that is not there stays not there."""
    stage, node = lit()
    marks.hold(stage.deps, node, "budget", "no room")
    stage.deps.cluster.uncordon(node)
    stage.wait(MINUTE)
    marks.settle(stage.deps, stage.deps.cluster.observe().nodes, (), stage.deps.now())
    assert closed(stage, node)


def test_a_mark_that_no_record_names_comes_off() -> None:
    """What a crash between record and mark leaves, and the taints of an earlier version, do not last."""
    stage, node = lit()
    stage.deps.cluster.cordon(node)
    marks.settle(stage.deps, stage.deps.cluster.observe().nodes, (), stage.deps.now())
    assert not closed(stage, node)


def test_the_mark_of_an_interruption_that_another_worker_ended_comes_off() -> None:
    """One stood still before it closed the node, and died once it had; nobody else would open it."""
    stage, node = lit()
    stage.submit("b", run_s=3_000)
    stage.minutes(1)
    marks.hold(stage.deps, node, "rescue", "a notice that was disproved meanwhile")
    assert closed(stage, node)
    stage.minutes(3)
    assert not closed(stage, node)
    assert list(marks.every(stage.deps)) == []


def test_a_node_that_may_still_go_is_not_opened() -> None:
    """While a release may land its node is closed, with or without a record."""
    stage, node = lit()
    stage.deps.cluster.cordon(node)
    marks.settle(stage.deps, stage.deps.cluster.observe().nodes, {node}, stage.deps.now())
    assert closed(stage, node)


def test_marks_of_nodes_that_are_gone_are_forgotten() -> None:
    """The ledger is as long as the nodes that are closed."""
    stage, node = lit()
    marks.hold(stage.deps, node, "budget", "no room")
    stage.wait(MINUTE)
    marks.settle(stage.deps, (), (), stage.deps.now())
    assert list(marks.every(stage.deps)) == []


def test_a_node_is_recorded_before_it_is_closed() -> None:
    """A cluster that does not answer leaves a record, which closes the node at a later look."""
    stage, node = lit()
    stage.fail("cordon", Unavailable("timeout"))
    with pytest.raises(Unavailable):
        marks.hold(stage.deps, node, "budget", "no room")
    assert [mark.node for mark in marks.every(stage.deps)] == [node]
    stage.wait(MINUTE)
    marks.settle(stage.deps, stage.deps.cluster.observe().nodes, (), stage.deps.now())
    assert closed(stage, node)


def test_a_worker_that_comes_back_does_not_close_what_a_later_decision_holds() -> None:
    """Nor can it take that one's mark over."""
    stage, node = lit()
    marks.hold(stage.deps, node, "release", "idle", by="2")
    with pytest.raises(Busy):
        marks.hold(stage.deps, node, "release", "idle", by="1")
    (mark,) = marks.every(stage.deps)
    assert mark.owners["release"].by == "2"
