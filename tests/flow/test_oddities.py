"""Oddities people are told of once: a cluster that does not answer, a pool that another hand resized."""

import msgspec
import pytest
from test_brakes import Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.messages import Tick
from pilotlight.flow.observe.known_instances import nodes_without_instance
from pilotlight.flow.reconcile import reconcile


def test_ten_silent_minutes_are_told_once_and_change_nothing() -> None:
    """Ticks fail for a quarter of an hour: every one is a retry, one alert goes out, no node comes or goes."""
    stage = Stage()
    stage.pod("a", run_s=30)
    before = (stage.world.launches, stage.world.terminations)
    stage.world._errors = [("observe", Unavailable("the API server does not answer"))] * 15
    for _ in range(15):
        stage.world.advance(stage.world.now_s + 60)
        with pytest.raises(Unavailable):
            reconcile(stage.app.deps, Tick(cluster="local"))
    assert (stage.world.launches, stage.world.terminations) == before
    assert stage.alerts.count("silent") == 1
    stage.pass_(600)
    assert stage.world.terminations == 1


def test_a_pool_that_another_hand_raised_is_reported_and_left() -> None:
    """Someone adds a node of their own: it is told once, and the size stays theirs until the node has idled."""
    stage = Stage()
    stage.pod("a", run_s=3600)
    stage.pass_(300)
    assert "finding-pool-resized" not in stage.alerts
    stage.world.launch("g4dn.xlarge")
    stage.pass_(240)
    assert stage.alerts.count("finding-pool-resized") == 1
    assert stage.world.fleet.desired["g4dn.xlarge"] == 2


def test_nodes_without_an_instance_are_reported() -> None:
    """Two node objects of a pool of one: one was left behind."""
    stage = Stage()
    stage.pod("a", run_s=3600)
    stage.pod("b", run_s=3600)
    stage.pass_(240)
    view, pools = stage.app.deps.cluster.observe(), stage.app.deps.pools.describe()
    assert nodes_without_instance(view.nodes, pools) == ()
    fewer = [msgspec.structs.replace(p, desired=min(p.desired, 1)) for p in pools]
    (found,) = nodes_without_instance(view.nodes, fewer)
    assert found.message.startswith("its cloud has 1 instance for 2 nodes: delete the node objects")
