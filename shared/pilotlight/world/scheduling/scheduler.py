"""The cluster's scheduler: where a pod binds. Nodes of equal room are one bucket, so a choice looks at few."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from pilotlight.facts.labels import HOSTNAME, NODE_NAME
from pilotlight.facts.workload import PodDemand, PodShape
from pilotlight.units import MILLI_PER_GPU
from pilotlight.world.machines import Machine
from pilotlight.world.scheduling.filters import affine, is_repelled, pick_devices, room_after_move, roomy
from pilotlight.world.scheduling.nearby import Nearby
from pilotlight.world.world_nodes import Binding, Room, WorldNode

_BY_NODE = (HOSTNAME, NODE_NAME)
EVERY_HOME = "*"
"""Among a pod's homes: it tolerates the taint of all of them."""


class Need:
    """Needs of a shape from a node: shapes that differ only in team, class or gang share one. Answers are kept.

    Few shapes name single nodes: those requirements are asked node by node, in ``picks``.
    """

    __slots__ = ("_allowed", "_fits", "_machine_terms", "bears_all", "minds", "names_nodes", "shape")

    def __init__(self, shape: PodShape) -> None:
        self.shape = shape
        self._machine_terms = tuple(tuple(r for r in term if r.key not in _BY_NODE) for term in shape.terms)
        self.names_nodes = self._machine_terms != shape.terms
        self.minds = shape.near is not None and bool(shape.near.rules)
        self.bears_all = any(
            t.operator == "Exists" and not t.key and t.effect in ("", "NoSchedule") for t in shape.tolerations
        )
        self._allowed: dict[str, bool] = {}
        self._fits: dict[Room, bool] = {}

    def allows(self, machine: Machine) -> bool:
        """True where such a pod may run on such a machine at all: affinity, taints, GPU model."""
        known = self._allowed.get(machine.key)
        if known is None:
            known = self._allowed[machine.key] = (
                affine(machine.labels, self._machine_terms)
                and not is_repelled(machine.pool.taints, self.shape.tolerations)
                and (not self.shape.gpu_models or machine.gpu_model in self.shape.gpu_models)
            )
        return known

    def picks(self, node: WorldNode) -> bool:
        """True where such a pod may run on this very node, of a machine that it may use."""
        if node.closed and not self.bears_all:
            return False
        return not self.names_nodes or affine(node.labels, self.shape.terms)

    def fits(self, room: Room) -> bool:
        """True where one such pod fits so much room."""
        known = self._fits.get(room)
        if known is None:
            known = roomy(self.shape, room.resource, room.devices, dict(room.slices), room.free)
            self._fits[room] = known
        return known


class Ask(NamedTuple):
    """What one pod asks for: its shape's needs, and the homes that it tolerates."""

    need: Need
    homes: tuple[str, ...]

    def suits(self, node: WorldNode) -> bool:
        """True where a node may take such a pod and has the room, by all that its own name does not decide."""
        return (
            (not node.home or self._is_home(node.home)) and self.need.allows(node.machine) and self.need.fits(node.room)
        )

    def _is_home(self, home: str) -> bool:
        return home in self.homes or EVERY_HOME in self.homes or self.need.bears_all


