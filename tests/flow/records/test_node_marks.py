"""Which nodes are kept closed, for whose sake, and when they open."""

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace
from stage import MINUTE, Stage

from pilotlight.errors import BadRequest, Busy, Forbidden, PilotlightError, Unavailable
from pilotlight.facts.decisions import CallStep, Plan
from pilotlight.flow.records import ledger, node_marks
from pilotlight.ports.state import ABSENT


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
    node_marks.hold(stage.deps, node, "budget", "no room")
    node_marks.hold(stage.deps, node, "rescue", "its cloud takes it")
    node_marks.lift(stage.deps, node, "rescue")
    assert closed(stage, node)
    node_marks.lift(stage.deps, node, "budget")
    assert not closed(stage, node)
    assert list(node_marks.every(stage.deps)) == []


def test_a_release_is_lifted_only_by_the_decision_that_holds_it() -> None:
    """A worker that comes back late does not open a node that a later decision gives back."""
    stage, node = lit()
    node_marks.hold(stage.deps, node, "release", "idle", by="1")
    node_marks.hold(stage.deps, node, "release", "idle", by="2")
    node_marks.lift(stage.deps, node, "release", by="1")
    assert closed(stage, node)


def test_a_person_who_opens_a_node_cancels_its_release_for_an_hour() -> None:
    """It stays, people are told once, and after the hour it is judged like any idle node."""
    stage, node = lit()
    node_marks.hold(stage.deps, node, "release", "idle", by="1")
    stage.world.open_by_hand(node)
    stage.minutes(50)
    assert list(stage.world.nodes) == [node]
    assert not closed(stage, node)
    assert [alert.kind for alert in stage.alerts].count("finding-opened-by-hand") == 1
    stage.minutes(20)
    assert not stage.world.nodes


def test_what_a_budget_keeps_closed_is_closed_again() -> None:
    """Only a release is a person's to cancel: money that is not there stays not there."""
    stage, node = lit()
    node_marks.hold(stage.deps, node, "budget", "no room")
    stage.world.open_by_hand(node)
    stage.wait(MINUTE)
    node_marks.settle(stage.deps, stage.deps.cluster.observe().nodes, (), stage.deps.now())
    assert closed(stage, node)


def test_a_mark_that_no_record_names_comes_off() -> None:
    """A crash between record and mark leaves nothing that lasts."""
    stage, node = lit()
    stage.deps.cluster.cordon(node)
    node_marks.settle(stage.deps, stage.deps.cluster.observe().nodes, (), stage.deps.now())
    assert not closed(stage, node)


def test_the_mark_of_an_interruption_that_another_worker_ended_comes_off() -> None:
    """One stood still before it closed the node, and died once it had; nobody else would open it."""
    stage, node = lit()
    stage.submit("b", run_s=3_000)
    stage.minutes(1)
    node_marks.hold(stage.deps, node, "rescue", "a notice that was disproved meanwhile")
    assert closed(stage, node)
    stage.minutes(3)
    assert not closed(stage, node)
    assert list(node_marks.every(stage.deps)) == []


def test_a_node_that_may_still_go_is_not_opened() -> None:
    """While a release may land its node is closed, with or without a record."""
    stage, node = lit()
    stage.deps.cluster.cordon(node)
    node_marks.settle(stage.deps, stage.deps.cluster.observe().nodes, {node}, stage.deps.now())
    assert closed(stage, node)


def test_marks_of_nodes_that_are_gone_are_forgotten() -> None:
    """The ledger is as long as the nodes that are closed."""
    stage, node = lit()
    node_marks.hold(stage.deps, node, "budget", "no room")
    stage.wait(MINUTE)
    node_marks.settle(stage.deps, (), (), stage.deps.now())
    assert list(node_marks.every(stage.deps)) == []


