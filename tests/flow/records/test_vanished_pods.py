"""Since when a node is idle whose pods are gone without a trace: deleted objects say nothing, earlier looks do."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest
from stage import MINUTE, START, Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import ledger
from pilotlight.flow.records.lease import acquire
from pilotlight.state_schema.decision_records import IDLE

ONE = {"one": PoolPolicy(instance_type="one", max=20)}
TIMEOUT_S = 300.0
"""Of the stage's class batch."""
LOOK_S = MINUTE
HOURS = 240 * MINUTE


def delete(stage: Stage) -> None:
    """KEDA or an HPA scales down, a rollout replaces, somebody stops a notebook."""
    stage.world.delete(stage.world.running["uid-p"])


def rest(stage: Stage) -> None:
    """An owner is scaled to zero, and may come back."""
    stage.world.rest(stage.world.running["uid-p"])


def finish(stage: Stage) -> None:
    """A Job's pod finishes and stays to be looked at."""
    stage.world.finish("uid-p")


def expire(ttl_s: float) -> Callable[[Stage], None]:
    """A Job's pod finishes, and is deleted by ``ttlSecondsAfterFinished``."""

    def gone(stage: Stage) -> None:
        stage.world.running["uid-p"].ttl_s = ttl_s
        stage.world.finish("uid-p")

    return gone


WAYS: dict[str, Callable[[Stage], None]] = {
    "finished and kept": finish,
    "deleted": delete,
    "scaled to zero": rest,
    "finished and deleted at once": expire(0),
    "finished and deleted half a minute later": expire(30),
    "finished and deleted two minutes later": expire(120),
}


def worked(hours: float = 4.0, **pools: PoolPolicy) -> Stage:
    """A stage whose pod ``p`` has run for hours, looked at every minute; its last look was 20 s ago."""
    stage = Stage(pools=pools or ONE)
    stage.event(stage.submit("p", run_s=1e9))
    stage.minutes(hours * 60)
    stage.wait(20)
    return stage


def released_after(stage: Stage, begin_s: float, minutes: int = 30) -> float:
    """Seconds from a moment until the one node is given back."""
    stage.minutes(minutes)
    (end,) = stage.events("terminate")
    return float(end["t"]) - begin_s


@pytest.mark.parametrize("end", WAYS.values(), ids=WAYS.keys())
def test_a_node_idles_its_timeout_however_its_last_pod_went(end: Callable[[Stage], None]) -> None:
    """It goes at the first look after its timeout, give or take one look, and not because it was ready for hours."""
    stage = worked()
    gone_s = stage.world.now_s
    end(stage)
    lasted_s = released_after(stage, gone_s)
    assert TIMEOUT_S - LOOK_S <= lasted_s <= TIMEOUT_S + 2 * LOOK_S


def test_a_node_never_looks_idle_for_longer_than_it_was_by_more_than_a_look() -> None:
    """The verdict of every look after a deletion, beside the world's own clock."""
    stage = worked()
    gone_s = stage.world.now_s
    delete(stage)
    for _ in range(4):
        stage.wait(MINUTE)
        (node,) = (stage.tick(dry_run=True).plan or pytest.fail("no plan")).nodes
        stage.tick()
        assert node.verdict == "keep"
        assert node.idle_s <= stage.world.now_s - gone_s + LOOK_S


def test_a_late_look_ends_no_idle_time() -> None:
    """No look for an hour, and the pod is deleted a minute before the next: its node idles its timeout from there."""
    stage = worked()
    stage.wait(60 * MINUTE)
    delete(stage)
    gone_s = stage.world.now_s
    stage.wait(MINUTE)
    stage.tick()
    assert released_after(stage, gone_s) >= TIMEOUT_S - LOOK_S


def test_a_pod_that_came_and_went_between_ticks_counts_where_a_look_saw_it() -> None:
    """An event's look sees a pod on an idle node; it is deleted before the next tick: idle since that look."""
    stage = worked()
    delete(stage)
    stage.minutes(4)
    stage.submit("q", run_s=1e9)
    stage.event(stage.submit("r", gpus=8))
    seen_s = stage.world.now_s
    stage.world.delete(stage.world.running["uid-q"])
    stage.world.delete(stage.world.pending["uid-r"])
    stage.wait(10)
    stage.minutes(30)
    (end,) = (each for each in stage.events("terminate") if each["node"] == "n1")
    assert end["t"] - seen_s >= TIMEOUT_S - LOOK_S


def test_what_nobody_saw_changes_nothing() -> None:
    """A pod that came and went between two looks, seen by none, leaves the node idle since it was."""
    stage = worked()
    gone_s = stage.world.now_s
    delete(stage)
    stage.minutes(2)
    stage.submit("q", run_s=1e9)
    stage.world.delete(stage.world.running["uid-q"])
    assert TIMEOUT_S - LOOK_S <= released_after(stage, gone_s) <= TIMEOUT_S + 2 * LOOK_S


