"""A tick waits for nodes on their way to homed pools: each has its home seconds after it joins, without an event."""

from dataclasses import replace
from itertools import pairwise

from stage import Stage
from test_homes_given import homed, homes

from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.labels import NEW_HOME
from pilotlight.facts.messages import Tick
from pilotlight.flow.homes_watch import LOOK_S, POLL_S, watch
from pilotlight.units import Seconds
from pilotlight.world.world_cluster import WorldCluster


def bought() -> Stage:
    """A node of the homed pool is on its way, to join in 175 s; a pause of the worker lets time pass."""
    stage = homed()
    stage.event(stage.submit("large", gpus=8))
    stage.deps = replace(stage.deps, pause=stage.wait)
    return stage


def watched(stage: Stage, for_s: Seconds = 45.0) -> None:
    """A tick, and what it watches for."""
    watch(stage.deps, Tick(cluster="c"), stage.tick(), for_s)


def test_a_node_that_joins_has_its_home_at_once() -> None:
    """It joins ten seconds after the tick, and is given the home of its pod within the next poll."""
    stage = bought()
    stage.wait(170)
    assert not homes(stage)
    [pod] = stage.deps.cluster.observe().pending
    watched(stage, for_s=13.0 + 2 * POLL_S)
    assert list(homes(stage).values()) == list(pod.homes)


def test_a_tick_ends_in_its_time() -> None:
    """A node that boots for longer than the tick may wait is the next tick's."""
    stage = bought()
    began = stage.world.now_s
    watched(stage)
    assert 45.0 - 2 * POLL_S <= stage.world.now_s - began <= 45.0


def test_nothing_on_its_way_is_not_waited_for() -> None:
    """With no purchase in flight a tick costs one look."""
    stage = homed()
    stage.deps = replace(stage.deps, pause=stage.wait)
    began = stage.world.now_s
    watched(stage)
    assert stage.world.now_s == began


def test_a_clock_led_by_hand_is_not_waited_for() -> None:
    """A pause that lets no time pass ends the watch: whoever leads the clock ticks."""
    stage = homed()
    stage.event(stage.submit("large", gpus=8))
    watched(stage)
    assert stage.deps.cluster.observe().pending


def test_a_node_without_a_home_of_ours_is_one_look_only() -> None:
    """A node whose taint stays, for nobody may change it, leads to no look at each poll."""
    stage = bought()
    looks = list[float]()

    class Stuck(WorldCluster):
        def without_home(self) -> set[str]:
            return {"stranger"}

        def observe(self) -> ClusterView:
            looks.append(stage.world.now_s)
            return super().observe()

    stage.deps = replace(stage.deps, cluster=Stuck(stage.world))
    watched(stage)
    gaps = [later - sooner for sooner, later in pairwise(looks) if later > sooner]
    assert gaps == [POLL_S, *[LOOK_S] * 4]
    assert NEW_HOME not in homes(stage).values()