def test_a_node_is_recorded_before_it_is_closed() -> None:
    """A cluster that does not answer leaves a record, which closes the node at a later look."""
    stage, node = lit()
    stage.fail("cordon", Unavailable("timeout"))
    with pytest.raises(Unavailable):
        node_marks.hold(stage.deps, node, "budget", "no room")
    assert [mark.node for mark in node_marks.every(stage.deps)] == [node]
    stage.wait(MINUTE)
    node_marks.settle(stage.deps, stage.deps.cluster.observe().nodes, (), stage.deps.now())
    assert closed(stage, node)


def test_a_worker_that_comes_back_does_not_close_what_a_later_decision_holds() -> None:
    """Nor can it take that one's mark over."""
    stage, node = lit()
    node_marks.hold(stage.deps, node, "release", "idle", by="2")
    with pytest.raises(Busy):
        node_marks.hold(stage.deps, node, "release", "idle", by="1")
    (mark,) = node_marks.every(stage.deps)
    assert mark.owners["release"].by == "2"


def settled(stage: Stage, leaving: tuple[str, ...] = ()) -> tuple[dict[str, datetime], list[str]]:
    """What a look settles of the marks: who rests until when, and what is told."""
    nodes = stage.deps.cluster.observe().nodes
    rests, told = node_marks.settle(stage.deps, nodes, leaving, stage.deps.now())
    return rests, [finding.code for finding in told]


def test_a_node_that_was_given_back_and_did_not_go_opens_after_ten_minutes() -> None:
    """Its object may be seen for a while: until then it stays closed, and counts as going."""
    stage, node = lit()
    node_marks.mark_released(stage.deps, node, "it idles", by="1")
    for minutes, shut in ((9, True), (2, False)):
        stage.wait(minutes * MINUTE)
        nodes = stage.deps.cluster.observe().nodes
        assert (node in node_marks.released_nodes(list(node_marks.every(stage.deps)), nodes, stage.deps.now())) is shut
        settled(stage)
        assert closed(stage, node) is shut
    assert list(node_marks.every(stage.deps)) == []


def test_a_node_that_has_the_name_of_one_that_went_is_another() -> None:
    """A cloud gives a name again within minutes: the new node is not closed for the old one's sake."""
    stage, node = lit()
    node_marks.mark_released(stage.deps, node, "it idles", by="1")
    stage.wait(2 * MINUTE)
    (seen,) = stage.deps.cluster.observe().nodes
    again = replace(seen, created_at=stage.deps.now() - timedelta(minutes=1))
    assert node_marks.released_nodes(list(node_marks.every(stage.deps)), [again], stage.deps.now()) == set()
    node_marks.settle(stage.deps, [again], (), stage.deps.now())
    assert not closed(stage, node)


def test_a_look_from_before_a_node_was_closed_opens_nothing() -> None:
    """It shows the node without its mark: nobody took that off, and the release goes on."""
    stage, node = lit()
    before = stage.deps.cluster.observe().nodes
    node_marks.hold(stage.deps, node, "release", "idle", by="1")
    assert node_marks.settle(stage.deps, before, (node,), stage.deps.now()) == ({}, ())
    (mark,) = node_marks.every(stage.deps)
    assert list(mark.owners) == ["release"]


def test_a_release_that_is_still_marked_was_opened_by_nobody() -> None:
    """However long its call may land."""
    stage, node = lit()
    node_marks.hold(stage.deps, node, "release", "idle", by="1")
    stage.wait(5 * MINUTE)
    assert settled(stage, (node,)) == ({}, [])
    assert closed(stage, node)


def test_that_a_person_opened_a_node_is_said_by_one_look() -> None:
    """Later looks know that it rests, and until when."""
    stage, node = lit()
    node_marks.hold(stage.deps, node, "release", "idle", by="1")
    stage.world.open_by_hand(node)
    stage.wait(MINUTE)
    rests, told = settled(stage)
    assert (list(rests), told) == ([node], ["opened-by-hand"])
    stage.wait(MINUTE)
    assert settled(stage) == (rests, [])


