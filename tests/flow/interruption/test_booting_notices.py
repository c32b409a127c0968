"""A notice of a machine that boots: it is kept until that is a node, or is gone."""

from dataclasses import replace
from datetime import timedelta
from threading import Event

import pytest
from test_interrupt import SAVES, Doomed

from pilotlight.facts.nodes.pool_state import InstanceState
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.interruption.drain_one import NodeDrain, do_due_steps
from pilotlight.flow.interruption.verify_notice import Questions
from pilotlight.world.simulation import World
from pilotlight.world.world_pools import WorldPools


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


class Hanging(WorldPools):
    """A cloud that answers no question about an instance until the test is over."""

    def __init__(self, world: World, over: Event) -> None:
        super().__init__(world)
        self.over, self.asked = over, 0

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """Hang."""
        self.asked += 1
        self.over.wait(5)
        return None


def test_a_cloud_that_hangs_is_asked_of_one_machine_that_boots_not_of_all() -> None:
    """Whoever is saved after them waits no longer; they are kept until their time is over, and no longer."""
    stage, over = Doomed(), Event()
    for name in "abc":
        stage.start(name)
    stage.minutes(1)
    boots = sorted(set(stage.world.nodes) - {"n1"})
    for one in boots:
        stage.deliver("spot-interruption", one, stage.world.clock.now() + timedelta(seconds=60))
    pools = Hanging(stage.world, over)
    deps = replace(stage.deps, pools=pools)

    def look() -> None:
        questions = Questions(deps, 0.01)
        for kept in interruption_records.open_interruptions(deps):
            do_due_steps(deps, kept, NodeDrain(deps, kept.found, deps.observe(), questions))

    look()
    assert (pools.asked, [outcome(stage, one) for one in boots]) == (1, ["", "", ""])
    stage.wait(70)
    look()
    over.set()
    assert (pools.asked, [outcome(stage, one) for one in boots]) == (2, ["gone", "gone", "gone"])