class Scheduler:
    """Ready, schedulable nodes by machine and room, and those that are somebody's home by that home.

    A pod binds to the node with the largest share of GPUs in use that it fits (the least when ``spread``),
    then the cheapest, then the oldest, among those its affinity, tolerations, GPU models and the pods near by allow:
    open nodes, and the homes that it tolerates.
    ``there`` are the nodes whose pods those are: all of the cluster, open or not; else those that pods may bind to.
    """

    def __init__(self, *, spread: bool = False, there: Callable[[], Iterable[WorldNode]] | None = None) -> None:
        self._sign = 1 if spread else -1
        self._machines: dict[str, Machine] = {}
        self._rooms: dict[str, dict[Room, list[int]]] = {}
        self._nodes: dict[int, WorldNode] = {}
        self._at_home: dict[str, dict[int, WorldNode]] = {}
        self._homes: dict[int, str] = {}
        self._there = there or self._nodes.values
        self._needs: dict[PodShape, Need] = {}
        self._need_of: dict[str, Need] = {}

    def need(self, shape: PodShape) -> Need:
        """The shared Need of a shape."""
        known = self._need_of.get(shape.key)
        if known is None:
            bare = msgspec.structs.replace(
                shape, workload_class="batch", class_reason="", team="", priority=0, max_run_s=0.0, gang=None, key=""
            )
            known = self._need_of[shape.key] = self._needs.setdefault(bare, Need(bare))
        return known

    def ask(self, demand: PodDemand) -> Ask:
        """What a pod asks for."""
        return Ask(self.need(demand.shape), demand.homes)

    def add(self, node: WorldNode) -> None:
        """Let pods bind to a node."""
        self._nodes[node.seq] = node
        if node.home:
            self._homes[node.seq] = node.home
            self._at_home.setdefault(node.home, {})[node.seq] = node
            return
        machine = node.machine
        self._machines[machine.key] = machine
        insort(self._rooms.setdefault(machine.key, {}).setdefault(node.room, []), node.seq)

    def remove(self, node: WorldNode) -> None:
        """Let no more pods bind to a node; one that is not there is no error."""
        if self._nodes.pop(node.seq, None) is None:
            return
        if home := self._homes.pop(node.seq, ""):
            del self._at_home[home][node.seq]
            if not self._at_home[home]:
                del self._at_home[home]
            return
        rooms = self._rooms[node.machine.key]
        alike = rooms[node.room]
        del alike[bisect_left(alike, node.seq)]
        if not alike:
            del rooms[node.room]

    def takes_pods(self, node: WorldNode) -> bool:
        """True where pods may bind to a node."""
        return node.seq in self._nodes

    def homes_of(self, home: str) -> Sequence[WorldNode]:
        """Nodes of this home that pods may bind to."""
        return tuple(self._at_home.get(home, {}).values())

    def choose(self, demand: PodDemand) -> WorldNode | None:
        """The node that such a pod binds to now, or None."""
        ask = self.ask(demand)
        need, near = ask.need, None
        if ask.need.minds and need.shape.near:
            near = Nearby(need.shape.near, tuple(self._there()))
        best: tuple[float, float, int] | None = None
        for machine, room, alike in chain(self._open_rooms(need), self._home_rooms(ask)):
            able = (seq for seq in alike if need.picks(self._nodes[seq]))
            oldest = next((seq for seq in able if near is None or near.admit(self._nodes[seq])), None)
            if oldest is not None:
                rank = (self._sign * _used_share(room), float(machine.price), oldest)
                best = rank if best is None else min(best, rank)
        return None if best is None else self._nodes[best[2]]

    def _open_rooms(self, need: Need) -> Iterator[tuple[Machine, Room, Sequence[int]]]:
        """Rooms of open nodes that one such pod may use and fits, with the nodes that have just that, oldest first."""
        for key, rooms in self._rooms.items():
            machine = self._machines[key]
            if need.allows(machine):
                yield from ((machine, room, alike) for room, alike in rooms.items() if need.fits(room))

    def _home_rooms(self, ask: Ask) -> Iterator[tuple[Machine, Room, Sequence[int]]]:
        """The same of each node that is a home of such a pod."""
        every = EVERY_HOME in ask.homes or ask.need.bears_all
        for home in self._at_home if every else dict.fromkeys(ask.homes):
            for node in self._at_home.get(home, {}).values():
                if ask.suits(node):
                    yield node.machine, node.room, (node.seq,)

    def place(self, demands: Iterable[PodDemand]) -> list[Binding] | None:
        """Bind all pods of one job, or none: their placements, or None when they do not all fit now."""
        done: list[Binding] = []
        for demand in demands:
            node = self.choose(demand)
            if node is None:
                for placement in done:
                    self.free(placement)
                return None
            done.append(self._take(node, demand))
        return done

    def _take(self, node: WorldNode, demand: PodDemand) -> Binding:
        self.remove(node)
        devices = _occupy(node, demand.shape)
        node.update_room()
        self.add(node)
        return Binding(node, demand, devices)

    def free(self, placement: Binding) -> None:
        """Give back what a placement holds."""
        node, demand, devices = placement
        here = self.takes_pods(node)
        self.remove(node)
        gpu = demand.shape.gpu
        for index in devices:
            node.devices[index] += gpu.milli
        if not devices:
            node.slices[gpu.resource] += gpu.count
        node.free = room_after_move(node.free, demand.shape, 1)
        node.groups.subtract(_groups(demand.shape))
        node.update_room()
        if here:
            self.add(node)


def _groups(shape: PodShape) -> tuple[str, ...]:
    return shape.near.groups if shape.near is not None else ()


def _used_share(room: Room) -> float:
    total = MILLI_PER_GPU * len(room.devices)
    return (total - sum(room.devices)) / total if total else 0.0


def _occupy(node: WorldNode, shape: PodShape) -> tuple[int, ...]:
    node.free = room_after_move(node.free, shape, -1)
    node.groups.update(_groups(shape))
    devices = pick_devices(shape.gpu, node.machine.resource, node.devices) or ()
    if not devices:
        node.slices[shape.gpu.resource] -= shape.gpu.count
    for index in devices:
        node.devices[index] -= shape.gpu.milli
    return devices
