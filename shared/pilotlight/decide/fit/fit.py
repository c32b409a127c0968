"""Fit of pods on nodes by the rules of the Kubernetes scheduler, and the room that plans use.

Of pods near each other, as the scheduler does it, each pod is judged by what is there before it. Source: Kubernetes
1.36, InterPodAffinity and PodTopologySpread. A spread that honours taints looks at open nodes and at the pod's home.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from pilotlight.facts.capacity import Node, Offering, Resources, Taint
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.labels import GPU_MODEL, HOSTNAME, ZONE
from pilotlight.facts.workload import GpuRequest, Near, NearRule, PodShape, clash, unlisted_amount
from pilotlight.units import MILLI_PER_GPU


def device_for(gpu: GpuRequest, devices: Sequence[int]) -> list[int] | None:
    """The devices (indexes) a request takes of those with so much free, or None when it does not fit.

    A share takes the fullest device that has room; whole devices are taken in order.
    """
    if gpu.milli < MILLI_PER_GPU:
        fitting = [(free, i) for i, free in enumerate(devices) if free >= gpu.milli]
        return [min(fitting)[1]] if fitting else None
    whole = [i for i, free in enumerate(devices) if free == MILLI_PER_GPU]
    return whole[: gpu.count] if len(whole) >= gpu.count else None


def pods_that_fit(
    shape: PodShape, resource: str, devices: Sequence[int], slices: Mapping[str, int], free: "Resources | Bin"
) -> int:
    """Count of pods of one shape that fit a node with so much free; ``devices`` are whole ones of ``resource``."""
    gpu = shape.gpu
    if gpu.count == 0:
        count = free.pods
    elif gpu.resource != resource:
        count = slices.get(gpu.resource, 0) // gpu.count
    elif gpu.milli < MILLI_PER_GPU:
        count = sum([d // gpu.milli for d in devices])
    else:
        count = devices.count(MILLI_PER_GPU) // gpu.count
    if count == 0:
        return 0
    if shape.cpu_milli:
        count = min(count, free.cpu_milli // shape.cpu_milli)
    if shape.memory:
        count = min(count, free.memory // shape.memory)
    if shape.ephemeral:
        count = min(count, free.ephemeral // shape.ephemeral)
    if shape.other:
        have = {**slices, **dict(free.other)}
        count = min(count, *(have.get(name, unlisted_amount(name)) // amount for name, amount in shape.other))
    if shape.near is not None and shape.near.ports:
        count = 0 if free.ports and clash(free.ports, shape.near.ports) else min(count, 1)
    return max(0, min(count, free.pods))


ANY_MODEL = "any"


class Bin(Struct):
    """One node's room, used up as pods are placed."""

    kind: Literal["ready", "booting", "new"]  # Lit, on its way, or bought by this plan.
    where: str  # Its name to people: the node's, else the offering's.
    pool: str  # The policy's pool.
    labels: Mapping[str, str]  # Labels of the node, or those that it will carry.
    taints: Sequence[Taint]  # Taints of the node, or those that it will carry.
    resource: str  # The resource by which whole devices are asked for.
    devices: list[int]  # Free thousandths of each whole device.
    slices: dict[str, int]  # Free counts of other GPU resources, by name.
    cpu_milli: int  # Free thousandths of a core.
    memory: int  # Free bytes.
    ephemeral: int  # Free bytes of its disk.
    pods: int  # Pods that it still takes.
    other: dict[str, int]  # Free amounts of further resources, by name; huge pages in bytes.
    ports: tuple[str, ...] = ()  # Host ports that are taken.
    taken: list[tuple[PodShape, int]] = field(default_factory=list)  # Shapes that this plan put here, and pods of each.
    full: bool = False  # No device room is left.
    home: str = ""  # Value of its home taint: only pods that tolerate it bind here; empty: open to all.
    coming: bool = False  # No node of it is seen yet.
    watch: "Callable[[Bin], None] | None" = None  # Told before pods are put here.

    def in_pool_of(self, offering: Offering) -> bool:
        """True for a node of an offering's pool, in its zone where it names one."""
        return self.pool == offering.pool and offering.zone in ("", self.labels.get(ZONE, ""))

    def domain(self, topology: str) -> str | None:
        """The value of a label that tells who is near; a node that is not there yet is a host of its own."""
        value = self.labels.get(topology)
        return f"#{id(self)}" if topology == HOSTNAME and not value else value

    @property
    def node(self) -> str:
        """The node's name; one that is not there yet is called by itself."""
        return f"#{id(self)}" if self.coming or self.kind == "new" else self.where

    def keeps_off(self, steered: Collection[str]) -> bool:
        """True where it has a home, or will have: it is not there yet, and of one of these pools."""
        return bool(self.home) or ((self.coming or self.kind == "new") and self.pool in steered)

    def room_for(self, shape: PodShape) -> int:
        """Count of further pods of a shape that fit, by size alone."""
        return pods_that_fit(shape, self.resource, self.devices, self.slices, self)

    def put(self, shape: PodShape, count: int) -> None:
        """Use the room of ``count`` pods that fit."""
        if self.watch is not None:
            self.watch(self)
        self._take(shape, count)
        self.taken.append((shape, count))
        self.full = not any(self.devices) and not any(self.slices.values())

    def take_beside_gpus(self, shape: PodShape, count: int = 1) -> None:
        """Use the room of pods but for their GPUs."""
        self.cpu_milli -= shape.cpu_milli * count
        self.memory -= shape.memory * count
        self.ephemeral -= shape.ephemeral * count
        self.pods -= count
        for name, amount in shape.other:
            have = self.slices if name in self.slices else self.other
            have[name] = have.get(name, unlisted_amount(name)) - amount * count
        if shape.near is not None and shape.near.ports:
            self.ports = (*self.ports, *shape.near.ports)

    def _take(self, shape: PodShape, count: int) -> None:
        gpu = shape.gpu
        self.take_beside_gpus(shape, count)
        if gpu.resource != self.resource:
            self.slices[gpu.resource] -= gpu.count * count
        elif gpu.milli >= MILLI_PER_GPU:
            for device in [i for i, free in enumerate(self.devices) if free == MILLI_PER_GPU][: gpu.count * count]:
                self.devices[device] = 0
        else:
            for _ in range(count):
                for device in device_for(gpu, self.devices) or ():
                    self.devices[device] -= gpu.milli

    def alike(self) -> "Bin":
        """Another with the same room, watched by nobody."""
        named = self.kind, self.where, self.pool, self.labels, self.taints, self.resource
        free = list(self.devices), dict(self.slices), self.cpu_milli, self.memory, self.ephemeral, self.pods
        rest = dict(self.other), self.ports, list(self.taken), self.full, self.home, self.coming
        return Bin(*named, *free, *rest)


