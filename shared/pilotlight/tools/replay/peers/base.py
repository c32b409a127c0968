"""Common ground of all peers: when they wake, what they have on its way, and first-fit packing."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from pilotlight.decide.fit.fit import device_for
from pilotlight.errors import Denied
from pilotlight.units import MILLI_PER_GPU, Seconds
from pilotlight.world.machines import Machine
from pilotlight.world.scheduling.scheduler import Need
from pilotlight.world.simulation import World
from pilotlight.world.world_events import Change
from pilotlight.world.world_nodes import WorldNode


class Peer(Protocol):
    """A policy to compare with. ``spread`` is its cluster's binding rule; ``pinned`` jobs use one type each."""

    name: str
    spread: bool
    pinned: bool

    def notice(self, change: Change) -> None:
        """Something happened in the world."""
        ...

    def wake_s(self, world: World) -> Seconds | None:
        """When it next has something to do, or None while nothing happens."""
        ...

    def act(self, world: World) -> None:
        """Launch and terminate nodes."""
        ...


class Pod(NamedTuple):
    """A pod that waits: what it needs, and its uid."""

    need: Need
    uid: str


class Bin:
    """A node that is planned or on its way: its machine, and its free thousandths by device."""

    __slots__ = ("devices", "machine", "used")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.devices = [MILLI_PER_GPU] * machine.gpus
        self.used = 0

    def take(self, need: Need) -> bool:
        """Put a pod on it where it fits."""
        gpu = need.shape.gpu
        chosen = device_for(gpu, self.devices)
        if chosen is None:
            return False
        for index in chosen:
            self.devices[index] -= gpu.milli
        self.used += gpu.total_milli
        return True


class FirstFit:
    """First-fit over bins that only ever fill, so that the search for equal pods goes on where the last one ended."""

    def __init__(self, bins: Iterable[Bin] = ()) -> None:
        self.bins = list(bins)
        self._from: dict[Need, int] = {}

    def put(self, need: Need) -> bool:
        """Put a pod on the first bin that it may use and that has room."""
        for index in range(self._from.get(need, 0), len(self.bins)):
            if need.allows(self.bins[index].machine) and self.bins[index].take(need):
                self._from[need] = index
                return True
        self._from[need] = len(self.bins)
        return False

    def open(self, machine: Machine, need: Need) -> bool:
        """Put a pod on a new bin of this machine, where it fits one."""
        fresh = Bin(machine)
        if not fresh.take(need):
            return False
        self._from[need] = min(self._from.get(need, len(self.bins)), len(self.bins))
        self.bins.append(fresh)
        return True


def unmet_pods(world: World, apart: Mapping[str, object] | None = None) -> list[Pod]:
    """Pending pods, largest first, that fit no node on its way. Nodes named in ``apart`` are kept for others."""
    nodes = on_the_way(world, apart or {})
    coming = FirstFit(Bin(n.machine) for n in nodes)
    return [pod for pod in largest_first(waiting(world)) if not coming.put(pod.need)]


def on_the_way(world: World, apart: Mapping[str, object]) -> Iterator[WorldNode]:
    """Nodes launched and not ready yet."""
    # The live nodes are in launch order, so the ones still booting are the last.
    for node in reversed(world.nodes.values()):
        if node.ready:
            return
        if node.id not in apart:
            yield node


def waiting(world: World) -> Iterator[Pod]:
    """Pods that wait, in their order."""
    for job in world.pending.values():
        for demand in job.demands:
            yield Pod(world.need(demand.shape), demand.uid)


def largest_first(pods: Iterable[Pod]) -> list[Pod]:
    """By GPUs, descending; equals keep their order."""
    return sorted(pods, key=lambda pod: -pod.need.shape.gpu.total_milli)


def holders(world: World, need: Need) -> Sequence[Machine]:
    """The machines that hold such a pod on an empty node, cheapest node first."""
    able = [m for m in map(world.fleet.machine, world.fleet.pools) if need.allows(m) and Bin(m).take(need)]
    return sorted(able, key=lambda m: m.price)


REST_S: Seconds = 180.0
"""An offering that was refused is not asked for again for so long: Karpenter's cache of unavailable offerings."""


class Market:
    """Where a peer buys. Where the world's zones come and go every way to buy is tried by price, then by zone."""

    def __init__(self) -> None:
        self._until: dict[str, Seconds] = {}

    def launch(self, world: World, *machines: Machine) -> bool:
        """Request a node of one of these machines' types; whether the cloud had one."""
        if not world.fleet.zones.names:
            return any(_had(world, machine) for machine in machines)
        return any(self._had(world, offer) for offer in offers(world, machines))

    def _had(self, world: World, offer: Machine) -> bool:
        if self._until.get(offer.key, 0.0) > world.now_s:
            return False
        if _had(world, offer):
            return True
        self._until[offer.key] = world.now_s + REST_S
        return False


def offers(world: World, machines: Iterable[Machine]) -> list[Machine]:
    """Every way to buy the types of some machines: in each zone, by whatever capacity type the world sells them."""
    fleet, types = world.fleet, {machine.pool.instance_type for machine in machines}
    alike = [pool.name for pool in fleet.pools.values() if pool.instance_type in types]
    found = [fleet.machine(name, zone) for name in alike for zone in fleet.zones.names]
    return sorted(found, key=lambda m: (m.price, m.zone))


def _had(world: World, machine: Machine) -> bool:
    try:
        world.launch(machine.pool.name, zone=machine.zone)
    except Denied:
        return False
    return True


def next_tick(at_or_after_s: Seconds, period_s: Seconds) -> Seconds:
    """The first multiple of the period that is not earlier."""
    return math.ceil(at_or_after_s / period_s) * period_s


class Ticker:
    """A policy that looks at the cluster every ``period_s``. It sleeps through ticks that could change nothing.

    Empty nodes go ``idle_s`` after they became so.
    """

    spread = False

    def __init__(self, name: str, period_s: Seconds, idle_s: Seconds, *, pinned: bool = False) -> None:
        self.name = name
        self.pinned = pinned
        self.market = Market()
        self._period_s = period_s
        self._idle_s = idle_s
        self._stirred = False
        self._last_s = -period_s

    def notice(self, change: Change) -> None:
        if change.what in ("pending", "ready", "lost"):
            self._stirred = True

    def wake_s(self, world: World) -> Seconds | None:
        due = [world.now_s] if self._stirred and world.pending else []
        if world.idle:
            due.append(max(world.now_s, self._release_s(world)))
        return next_tick(max(min(due), self._last_s + self._period_s), self._period_s) if due else None

    def act(self, world: World) -> None:
        self._last_s = world.now_s
        # What the cloud refused is asked for again at the next tick.
        self._stirred = bool(world.pending) and not self._buy(world)
        if world.idle and self._release_s(world) <= world.now_s:
            self._release(world)

    def _release_s(self, world: World) -> Seconds:
        """When the node that has been empty for longest may go."""
        return _idle_since(next(iter(world.idle.values()))) + self._idle_s

    def _buy(self, world: World) -> bool:
        """Buy for what waits; whether all of it is on its way now."""
        raise NotImplementedError

    def _release(self, world: World) -> None:
        release_idle(world, self._idle_s)


def release_idle(world: World, idle_s: Seconds) -> None:
    """Give back every node that has been empty for so long."""
    for node in list(world.idle.values()):
        if _idle_since(node) + idle_s > world.now_s:
            return
        world.terminate(node.id, "idle")


def _idle_since(node: WorldNode) -> Seconds:
    return node.launched_s if node.idle_since_s is None else node.idle_since_s
