"""The world's cloud behind the Pools port."""

from collections.abc import Sequence

from pilotlight.facts.capacity import Booting, PoolState
from pilotlight.world.nodes import WorldNode
from pilotlight.world.world import World


class WorldPools:
    """Node pools as a cloud's API shows and changes them."""

    def __init__(self, world: World) -> None:
        self._world = world

    def describe(self) -> Sequence[PoolState]:
        with self._world.call("describe"):
            booting = self._world.booting
            return tuple(self._state(name, booting) for name in self._world.fleet.pools)

    def grow(self, pool: str, to: int, zone: str = "") -> PoolState:
        with self._world.call("grow"):
            self._world.fleet.machine(pool, zone)
            missing = to - self._world.fleet.desired[pool]
            if missing > 0:
                self._world.launch(pool, missing, zone)
            return self._state(pool, self._world.booting)

    def release(self, pool: str, instance: str) -> None:
        with self._world.call("release"):
            node = self._world.nodes.get(instance)
            if node is not None and node.pool == pool:
                # What the cloud takes anyway may be given back with what is on it.
                self._world.terminate(instance, "released", evict=node.doomed_s is not None)

    def _state(self, pool: str, booting: Sequence[WorldNode]) -> PoolState:
        return PoolState(
            name=pool,
            desired=self._world.fleet.desired[pool],
            booting=tuple(
                Booting(instance=n.id, requested_at=self._world.moment(n.launched_s)) for n in booting if n.pool == pool
            ),
        )