@pytest.mark.parametrize("no", [BadRequest("it is gone"), Forbidden("a webhook says no")], ids=["gone", "refused"])
@pytest.mark.parametrize("call", ["cordon", "uncordon", "forget_opened"])
def test_a_node_whose_mark_may_not_be_changed_keeps_nothing_else_from_being_done(
    call: str, no: PilotlightError
) -> None:
    """It is tried again at each look; people hear of a refusal, and pods get their nodes meanwhile."""
    stage, node = lit()
    if call == "uncordon":
        stage.deps.cluster.cordon(node)
    else:
        node_marks.hold(stage.deps, node, "budget" if call == "cordon" else "release", "no room", by="1")
        stage.world.open_by_hand(node)
        stage.wait(MINUTE)
    stage.fail(call, no)
    stage.submit("b", run_s=600)
    stage.submit("c", run_s=600)
    stage.tick()
    assert stage.failures_left == 0
    assert stage.world.launches >= 2
    told = [alert.why for alert in stage.alerts if alert.kind == "finding-mark-refused"]
    assert told == ([] if isinstance(no, BadRequest) else ["a webhook says no"])
    stage.minutes(2)
    assert closed(stage, node) == (call == "cordon")


def test_a_release_that_is_called_off_goes_on_where_its_mark_may_not_be_taken_off() -> None:
    """Whoever calls it off has more to do: the next look opens the node, which no record names any more."""
    stage, node = lit()
    node_marks.hold(stage.deps, node, "release", "idle", by="1")
    stage.fail("uncordon", Forbidden("a webhook says no"))
    node_marks.lift(stage.deps, node, "release", by="1")
    assert closed(stage, node)
    stage.tick()
    assert not closed(stage, node)


def test_a_node_that_a_person_opened_rests_also_while_what_is_noted_on_it_may_not_be_taken_off() -> None:
    """A webhook of another's refuses that at every look: the node stays for its hour, and no longer."""
    stage, node = lit()
    node_marks.hold(stage.deps, node, "release", "idle", by="1")
    stage.world.open_by_hand(node)

    def refused() -> None:
        if not stage.failures_left:
            stage.fail("forget_opened", Forbidden("a webhook says no"))

    refused()
    stage.minutes(55, refused)
    assert list(stage.world.nodes) == [node]
    stage.minutes(30, refused)
    assert not stage.world.nodes


@pytest.mark.parametrize("by", ["no-decision", "purchase", "other-node", "long-ago"])
def test_a_note_that_names_no_release_of_ours_keeps_no_node(by: str) -> None:
    """Whoever may patch nodes writes it anew each minute: the idle node goes in its time, and nobody is told."""
    stage, node = lit()
    (bought, *_) = ledger.filed_records(stage.deps.state, "c")
    step = CallStep(n=0, call="release", pool="one", target="n2" if by == "other-node" else node, state="denied")
    at = stage.deps.now() - timedelta(hours=2 if by == "long-ago" else 0)
    ledger.close(stage.deps.state, replace(bought, id="1-forged", at=at, steps=(step,), plan=Plan()))
    note = {"no-decision": "1-unknown", "purchase": bought.id}.get(by, "1-forged")

    def forge() -> None:
        if node in stage.world.nodes:
            stage.world.cordon(node, by=note)
            stage.world.open_by_hand(node)

    stage.minutes(40, forge)
    assert not stage.world.nodes
    assert [alert.kind for alert in stage.alerts].count("finding-opened-by-hand") == 0


def test_a_note_that_names_a_release_whose_decision_is_still_open_keeps_its_node() -> None:
    """Its own step is called off, and another's answer is still lost: the person who opened the node is heard."""
    stage, node = lit()
    (bought, *_) = ledger.filed_records(stage.deps.state, "c")
    step = CallStep(n=0, call="release", pool="one", target=node, state="revoked")
    record = replace(bought, id="1-open", status="open", at=stage.deps.now(), steps=(step,), plan=Plan())
    ledger.write(stage.deps.state, record, if_version=ABSENT)
    stage.world.cordon(node, by="1-open")
    stage.world.open_by_hand(node)
    rests, told = settled(stage)
    assert (list(rests), told) == ([node], ["opened-by-hand"])
