"""Answers that are lost again and again: what they may keep from being done, and what they count against."""

from contextlib import suppress
from dataclasses import replace

import msgspec
import pytest
from stage import MINUTE
from test_call_steps import Cloud, on_cloud
from test_interrupt import SAVES, Doomed

from pilotlight.errors import Retry, Unsure
from pilotlight.facts.money.money_policy import Caps, Limits
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.records import flight_log


def test_a_release_whose_answer_is_lost_again_and_again_keeps_nothing_from_being_bought() -> None:
    """Pods that come meanwhile get their nodes, however often the looks come."""
    stage, cloud = on_cloud(made=False)
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(4)
    cloud.releases = 1000
    with pytest.raises(Unsure):
        stage.minutes(12)
    for n in range(3):
        stage.wait(10)
        stage.event(stage.submit(f"p{n}"))
    assert stage.world.launches == 4


def test_a_lost_release_is_not_sent_again_where_a_person_has_opened_the_node() -> None:
    """Opening it takes our release back: it may still land, but it is not asked for again."""
    stage, cloud = on_cloud(made=False)
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(4)
    cloud.releases = 1
    with pytest.raises(Unsure):
        stage.minutes(12)
    (node,) = stage.world.nodes
    stage.world.open_by_hand(node)
    stage.wait(10)
    stage.tick()
    assert [s for s in cloud.sent if s.startswith("release")] == [f"release {node}"]
    stage.minutes(10)
    assert node in stage.world.nodes


def test_a_purchase_whose_answer_is_lost_counts_against_the_limits_of_ten_minutes() -> None:
    """It came: no more nodes than the limit are added in ten minutes, whatever the cloud answers."""
    stage, cloud = on_cloud(made=True)
    policy = msgspec.structs.replace(stage.deps.policy, caps=Caps(ten_minutes=Limits(nodes_added=2)))
    stage.deps = replace(stage.deps, policy=policy)
    cloud.grows = 1000
    for n in range(8):
        stage.submit(f"p{n}")
    for _ in range(9):
        stage.wait(MINUTE)
        try:
            stage.tick()
        except Retry:
            continue
    assert stage.world.launches == 2


def test_what_goes_at_last_is_not_counted_in_the_size_that_its_pool_is_raised_to() -> None:
    """A release whose answer was lost is sent again by the look that buys: one pod that waits gets one node."""
    stage, cloud = on_cloud(made=False)
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(4)
    cloud.releases = 1
    with pytest.raises(Unsure):
        stage.minutes(12)
    stage.wait(10)
    stage.event(stage.submit("b"))
    assert (stage.world.launches, stage.nodes("one")) == (2, 1)


@pytest.mark.parametrize("made", [True, False], ids=["the lost purchase came", "it never came"])
def test_a_node_that_goes_after_a_lost_purchase_is_not_bought_again(made: bool) -> None:
    """The size asked for then counted that node: what is on its way is what was bought, and what was lost while it may
    come. Later purchases fill their own places alone; the third node is asked for again once it never came."""
    stage = Doomed(pods=[SAVES, SAVES])
    cloud = Cloud(stage, made=made)
    stage.deps = replace(stage.deps, pools=cloud)
    cloud.grows = 1
    with pytest.raises(Unsure):
        stage.notice()
    while "n1" in stage.world.nodes:
        stage.wait(5)
        with suppress(Unsure):
            go_on(stage.deps)
    for n in (2, 3):
        stage.start(f"j{n}")
    coming = sum(entry.count for _, entry in flight_log.in_flight(stage.deps.state, "c"))
    assert (coming, sum(not node.ready for node in stage.world.nodes.values())) == (3, 3 if made else 2)
    while stage.world.now_s < 390:
        stage.wait(10)
        stage.tick()
    coming = sum(entry.count for _, entry in flight_log.in_flight(stage.deps.state, "c"))
    assert coming == sum(not node.ready for node in stage.world.nodes.values()) == 3
