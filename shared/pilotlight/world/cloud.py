"""The cloud's side: what a node costs, how long a spot node lives, when a type is out of stock. All by seed."""

import math
from collections.abc import Iterable
from decimal import Decimal
from random import Random

from pilotlight.units import HOUR, Seconds, Usd, UsdPerHour
from pilotlight.world.machines import Machine
from pilotlight.world.world_nodes import WorldNode

_MICRO = 1_000_000


def billed_micros(machine: Machine, seconds: Seconds) -> int:
    """Microseconds that a node kept for ``seconds`` is paid for: the billing minimum, then whole increments."""
    steps = math.ceil(round(seconds / machine.increment_s, 6)) if machine.increment_s else 0
    paid = steps * machine.increment_s if machine.increment_s else seconds
    return round(max(paid, machine.minimum_s) * _MICRO)


class Ledger:
    """Cost of ended nodes. Whole microseconds by price, so that no sum depends on its order."""

    def __init__(self) -> None:
        self._micros: dict[UsdPerHour, int] = {}
        self._gpu_micros = 0
        self._disk_micros: dict[UsdPerHour, int] = {}

    def close(self, node: WorldNode, now_s: Seconds) -> None:
        """Settle a node that ends now."""
        _add(self._micros, node, now_s)
        self._gpu_micros += node.gpus * billed_micros(node.machine, now_s - node.launched_s)

    def settle_disk(self, node: WorldNode, now_s: Seconds) -> None:
        """Settle the disk of a node that stands by until now."""
        _stand(self._disk_micros, node, now_s)

    def cost(self, live: Iterable[WorldNode], now_s: Seconds) -> Usd:
        """Dollars for all ended nodes, and for the live ones up to now; without disks of stopped ones."""
        micros = dict(self._micros)
        for node in live:
            _add(micros, node, now_s)
        return _dollars(micros)

    def standby_cost(self, standing: Iterable[WorldNode], now_s: Seconds) -> Usd:
        """Dollars for the disks of nodes that stood by, and of those that do up to now."""
        micros = dict(self._disk_micros)
        for node in standing:
            _stand(micros, node, now_s)
        return _dollars(micros)

    def gpu_seconds(self, live: Iterable[WorldNode], now_s: Seconds) -> float:
        """GPU-seconds paid for, up to now."""
        running = sum(node.gpus * billed_micros(node.machine, now_s - node.launched_s) for node in live)
        return (self._gpu_micros + running) / _MICRO


def _dollars(micros: dict[UsdPerHour, int]) -> Usd:
    total = sum((price * spent for price, spent in micros.items()), Decimal(0))
    return total / Decimal(int(HOUR) * _MICRO)


def _stand(micros: dict[UsdPerHour, int], node: WorldNode, now_s: Seconds) -> None:
    price = node.machine.standby_price
    micros[price] = micros.get(price, 0) + round((now_s - node.stopped_s) * _MICRO)


def _add(micros: dict[UsdPerHour, int], node: WorldNode, now_s: Seconds) -> None:
    paid = billed_micros(node.machine, now_s - node.launched_s)
    micros[node.price] = micros.get(node.price, 0) + paid


class Fate:
    """Draws of the seed: the life of each (type, n-th launch), the hours in which a type is out of stock, and delays of
    joins.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._launches: dict[str, int] = {}
        self._stock: dict[tuple[str, int], float] = {}

    def life_s(self, machine: Machine) -> Seconds | None:
        """Seconds that the next launch of this type lives; None when nothing takes it."""
        kind = machine.pool.instance_type
        nth = self._launches[kind] = self._launches.get(kind, 0) + 1
        if machine.interruptions_per_hour <= 0:
            return None
        draw = Random(f"{self._seed}/life/{kind}/{nth}")
        return draw.expovariate(machine.interruptions_per_hour / HOUR)

    def delay_s(self, seq: int, most_s: Seconds) -> Seconds:
        """Seconds by which the boot of the so many-th node takes longer, up to ``most_s``."""
        return Random(f"{self._seed}/join/{seq}").random() * most_s if most_s else 0.0

    def out_of_stock(self, instance_type: str, now_s: Seconds, shortage: float) -> bool:
        """True where a type has no capacity in this hour: it has none in a share ``shortage`` of its hours."""
        if shortage <= 0:
            return False
        hour = (instance_type, int(now_s // HOUR))
        if hour not in self._stock:
            self._stock[hour] = Random(f"{self._seed}/stock/{hour[0]}/{hour[1]}").random()
        return self._stock[hour] < shortage