def of_node(node: Node) -> Bin:
    """The free room of a node that takes pods."""
    gpus = node.resource, node.devices, node.slices
    bin_ = _bin("ready", node.name, node.pool, node.labels, node.taints, gpus, node.free)
    bin_.home = node.home
    return bin_


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
        ports=free.ports,
    )


class Neighbours:
    """Pods that each rule counts in each domain: at first ``around``, as the cluster tells it. Nodes of pools
    ``steered`` have homes; ``daemons`` are of DaemonSets, on each node to come that they select.
    """

    def __init__(
        self,
        around: Mapping[str, Mapping[str, int]],
        shapes: Iterable[PodShape],
        steered: Collection[str] = (),
        daemons: Sequence[PodShape] = (),
    ) -> None:
        rules = {rule.key: rule for shape in shapes if shape.near for rule in shape.near.rules}
        self._steered, self._daemons = steered, daemons
        self._counts = {key: dict(around.get(key, {})) for key in rules}
        self._counts |= {key: dict(found) for key, found in around.items() if key.partition("@")[0] in rules}
        self._of_group: dict[str, list[NearRule]] = {}
        for rule in rules.values():
            self._of_group.setdefault(rule.group, []).append(rule)
        self._spreads = [rule for rule in rules.values() if rule.kind == "spread"]

    def add_place(self, place: Bin) -> None:
        """Another node is there, or will be: a domain to spread over, perhaps a new one."""
        for rule in self._spreads:
            if (domain := _spread_domain(rule, place)) is not None and not self._at_home(rule, place):
                self._counts[rule.key].setdefault(domain, 0)
        for one in self._daemons:
            if one.near and selects(place.labels, one.terms) and not untolerated_taint(place.taints, one.tolerations):
                self.put(one.near, place, 1)

    def put(self, near: Near, place: Bin, pods: int) -> None:
        """So many pods are there."""
        for group in near.groups:
            for rule in self._of_group.get(group, ()):
                spread = rule.kind == "spread"
                domain = _spread_domain(rule, place) if spread else place.domain(rule.topology)
                if domain is not None:
                    key = rule.key_at(place.node) if spread and self._at_home(rule, place) else rule.key
                    counts = self._counts.setdefault(key, {})
                    counts[domain] = counts.get(domain, 0) + pods

    def allow(self, near: Near, place: Bin) -> bool:
        """True where one more such pod may be there, by its rules."""
        return self.broken_rule(near, place) is None

    def broken_rule(self, near: Near, place: Bin) -> NearRule | None:
        """The rule that keeps one more such pod off, or None."""
        beside = [rule for rule in near.rules if rule.kind == "with"]
        first = bool(beside) and beside[0].own and not any(self._counts[rule.key] for rule in beside)
        return next((rule for rule in near.rules if not self._holds(rule, place, first=first)), None)

    def _holds(self, rule: NearRule, place: Bin, *, first: bool) -> bool:
        domain, counts = place.domain(rule.topology), self._counts[rule.key]
        if rule.kind == "apart":
            return domain is None or not counts.get(domain)
        if domain is None:
            return False
        if rule.kind == "with":
            return first or counts.get(domain, 0) > 0
        if self._at_home(rule, place):
            own = self._counts.get(rule.key_at(place.node), {})
            counts = {**counts, domain: counts.get(domain, 0) + own.get(domain, 0)}
        return _skew(rule, counts, domain) <= rule.max_skew

    def _at_home(self, rule: NearRule, place: Bin) -> bool:
        """True where only pods that are planned on a node count it."""
        return rule.minds_homes and place.keeps_off(self._steered)

    def copy_counts(self) -> dict[str, dict[str, int]]:
        """All counts, to give back to ``restore``."""
        return {key: dict(counts) for key, counts in self._counts.items()}

    def restore(self, saved: Mapping[str, Mapping[str, int]]) -> None:
        """Count as it was."""
        self._counts = {key: dict(counts) for key, counts in saved.items()}


