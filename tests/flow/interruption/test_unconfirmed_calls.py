"""Calls that did not get out, and nodes that cannot be emptied or closed: nothing is waited for that cannot come."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from stage import Stage
from test_interrupt import SAVES, Doomed
from test_shown_notices import RULES, Showing

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.errors import Busy, Forbidden, PilotlightError, Unavailable
from pilotlight.facts.messages import Outgoing
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.records import flight_log
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools


class Unreached(WorldPools):
    """A cloud that does not answer before a call is let out."""

    def grow(self, pool: str, to: int, zone: str = "", **more: Any) -> PoolState:
        """Nothing was sent."""
        raise Unavailable("no connection")


def test_a_purchase_that_never_left_us_is_on_its_way_to_nobody() -> None:
    """The connection failed before the call was sent: no pod waits for it, and the next event buys one node."""
    stage = Stage()
    cloud = stage.deps.pools
    stage.deps = replace(stage.deps, pools=Unreached(stage.world))
    pod = stage.submit("a")
    with suppress(Unavailable):
        stage.event(pod)
    assert flight_log.in_flight(stage.deps.state, "c") == []
    stage.deps = replace(stage.deps, pools=cloud)
    stage.event(pod)
    assert stage.world.launches == 1


class Undrained(WorldCluster):
    """A cluster that lets no pod without a GPU go from a node."""

    def __init__(self, world: Any, error: PilotlightError) -> None:
        super().__init__(world)
        self.error: PilotlightError | None = error

    def drain(self, node: str) -> None:
        """Refused, for as long as that is so."""
        if self.error is not None:
            raise self.error
        super().drain(node)


def test_a_node_that_cannot_be_emptied_is_kept_until_the_margin_of_its_end() -> None:
    """A disruption budget holds what has no GPU: the node is not ended under it while there is time, then it is."""
    stage = Doomed(pods=[SAVES])
    stage.deps = replace(stage.deps, cluster=Undrained(stage.world, Busy("a disruption budget")))
    begin = stage.world.now_s
    stage.notice()
    stage.until(105)
    assert (stage.of("terminate"), len(stage.of("stop"))) == ([], 1)
    stage.until(14)
    assert [at for at, _ in stage.of("terminate")] == [begin + 110]


def test_a_mark_whose_rescue_fails_fails_the_look_and_no_other_nodes_rescue() -> None:
    """Two nodes show that they go, and one cannot be closed: the tick comes again, and the other is dealt with."""

    class Unclosed(Showing):
        def cordon(self, node: str, by: str = "") -> None:
            if node == "n1":
                raise Unavailable("the API server does not answer")
            super().cordon(node, by)

    stage = Stage(
        pools={"pool": PoolPolicy(instance_type="one", max=3, capacity_type="spot")}, classes={"batch": RULES}
    )
    cluster = Unclosed(stage.world)
    stage.deps = replace(stage.deps, cluster=cluster)
    for name in ("a", "b"):
        stage.event(stage.submit(name, run_s=9000))
    stage.minutes(5)
    cluster.fields = {"conditions": ("PreemptScheduled",), "cloud": "azure"}
    with pytest.raises(Unavailable):
        stage.tick()
    assert {one.instance for one in interruption_records.every(stage.deps.state, "c")} == {"n1", "n2"}
    assert [record["node"] for record in stage.events("terminate")] == ["n2"]


class Unheard(MemoryOutbox):
    """A topic that takes an opening, and whose answer is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = 1

    def publish(self, messages: Sequence[Outgoing]) -> None:
        """Taken; whoever sent them may not know."""
        super().publish(messages)
        if self.lost and any(message.id.endswith(".begin") for message in messages):
            self.lost -= 1
            raise Unavailable("publish timed out")


def test_an_opening_whose_answer_was_lost_is_sent_again_as_it_was() -> None:
    """More work is at risk by then: one message has one content, whatever the next look sees."""
    stage = Doomed(pods=[{"grace_s": 60.0}])
    outbox = Unheard()
    stage.deps = replace(stage.deps, outbox=outbox)
    with suppress(Unavailable):
        stage.notice()
    stage.until(30)
    first, *again = [bytes(m.data) for m in outbox.sent if m.id.endswith(".begin")]
    assert (len(again), set(again)) == (1, {first})


def test_a_release_that_is_refused_is_tried_at_each_look_where_the_cloud_ends_the_node_soon() -> None:
    """It waits for no pause: else the group would start another in its place."""
    stage = Doomed(pods=[SAVES], relaunches=True)
    for _ in range(6):
        stage.fail("release", Forbidden("no right"))
    stage.notice()
    stage.until(115)
    assert (stage.failures_left, stage.outcome) == (0, "released")
    stage.minutes(10)
    assert (stage.world.launches, len(stage.world.running)) == (2, 1)
