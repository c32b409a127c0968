"""The cloud: pools, the nodes that are paid for, and what they have cost."""

from collections.abc import Sequence

import msgspec

from pilotlight.errors import BadRequest, NoCapacity, QuotaExceeded
from pilotlight.facts.labels import NEW_HOME
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.facts.place.homes import but_home, has_home_taint
from pilotlight.units import Seconds, Usd
from pilotlight.world.cloud import Fate, Ledger
from pilotlight.world.faults import Faults
from pilotlight.world.machines import Machine, WorldPool
from pilotlight.world.spot_zones import Zones
from pilotlight.world.world_nodes import WorldNode

STOPS_S = 60.0
"""A node that is stopped can be started again after so long."""


class Fleet:
    """Live nodes by id, in the order of their launch, each pool's ``desired`` size, and the nodes ``standing`` by.

    Nodes of the pools ``homed`` are born with our home taint, as ``NEW_HOME``.
    """

    def __init__(
        self,
        catalog: Catalog,
        pools: Sequence[WorldPool],
        faults: Faults,
        seed: int,
        zones: Sequence[ZoneHistory] = (),
    ) -> None:
        self.pools = {p.name: msgspec.structs.replace(p, taints=but_home(p.taints)) for p in pools}
        self.homed = {p.name for p in pools if has_home_taint(p.taints)}
        self.zones = Zones(zones, seed)
        self.nodes: dict[str, WorldNode] = {}
        self.standing: dict[str, WorldNode] = {}
        self.desired: dict[str, int] = dict.fromkeys(self.pools, 0)
        self.launches = 0
        self.terminations = 0
        self.wakes = 0
        self.gpus_paid = 0
        self._catalog = catalog
        self.faults = faults
        self._fate = Fate(seed)
        self._ledger = Ledger()
        self._machines: dict[tuple[str, str], Machine] = {}

    def machine(self, pool: str, zone: str = "") -> Machine:
        """Machine of a pool's nodes. Raises ``BadRequest`` for a pool that is not there."""
        spec = self.pools.get(pool)
        if spec is None:
            raise BadRequest(f"pool {pool!r} is not there: the world has {', '.join(self.pools) or 'none'}")
        key = (pool, zone or spec.zone)
        if key not in self._machines:
            self._machines[key] = Machine.from_pool(spec, self._catalog.instance_types[spec.instance_type], key[1])
        return self._machines[key]

    def begin(self, machine: Machine, now_s: Seconds) -> WorldNode:
        """A new node, booting. Raises ``NoCapacity`` or ``QuotaExceeded``."""
        self.admit(machine, now_s)
        self.launches += 1
        boot_s = self.boot_s(machine) + self._fate.delay_s(self.launches, self.faults.join_spread_s)
        return self._born(WorldNode(self.launches, machine, now_s, now_s + boot_s + self.faults.gpu_lag_s))

    def _born(self, node: WorldNode) -> WorldNode:
        """A node is paid from now on, and carries the taint that its pool gives it."""
        node.home = NEW_HOME if node.pool in self.homed else ""
        self.nodes[node.id] = node
        self.gpus_paid += node.gpus
        return node

    def _admit_spot(self, machine: Machine, most: int, count: int) -> None:
        kind, zone = machine.pool.instance_type, machine.zone
        alike = (n for n in self.nodes.values() if n.instance_type == kind and n.zone == zone)
        if sum(n.capacity_type == "spot" for n in alike) + count > most:
            raise NoCapacity(f"{kind} is out of stock in {zone}: try another zone, another type, or on demand")

    def end(self, node: WorldNode, now_s: Seconds) -> None:
        """Stop paying for a node."""
        del self.nodes[node.id]
        self.terminations += 1
        self.gpus_paid -= node.gpus
        self._ledger.close(node, now_s)

    def stop(self, node: WorldNode, now_s: Seconds) -> None:
        """Stop a node: unpaid from now on, but for its disk."""
        del self.nodes[node.id]
        self.gpus_paid -= node.gpus
        self._ledger.close(node, now_s)
        node.stopped_s = now_s
        self.standing[node.id] = node

    def able(self, machine: Machine, now_s: Seconds) -> list[WorldNode]:
        """The stopped nodes of a machine that can be started by now, the last that was stopped first."""
        alike = [n for n in self.standing.values() if n.machine.key == machine.key and n.stopped_s + STOPS_S <= now_s]
        return sorted(alike, key=lambda n: (-n.stopped_s, n.seq))

    def wake(self, stopped: WorldNode, now_s: Seconds) -> WorldNode:
        """Start a stopped node: it boots again, paid from now on. Raises ``NoCapacity`` or ``QuotaExceeded``."""
        machine = stopped.machine
        self.admit(machine, now_s)
        self.wakes += 1
        self.forget(stopped, now_s)
        ready_s = now_s + (machine.wake_s or 0.0) + self.faults.gpu_lag_s
        started = self._born(WorldNode(stopped.seq, machine, now_s, ready_s))
        if not self.faults.registers_anew:
            started.home = stopped.home
        return started

    def forget(self, stopped: WorldNode, now_s: Seconds) -> None:
        """A stopped node stands by no longer."""
        del self.standing[stopped.id]
        self._ledger.settle_disk(stopped, now_s)

    def standby_cost(self, now_s: Seconds) -> Usd:
        """Dollars for the disks of stopped nodes up to now."""
        return self._ledger.standby_cost(self.standing.values(), now_s)

    def boot_s(self, machine: Machine) -> Seconds:
        """A boot, without delays."""
        return machine.boot_s if self.faults.boot_s is None else self.faults.boot_s

    def joins_s(self, node: WorldNode) -> Seconds:
        """When a node that boots registers."""
        return max(node.launched_s, node.ready_s - self.faults.gpu_lag_s - self.faults.registered_s)

    def taken_at_s(self, node: WorldNode) -> Seconds | None:
        """When the cloud takes a node just launched back, or None."""
        life_s = self._fate.life_s(node.machine)
        return node.launched_s + life_s if life_s is not None and self.faults.reclaim else None

    def cost(self, now_s: Seconds) -> Usd:
        """Dollars for every node up to now, and for the disks of stopped ones."""
        return self._ledger.cost(self.nodes.values(), now_s) + self.standby_cost(now_s)

    def gpu_seconds(self, now_s: Seconds) -> float:
        """GPU-seconds paid for up to now."""
        return self._ledger.gpu_seconds(self.nodes.values(), now_s)

    def admit(self, machine: Machine, now_s: Seconds, count: int = 1) -> None:
        """Raise what stands against so many more nodes: ``NoCapacity`` or ``QuotaExceeded``."""
        if machine.pool.capacity_type == "spot" and (most := self.zones.most(machine.zone, now_s)) is not None:
            self._admit_spot(machine, most, count)
        pool, quota = machine.pool, self.faults.quota_nodes
        if quota is not None and len(self.nodes) + count > quota:
            raise QuotaExceeded(f"the account's quota is {quota} nodes: ask for more, or release some")
        if pool.max is not None and sum(n.pool == pool.name for n in self.nodes.values()) + count > pool.max:
            raise QuotaExceeded(f"pool {pool.name} is at its maximum of {pool.max} nodes: raise it at the cloud")
        if pool.paid is not None and sum(n.pool == pool.name for n in self.nodes.values()) + count > pool.paid:
            raise NoCapacity(
                f"the {pool.paid} reserved nodes of pool {pool.name} are in use: wait, or use another pool"
            )
        if pool.capacity_type != "reserved" and self._fate.out_of_stock(
            pool.instance_type, now_s, self.faults.shortage
        ):
            raise NoCapacity(f"{pool.instance_type} is out of stock: try another type, or again within the hour")