@pytest.mark.parametrize("end", [delete, finish], ids=["a deleted pod", "a finished pod"])
def test_a_dry_look_knows_what_the_last_tick_saw(end: Callable[[Stage], None]) -> None:
    """A node whose pod a tick of 20 s ago saw is idle since then for who only looks, as for the next tick."""
    stage = worked()
    end(stage)
    stage.wait(11)
    (node,) = (stage.tick(dry_run=True).plan or pytest.fail("no plan")).nodes
    assert node.verdict == "keep"
    assert 0 < node.idle_s <= LOOK_S
    assert node.why.startswith("idle for ")


@pytest.mark.parametrize("end", [delete, finish], ids=["a deleted pod", "a finished pod"])
def test_a_lost_state_says_ready_and_counts_anew(end: Callable[[Stage], None]) -> None:
    """With the state gone nothing is known: ready for so long, and a whole timeout from the first look on."""
    stage = worked()
    end(stage)
    stage.deps = replace(stage.deps, state=MemoryState(stage.world.clock))
    (node,) = (stage.tick(dry_run=True).plan or pytest.fail("no plan")).nodes
    assert (node.verdict, node.idle_s) == ("keep", 0)
    assert node.why.startswith("ready for 4.0 h; idle time is not known and counts from now: 0 s of ")
    stage.tick()
    first_s = stage.world.now_s
    assert TIMEOUT_S <= released_after(stage, first_s) <= TIMEOUT_S + 2 * LOOK_S


def test_a_lost_record_of_idle_nodes_is_no_reason_to_go() -> None:
    """Only what remembered idle nodes is lost: idle since the last look, which is all that is known."""
    stage = worked()
    delete(stage)
    stage.minutes(3)
    lost_s = stage.world.now_s
    IDLE.write(stage.deps.state, "c", IDLE.read(stage.deps.state, "c"), {})
    assert released_after(stage, lost_s) >= TIMEOUT_S - LOOK_S


def test_a_record_from_the_future_keeps_no_node() -> None:
    """A clock jumped by 40 days and back: the node goes a timeout after the first look that sees it idle."""
    stage = worked()
    gone_s = stage.world.now_s
    delete(stage)
    remember(stage, stage.deps.now() + timedelta(days=40))
    assert TIMEOUT_S - LOOK_S <= released_after(stage, gone_s) <= TIMEOUT_S + 2 * LOOK_S


def test_a_record_of_an_earlier_node_of_that_name_is_not_believed() -> None:
    """A name is used again between two looks: the node is idle since it became ready at the earliest."""
    stage = Stage(pools=ONE)
    stage.tick()
    stage.world.launch("one")
    stage.wait(4 * MINUTE)
    remember(stage, START - timedelta(days=40))
    stage.tick()
    was = ledger.recall(stage.deps.state, "c")
    assert was.memory.idle_since["n1"] == START + timedelta(seconds=180)


def remember(stage: Stage, since: datetime) -> None:
    """The node is idle since then, as the state has it."""
    was = ledger.recall(stage.deps.state, "c")
    ledger.remember(stage.deps.state, "c", was, msgspec.structs.replace(was.memory, idle_since={"n1": since}))


def test_nothing_is_written_for_a_node_that_stays_at_work_or_idle() -> None:
    """An hour of looks at a busy node and at an idle one writes neither the memory nor who is idle."""
    stage = worked(0.5, one=PoolPolicy(instance_type="one", max=20, min=1))
    for idle in (False, True):
        if idle:
            delete(stage)
        stage.minutes(2)
        before = versions(stage)
        stage.minutes(60)
        assert versions(stage) == before
        assert bool(before[1]) is idle


def versions(stage: Stage) -> tuple[int, int]:
    """Of the memory and of the idle nodes."""
    was = ledger.recall(stage.deps.state, "c")
    return was.version, sum(part.version for part in was.idle.parts.values())


def test_a_node_that_is_gone_is_forgotten() -> None:
    """What is remembered of nodes is never more than the nodes there are."""
    stage = worked()
    delete(stage)
    stage.minutes(30)
    assert stage.nodes("one") == 0
    assert ledger.recall(stage.deps.state, "c").memory.idle_since == {}


def test_a_lease_tells_the_next_one_when_looks_were_settled() -> None:
    """Only a holder that settles what it sees counts; the next learns when that began."""
    stage = Stage(pools=ONE)
    told = []
    for settles in (False, True, False, False, True, True):
        held = acquire(stage.deps.state, "c", "me", settles=settles)
        assert held is not None
        told.append(held.settled and (held.settled - START).total_seconds())
        held.release()
        stage.wait(10)
    assert told == [None, None, 10.0, 10.0, 10.0, 40.0]
