"""Devices that a shape gets by claim: those of a ready node with room, else of the cheapest offering that holds it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.decide.fit.fit import pods_that_fit
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.workload import NO_GPU, PodShape

Need = tuple[tuple[str, int], ...]
"""So many of each resource."""


class Tried(NamedTuple):
    """A shape's claims tried on one node or offering: the GPUs they come to, or the reason for none."""

    need: Need = ()
    unknown: str = ""
    unread: str = ""
    stops: str = ""
    """An attribute that a selector reads and a device lacks: the scheduler gives up the pod there, on any node."""

    @property
    def in_doubt(self) -> bool:
        """True where nobody can tell."""
        return bool(self.unknown or self.unread)


def choose_devices(
    one: PodShape, tried: Mapping[str, Tried], nodes: Sequence[Node], offerings: Sequence[Offering]
) -> tuple[PodShape, Need | None]:
    """The need of a ready node with room for it, else that of the cheapest offering that it may use; None where
    nobody can tell of those, else that of any: then it is not the devices that keep it off. What only a node out of its
    reach has does not count beside a place that it may use. The shape is without those sharers that no node holds too.
    """
    by_price = sorted(offerings, key=lambda o: (o.usd_per_hour, o.name))
    if found := _held(one, tried, nodes, by_price):
        return found
    usable = [tried[o.name] for o in by_price if may_use(one, o)]
    usable += [tried[f"node {n.name}"] for n in nodes if f"node {n.name}" in tried and may_use(one, n)]
    need = next((each.need for each in usable if each.need), None)
    if need is not None or any(each.in_doubt for each in usable):
        return one, need
    others = () if usable else sorted(tried)
    return one, next((tried[name].need for name in (*(o.name for o in by_price), *others) if tried[name].need), None)


def _held(
    one: PodShape, tried: Mapping[str, Tried], nodes: Sequence[Node], by_price: Sequence[Offering]
) -> tuple[PodShape, Need] | None:
    """The most of a shape's sharers that a ready node or an empty one holds beside it, with the devices there."""
    rooms = [(n.free, need) for n in sorted(nodes, key=lambda n: n.name) if (need := _need_now(one, tried, n))]
    rooms += [(o.resources, need) for o in by_price if (need := tried[o.name].need) and may_use(one, o)]
    for part in _with_fewer(one):
        bare = replace(part, gpu=NO_GPU)  # Its devices aside.
        need = next((need for room, need in rooms if pods_that_fit(bare, "", (), {}, room)), ())
        if need:
            return part, need
    return None


def _need_now(one: PodShape, tried: Mapping[str, Tried], node: Node) -> Need:
    """The need of a shape on a ready node that it may use and whose devices are free; else none."""
    need = tried.get(f"node {node.name}", Tried()).need
    able = need and node.ready and node.schedulable and may_use(one, node)
    return need if able and all(free_devices(node, name) >= count for name, count in need) else ()


def _with_fewer(one: PodShape) -> Iterator[PodShape]:
    """The shape with all pods that share its claims, then with ever fewer of them."""
    yield one
    for cpu, memory, disk in reversed(one.claimed.sharers if one.claimed is not None else ()):
        less = {"cpu_milli": one.cpu_milli - cpu, "memory": one.memory - memory, "ephemeral": one.ephemeral - disk}
        one = replace(one, **{name: max(0, amount) for name, amount in less.items()})
        yield one


def may_use(one: PodShape, where: Node | Offering) -> bool:
    """True where a shape's own rules on labels and taints allow a node."""
    return selects(where.labels, one.terms) and untolerated_taint(where.taints, one.tolerations) is None


def free_devices(node: Node, resource: str) -> int:
    """Count of free whole devices of a resource on a node."""
    if resource == node.resource:
        return sum(1 for device in node.devices if device == 1000)
    return node.slices.get(resource, dict(node.free.other).get(resource, 0))
