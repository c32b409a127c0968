"""The cluster's scheduler: where a pod binds. Nodes of equal room are one bucket, so a choice looks at few."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple
from zlib import crc32

import msgspec

from pilotlight.facts.labels import HOSTNAME, NODE_NAME
from pilotlight.facts.workload import PodDemand, PodShape, part_of_gpu
from pilotlight.units import MILLI_PER_GPU
from pilotlight.world.machines import Machine
from pilotlight.world.scheduling.filters import affine, is_repelled, pick_devices, room_after_move, roomy
from pilotlight.world.scheduling.nearby import Nearby
from pilotlight.world.scheduling.scoring import BEST, Scoring, chance, score, unsaid
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


class Alike(NamedTuple):
    """Nodes of one machine with equal room, by their numbers, oldest first."""

    machine: Machine
    room: Room
    nodes: Sequence[int]


class Scheduler:
    """Ready, schedulable nodes by machine and room, and those that are somebody's home by that home.

    A pod binds to an open node, or to a home that it tolerates, that it fits and that its affinity, tolerations, GPU
    models and the pods near by allow: to the one with the largest share of GPUs in use (the least where the ``scoring``
    is ``spread``), then the cheapest, then the oldest; by ``least-allocated`` to the one that kube-scheduler scores
    highest, and of several to one that the seed draws.
    ``there`` are the nodes whose pods those are: all of the cluster, open or not; else those that pods may bind to.
    """

    def __init__(
        self,
        *,
        scoring: Scoring = "most-allocated",
        seed: int = 0,
        there: Callable[[], Iterable[WorldNode]] | None = None,
    ) -> None:
        self._pick = self._highest if scoring == "least-allocated" else self._fullest
        self._sign = 1 if scoring == "spread" else -1
        self._seed = seed
        self._machines: dict[str, Machine] = {}
        self._rooms: dict[str, dict[Room, list[int]]] = {}
        self._nodes: dict[int, WorldNode] = {}
        self._free: dict[int, int] = {}
        self._all_free = 0
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
        self._free[node.seq] = sum(node.devices)
        self._all_free += self._free[node.seq]
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
        self._all_free -= self._free.pop(node.seq)
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
        if need.minds and need.shape.near:
            near = Nearby(need.shape.near, tuple(self._there()), demand.homes)

        def able(seq: int) -> bool:
            node = self._nodes[seq]
            return need.picks(node) and (near is None or near.admit(node))

        return self._pick(demand, chain(self._open_rooms(need), self._home_rooms(ask)), able)

    def _fullest(self, demand: PodDemand, rooms: Iterable[Alike], able: Callable[[int], bool]) -> WorldNode | None:
        best: tuple[float, float, int] | None = None
        for machine, room, nodes in rooms:
            oldest = next(filter(able, nodes), None)
            if oldest is not None:
                rank = (self._sign * _used_share(room), float(machine.price), oldest)
                best = rank if best is None else min(best, rank)
        return None if best is None else self._nodes[best[2]]

    def _highest(self, demand: PodDemand, rooms: Iterable[Alike], able: Callable[[int], bool]) -> WorldNode | None:
        by_score: dict[int, list[Sequence[int]]] = {}
        for machine, room, nodes in rooms:
            own = score(demand.shape, room, machine.resources)
            there = [seq for seq in nodes if demand.image in self._nodes[seq].images] if demand.image else []
            by_score.setdefault(own, []).append(nodes)
            if there:
                by_score.setdefault(own + BEST, []).append(there)
        draw = crc32(f"{self._seed}/{demand.uid}".encode())
        for most in sorted(by_score, reverse=True):
            ties = filter(able, chain.from_iterable(by_score[most]))
            chosen = min(ties, key=partial(chance, draw), default=None)
            if chosen is not None:
                return self._nodes[chosen]
        return None

    def _open_rooms(self, need: Need) -> Iterator[Alike]:
        """Open nodes that one such pod may use and fits."""
        for key, rooms in self._rooms.items():
            machine = self._machines[key]
            if need.allows(machine):
                yield from (Alike(machine, room, nodes) for room, nodes in rooms.items() if need.fits(room))

    def _home_rooms(self, ask: Ask) -> Iterator[Alike]:
        """Nodes that are its home, each for itself."""
        every = EVERY_HOME in ask.homes or ask.need.bears_all
        for home in self._at_home if every else dict.fromkeys(ask.homes):
            for node in self._at_home.get(home, {}).values():
                if ask.suits(node):
                    yield Alike(node.machine, node.room, (node.seq,))

    def place(self, demands: Iterable[PodDemand]) -> list[Binding] | None:
        """Bind all pods of one job, or none: their placements, or None when they do not all fit now."""
        demands, done = tuple(demands), list[Binding]()
        asked = (one.shape.gpu for one in demands)
        if sum(gpu.total_milli for gpu in asked if not part_of_gpu(gpu.resource)) > self._all_free:
            return None  # A large gang is tried as each of its nodes comes: its sum is looked at before its pods are.
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
        _move_parts(node, demand.shape, 1)
        node.free = room_after_move(node.free, demand.shape, 1)
        node.unsaid = _moved(node.unsaid, demand.shape, -1)
        node.groups.subtract(_groups(demand.shape))
        node.update_room()
        if here:
            self.add(node)


def _moved(counts: tuple[int, int], shape: PodShape, by: int) -> tuple[int, int]:
    cpu, memory = unsaid(shape)
    return counts[0] + by * cpu, counts[1] + by * memory


def _groups(shape: PodShape) -> tuple[str, ...]:
    return shape.near.groups if shape.near is not None else ()


def _used_share(room: Room) -> float:
    total = MILLI_PER_GPU * len(room.devices)
    return (total - sum(room.devices)) / total if total else 0.0


def _move_parts(node: WorldNode, shape: PodShape, sign: int) -> None:
    for name, amount in shape.other:
        if name in node.slices:
            node.slices[name] += sign * amount


def _occupy(node: WorldNode, shape: PodShape) -> tuple[int, ...]:
    node.free = room_after_move(node.free, shape, -1)
    node.unsaid = _moved(node.unsaid, shape, 1)
    node.groups.update(_groups(shape))
    devices = pick_devices(shape.gpu, node.machine.resource, node.devices) or ()
    if not devices:
        node.slices[shape.gpu.resource] -= shape.gpu.count
    _move_parts(node, shape, -1)
    for index in devices:
        node.devices[index] -= shape.gpu.milli
    return devices
