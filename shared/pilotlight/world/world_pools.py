"""The world's cloud behind the Pools port."""

from collections.abc import Sequence

from pilotlight.facts.nodes.pool_state import Booting, InstanceState, PoolState
from pilotlight.facts.offers.paid_capacity import Paid
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, SizeGate
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import WorldNode


class WorldPools:
    """Node pools as a cloud's API shows and changes them."""

    cloud = "world"

    def __init__(self, world: World) -> None:
        self._world = world

    def describe(self) -> Sequence[PoolState]:
        with self._world.call("describe"):
            booting: dict[str, list[WorldNode]] = {name: [] for name in self._world.fleet.pools}
            for node in self._world.booting:
                booting[node.pool].append(node)
            return tuple(self._state(name, nodes) for name, nodes in booting.items())

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        with self._world.call("instance"):
            node = self._world.nodes.get(instance)
            if node is None or node.pool != pool:
                return InstanceState(there=False)
            return InstanceState(
                there=True,
                created_at=self._world.moment(node.launched_s),
                going=node.doomed_s is not None,
                at_risk=node.at_risk or node.doomed_s is not None,
                deadline=None if node.doomed_s is None else self._world.moment(node.doomed_s),
            )

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        size = self._world.fleet.desired.get(pool, 0)
        if size < to:
            to = min(to, size + most)
            gate(to)
        return self.resize(pool, to, zone)

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        if self.holds(pool, instance):
            gate()
        self.take_away(pool, instance)

    def stop(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        if instance in self._world.nodes and self.holds(pool, instance):
            gate()
        self.put_by(pool, instance)

    def put_by(self, pool: str, instance: str) -> None:
        """The request behind ``stop``, as it arrives."""
        with self._world.call("stop"):
            node = self._world.nodes.get(instance)
            if node is not None and node.pool == pool:
                self._world.stop(instance)

    def holds(self, pool: str, instance: str) -> bool:
        """True where an instance is there, as one of this pool."""
        with self._world.lock:
            node = self._named(instance)
            return node is not None and node.pool == pool

    def resize(self, pool: str, to: int, zone: str) -> PoolState:
        """The request behind ``grow``, as it arrives."""
        with self._world.call("grow"):
            self._world.fleet.machine(pool, zone)
            missing = to - self._world.fleet.desired[pool]
            if missing > 0:
                self._world.launch(pool, missing, zone)
            return self._state(pool, [node for node in self._world.booting if node.pool == pool])

    def take_away(self, pool: str, instance: str) -> None:
        """The request behind ``release``, as it arrives."""
        with self._world.call("release"):
            node = self._named(instance)
            if node is not None and node.pool == pool:
                # What the cloud takes anyway may be given back with what is on it.
                self._world.terminate(instance, "released", evict=node.doomed_s is not None)

    def _named(self, instance: str) -> WorldNode | None:
        """A node that runs, or that stands by."""
        return self._world.nodes.get(instance) or self._world.fleet.standing.get(instance)

    def _state(self, pool: str, booting: Sequence[WorldNode]) -> PoolState:
        fleet = self._world.fleet
        machine = fleet.machine(pool)
        stopped = [node for node in fleet.standing.values() if node.pool == pool]
        return PoolState(
            name=pool,
            stops=machine.stops,
            standby=len(fleet.able(machine, self._world.now_s)) if stopped else 0,
            stopped=tuple(node.id for node in sorted(stopped, key=lambda n: (-n.stopped_s, n.seq))),
            desired=self._world.fleet.desired[pool],
            paid=_paid(machine.pool, self._world.fleet.desired[pool]),
            booting=tuple(Booting(instance=n.id, requested_at=self._world.moment(n.launched_s)) for n in booting),
        )


def _paid(pool: WorldPool, size: int) -> tuple[Paid, ...]:
    if pool.paid is None:
        return ()
    return (Paid(name=f"{pool.name}-reserved", count=pool.paid, free=max(0, pool.paid - size)),)
