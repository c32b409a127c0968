"""The world's cluster as Pilotlight sees it: the wait of a pod only some time after it began."""

from datetime import timedelta

import msgspec

from pilotlight.facts.capacity import ClusterView
from pilotlight.units import Seconds
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster

ROUNDING = timedelta(milliseconds=1)


class SeenCluster(WorldCluster):
    """A cluster whose pods that wait are seen ``detect_s`` after they were created: by a tick no sooner than by event.

    Peers and published figures learn of a job so late; a tick that happens to fall before must not know better.
    """

    def __init__(self, world: World, detect_s: Seconds) -> None:
        super().__init__(world)
        self._late = timedelta(seconds=detect_s) - ROUNDING

    def observe(self) -> ClusterView:
        view = super().observe()
        if not view.pending:
            return view
        seen_until = self._world.clock.now() - self._late
        return msgspec.structs.replace(view, pending=tuple(p for p in view.pending if p.created_at <= seen_until))
