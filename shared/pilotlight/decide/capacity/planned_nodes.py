"""Room that pods are put into while planning: free room of nodes, of nodes still booting, and of nodes to buy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pilotlight.decide.capacity.fit import device_for, pods_that_fit, selects, untolerated
from pilotlight.facts.capacity import Node, Offering, Resources, Taint
from pilotlight.facts.labels import GPU_MODEL
from pilotlight.facts.workload import PodShape, unnamed
from pilotlight.units import MILLI_PER_GPU

ANY_MODEL = "any"


@dataclass(slots=True)
class Bin:
    """One node's room, used up as pods are placed. ``where`` names it to people; ``full`` has no device room left."""

    kind: Literal["ready", "booting", "new"]
    where: str
    pool: str
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    resource: str
    devices: list[int]
    slices: dict[str, int]
    cpu_milli: int
    memory: int
    ephemeral: int
    pods: int
    other: dict[str, int]
    taken: list[tuple[PodShape, int]] = field(default_factory=list)
    full: bool = False

    @property
    def free(self) -> Resources:
        """What is left beside GPUs."""
        other = tuple(self.other.items()) if self.other else ()
        return Resources(
            cpu_milli=self.cpu_milli, memory=self.memory, ephemeral=self.ephemeral, pods=self.pods, other=other
        )

    def room_for(self, shape: PodShape) -> int:
        """How many more pods of a shape fit, by size alone."""
        return pods_that_fit(shape, self.resource, self.devices, self.slices, self.free)

    def put(self, shape: PodShape, count: int) -> None:
        """Use the room of ``count`` pods that fit."""
        self._take(shape, count)
        self.taken.append((shape, count))
        self.full = not any(self.devices) and not any(self.slices.values())

    def _take(self, shape: PodShape, count: int) -> None:
        gpu = shape.gpu
        self.cpu_milli -= shape.cpu_milli * count
        self.memory -= shape.memory * count
        self.ephemeral -= shape.ephemeral * count
        self.pods -= count
        for name, amount in shape.other:
            self.other[name] = self.other.get(name, unnamed(name)) - amount * count
        if gpu.resource != self.resource:
            self.slices[gpu.resource] -= gpu.count * count
            return
        for _ in range(count):
            for device in device_for(gpu, self.devices) or ():
                self.devices[device] -= min(gpu.milli, MILLI_PER_GPU)


def of_node(node: Node) -> Bin:
    """The free room of a node that takes pods."""
    gpus = node.resource, node.devices, node.slices
    return _bin("ready", node.name, node.pool, node.labels, node.taints, gpus, node.free)


def of_offering(offering: Offering, kind: Literal["booting", "new"], where: str) -> Bin:
    """The predicted room of an empty node of an offering."""
    gpus = offering.resource, offering.devices, offering.slices
    return _bin(kind, where, offering.pool, offering.labels, offering.taints, gpus, offering.resources)


def _bin(
    kind: Literal["ready", "booting", "new"],
    where: str,
    pool: str,
    labels: Mapping[str, str],
    taints: Sequence[Taint],
    gpus: tuple[str, Sequence[int], Mapping[str, int]],
    free: Resources,
) -> Bin:
    resource, devices, slices = gpus
    return Bin(
        kind=kind,
        where=where,
        pool=pool,
        labels=labels,
        taints=taints,
        resource=resource,
        devices=list(devices),
        slices=dict(slices),
        cpu_milli=free.cpu_milli,
        memory=free.memory,
        ephemeral=free.ephemeral,
        pods=free.pods,
        other=dict(free.other),
    )


class Allowed:
    """Whether a shape may run where such labels and taints are, remembered: many nodes share theirs."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], bool] = {}

    def __call__(self, shape: PodShape, bin_: Bin) -> bool:
        """By node affinity, taints and named GPU models; not by room."""
        key = (shape.key, id(bin_.labels), id(bin_.taints))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (
                selects(bin_.labels, shape.terms)
                and untolerated(bin_.taints, shape.tolerations) is None
                and model_allowed(shape, bin_.labels.get(GPU_MODEL, ""))
            )
        return known


def model_allowed(shape: PodShape, model: str) -> bool:
    """Whether the pod's own annotation allows a GPU model; none named, or "any", allows all."""
    return not shape.gpu_models or ANY_MODEL in shape.gpu_models or model in shape.gpu_models


def fill(shape: PodShape, count: int, bins: Iterable[Bin], allowed: Allowed) -> list[tuple[Bin, int]]:
    """Put up to ``count`` pods of a shape into bins, in their order; what went where."""
    placed: list[tuple[Bin, int]] = []
    for bin_ in bins:
        if count == 0:
            break
        if bin_.full:  # Most are, in a large plan: cheaper to know than to work out.
            continue
        here = min(count, bin_.room_for(shape))
        if here and allowed(shape, bin_):
            bin_.put(shape, here)
            placed.append((bin_, here))
            count -= here
    return placed
