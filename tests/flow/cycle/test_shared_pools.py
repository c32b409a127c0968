"""A pool that another autoscaler scales: nothing is bought or given back there, and people are told why."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import msgspec
from stage import Stage

from pilotlight.facts.capacity import ClusterView, Scaler
from pilotlight.world.world_cluster import WorldCluster


class Shared(WorldCluster):
    """A cluster in which cluster-autoscaler scales these groups."""

    groups: Sequence[str] = ()

    def observe(self) -> ClusterView:
        """The look, and who else is at work."""
        view, now = super().observe(), self._world.clock.now()
        if not self.groups:
            return view
        scaler = Scaler(name="cluster-autoscaler", seen_at=now - timedelta(seconds=9), groups=tuple(self.groups))
        return msgspec.structs.replace(view, scalers=(scaler,))


def shared(*groups: str) -> tuple[Stage, Shared]:
    """A stage with another autoscaler."""
    stage = Stage()
    cluster = Shared(stage.world)
    cluster.groups = groups
    stage.deps = replace(stage.deps, cluster=cluster)
    return stage, cluster


def test_nothing_is_bought_where_another_scales() -> None:
    """The purchase is held with its reason; where the other scales another pool it is made."""
    stage, cluster = shared("one")
    pod = stage.submit("a")
    stage.event(pod)
    assert stage.nodes("one") == 0
    assert any("cluster-autoscaler was alive" in alert.why for alert in stage.alerts)
    cluster.groups = ("eight",)
    stage.minutes(5)
    assert stage.nodes("one") == 1


def test_nothing_is_given_back_where_another_scales() -> None:
    """Its idle node stays until the pool is handed over."""
    stage, cluster = shared()
    stage.event(stage.submit("a", run_s=300))
    stage.minutes(4)
    cluster.groups = ("one",)
    stage.minutes(30)
    assert (stage.nodes("one"), len(stage.world.finished)) == (1, 1)
    cluster.groups = ()
    stage.minutes(15)
    assert stage.nodes("one") == 0
