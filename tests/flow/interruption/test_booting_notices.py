"""A notice of a machine that boots: it is kept until that is a node, or is gone."""

import pytest
from test_interrupt import SAVES, Doomed

from pilotlight.flow.budgets import interruption_records


def outcome(stage: Doomed, instance: str) -> str:
    """How the interruption of an instance stands."""
    known = interruption_records.find(stage.deps, instance)
    return "none" if known is None else known.found.outcome


@pytest.mark.parametrize("seen", [True, False], ids=["known by a tick", "just bought"])
def test_its_notice_is_dealt_with_once_it_is_a_node(seen: bool) -> None:
    """It joins after three minutes and is taken after seven: its work is saved, and its pod gets another in time."""
    stage = Doomed(pods=[SAVES])
    stage.start("late", **SAVES)
    if seen:
        stage.minutes(1)
    (boots,) = set(stage.world.nodes) - {"n1"}
    stage.notice(notice_s=420, node=boots)
    assert outcome(stage, boots) == ""
    stage.until(400)
    assert outcome(stage, boots) == "released"
    stage.minutes(5)
    assert (len(stage.world.running), stage.world.launches) == (2, 3)


def test_one_that_is_taken_before_it_joins_is_gone_then() -> None:
    """Its notice is over with its machine, not before, and its pod gets another."""
    stage = Doomed()
    stage.start("late")
    stage.minutes(1)
    (boots,) = set(stage.world.nodes) - {"n1"}
    stage.notice(notice_s=60, node=boots)
    stage.until(50)
    assert outcome(stage, boots) == ""
    stage.until(30)
    assert outcome(stage, boots) == "gone"
    stage.minutes(8)
    assert (len(stage.world.running), stage.world.launches) == (2, 3)


def test_an_instance_that_nobody_asked_for_is_unknown_at_once() -> None:
    """Its notice came to the account, and is of another cluster: nothing is kept of it."""
    stage = Doomed()
    stage.start("late")
    stage.deliver("spot-interruption", "i-elsewhere", stage.world.clock.now())
    assert outcome(stage, "i-elsewhere") == "unknown"
