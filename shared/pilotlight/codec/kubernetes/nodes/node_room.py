"""Room of a node: what it has in all, and what its pods leave of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from pilotlight.codec.kubernetes import bounds
from pilotlight.codec.kubernetes.bounds import Unreadable
from pilotlight.codec.kubernetes.pods.near import host_ports
from pilotlight.codec.kubernetes.pods.requests import UNREAD, Asked, Request, other_resources, read_amounts, whole_units
from pilotlight.codec.kubernetes.typed_objects import KubeNode
from pilotlight.facts.capacity import Resources
from pilotlight.facts.workload import WHOLE_DEVICES, is_gpu


class NodeRoom(NamedTuple):
    """Room of a node: all of it, its whole GPUs by name and number, other GPU resources, other resources by name.

    ``bare`` is its room beside GPUs with no pod on it.
    """

    amounts: Request
    resource: str
    whole: int
    slices: Mapping[str, int]
    others: tuple[str, ...]
    gpus: frozenset[str]
    bare: Resources = Resources()

    @property
    def has_gpus(self) -> bool:
        """True where there are some."""
        return bool(self.whole or self.slices)


def room_of(node: KubeNode) -> NodeRoom:
    """Room of a node, at most what any node has: it sells no more than there can be. Raises Unreadable."""
    if node.unread:
        raise Unreadable(UNREAD, f"the node cannot be read: {node.unread}; mend it")
    try:
        return _alike(tuple(node.status.allocatable.items()))
    except Unreadable:
        read_amounts(node.status.allocatable, f"Node {node.metadata.name}: status.allocatable")
        raise


@lru_cache(maxsize=1024)
def _alike(allocatable: tuple[tuple[str, str | int | float], ...]) -> NodeRoom:
    """Room that many nodes have alike. Raises Unreadable."""
    read = read_amounts(dict(allocatable), "status.allocatable")
    room = {name: min(amount, Decimal(int(_most(name)))) for name, amount in read.items()}
    others = tuple(name for name, _ in other_resources(room, None) if not is_gpu(name))
    made = NodeRoom(room, *_devices(room), others, frozenset(name for name, a in room.items() if a and is_gpu(name)))
    return made._replace(bare=free_room(made, (), ()))


def _most(resource: str) -> float:
    return (bounds.CORES if resource == "cpu" else bounds.AMOUNT).most


def plugins_of(node: KubeNode) -> frozenset[str]:
    """The GPU resources that a device plugin offers on a node."""
    try:
        return _alike(tuple(node.status.allocatable.items())).gpus
    except Unreadable:
        return frozenset()


def _devices(room: Request) -> tuple[str, int, dict[str, int]]:
    """Whole GPUs under the resource name that has the most, and all other GPU resources by name."""
    whole = {name: int(room.get(name, 0)) for name in WHOLE_DEVICES}
    own = max(WHOLE_DEVICES, key=whole.__getitem__)
    most = int(bounds.DEVICES.most)
    slices = {n: min(int(a), most) for n, a in room.items() if a >= 1 and n != own and is_gpu(n)}
    return own, min(whole[own], most), slices


def bare_room(room: NodeRoom, attachable: tuple[tuple[str, int], ...]) -> Resources:
    """The room of a node with no pod on it, as ``free_room`` tells it."""
    return free_room(room, (), attachable) if attachable else room.bare


def free_room(room: NodeRoom, live: Sequence[Asked], attachable: tuple[tuple[str, int], ...]) -> Resources:
    """Room that pods leave beside GPUs; ``attachable`` is that of volumes and devices by claim."""
    amounts, taken = room.amounts, _taken(live)

    def left(name: str, scale: int = 1, default: int = 0) -> int:
        if name not in amounts:
            return default
        return max(0, int(amounts[name] * scale) - (whole_units(taken[name], scale) if name in taken else 0))

    return Resources(
        cpu_milli=left("cpu", 1000),
        memory=left("memory"),
        ephemeral=left("ephemeral-storage", default=Resources().ephemeral),
        pods=max(0, int(amounts.get("pods", 110)) - len(live)),
        other=(*[(name, left(name)) for name in room.others], *attachable),
        ports=tuple(sorted({port for a in live for port in host_ports(a.pod)})) if live else (),
    )


def _taken(live: Sequence[Asked]) -> Request:
    """Amounts that pods take in all. Pods that ask alike share one request, which is counted once."""
    requests = {id(asked.request): asked.request for asked in live}
    counts = Counter([id(asked.request) for asked in live])
    taken: Request = {}
    for of, request in requests.items():
        for name, amount in request.items():
            taken[name] = taken.get(name, 0) + amount * counts[of]
    return taken
