"""A holder of the lease that is asked to look again: how long it goes on."""

import dataclasses

import pytest
from stage import Stage

from pilotlight.facts.capacity import ClusterView
from pilotlight.world.world_cluster import WorldCluster


class Arriving(WorldCluster):
    """A cluster in which one pod comes during each look, up to so many; its event finds the lease held."""

    stage: Stage
    left = 0
    takes_s = 0.0

    def observe(self) -> ClusterView:
        """The world as it is, just before another pod comes."""
        found = super().observe()
        if self.left:
            self.left -= 1
            self.stage.event(self.stage.submit(f"p{self.left}"))
            self.stage.wait(self.takes_s)
        return found


@pytest.mark.parametrize(
    ("takes_s", "bought"),
    [(1.0, 12), (10.0, 5)],
    ids=["quick looks go on until nobody asks", "slow ones leave the rest to the next tick"],
)
def test_a_holder_looks_again_while_it_is_asked(takes_s: float, bought: int) -> None:
    """Pods that come one by one during its looks are all bought for, as long as that takes it seconds."""
    stage = Stage()
    cluster = Arriving(stage.world)
    cluster.stage, cluster.takes_s, cluster.left = stage, takes_s, 11
    stage.deps = dataclasses.replace(stage.deps, cluster=cluster)
    stage.event(stage.submit("first"))
    assert stage.world.launches == bought