def _skew(rule: NearRule, counts: Mapping[str, int], domain: str) -> int:
    """Pods that a domain has more than the least, with one more pod."""
    least = min(counts.values(), default=0) if len(counts) >= rule.min_domains else 0
    return counts.get(domain, 0) + rule.own - least


def _spread_domain(rule: NearRule, place: Bin) -> str | None:
    """The domain of a node that a rule spreads over; None where it does not look at that node."""
    if any(place.domain(key) is None for key in rule.keys) or not selects(place.labels, rule.nodes):
        return None
    if rule.bears is not None and untolerated_taint(place.taints, rule.bears) is not None:
        return None
    return place.domain(rule.topology)


NOBODY = Neighbours({}, ())


class Allowed:
    """Answers to "may a shape run where such labels and taints are", remembered: many nodes share theirs.

    ``neighbours`` are the pods that are there, and those that the plan has placed.
    """

    def __init__(self, neighbours: Neighbours = NOBODY) -> None:
        self.neighbours = neighbours
        self._known: dict[tuple[str, int, int], bool] = {}
        self._kept: list[object] = []

    def __call__(self, shape: PodShape, bin_: Bin) -> bool:
        """By node affinity, taints and named GPU models; not by room."""
        key = (shape.key, id(bin_.labels), id(bin_.taints))
        known = self._known.get(key)
        if known is None:
            self._kept += bin_.labels, bin_.taints  # So that nothing else has their ids.
            known = self._known[key] = (
                selects(bin_.labels, shape.terms)
                and untolerated_taint(bin_.taints, shape.tolerations) is None
                and model_allowed(shape, bin_.labels.get(GPU_MODEL, ""))
            )
        return known


def model_allowed(shape: PodShape, model: str) -> bool:
    """True where the pod's own annotation allows a GPU model; none named, or "any", allows all."""
    return not shape.gpu_models or ANY_MODEL in shape.gpu_models or model in shape.gpu_models


def fill(shape: PodShape, count: int, bins: Iterable[Bin], allowed: Allowed) -> list[tuple[Bin, int]]:
    """Put up to ``count`` pods of a shape into bins, in their order; what went where."""
    if shape.near is not None and shape.near.picky:
        return _one_by_one(shape, count, bins, allowed)
    placed: list[tuple[Bin, int]] = []
    for bin_ in bins:
        if count == 0:
            break
        if bin_.full or bin_.cpu_milli < shape.cpu_milli > 0 or bin_.memory < shape.memory > 0:
            continue  # Most are, in a large plan: cheaper to know than to work out.
        here = min(count, bin_.room_for(shape))
        if here and allowed(shape, bin_):
            bin_.put(shape, here)
            if shape.near is not None:
                allowed.neighbours.put(shape.near, bin_, here)
            placed.append((bin_, here))
            count -= here
    return placed


def _one_by_one(shape: PodShape, count: int, bins: Iterable[Bin], allowed: Allowed) -> list[tuple[Bin, int]]:
    """As ``fill`` for pods of which each one changes where the next may be: round after round, one a bin."""
    near, neighbours = shape.near, allowed.neighbours
    able = [b for b in bins if not b.full and b.room_for(shape) and allowed(shape, b)]
    placed: dict[int, tuple[Bin, int]] = {}
    before = 0
    while near is not None and count and count != before:
        before = count
        for bin_ in able:
            if count and bin_.room_for(shape) and neighbours.allow(near, bin_):
                bin_.put(shape, 1)
                neighbours.put(near, bin_, 1)
                placed[id(bin_)] = bin_, placed.get(id(bin_), (bin_, 0))[1] + 1
                count -= 1
    return list(placed.values())
