"""Filters that keep a pod off a node: the scheduler's filters, apart from the planner's rules, so that each checks the
other.

Sources: Kubernetes 1.36, plugins NodeAffinity, TaintToleration, NodePorts, NodeResourcesFit
and NodeVolumeLimits (a driver that tells no limit has none); ``labels.Requirement.Matches``, ``HostPortInfo``.
"""

from collections.abc import Mapping, Sequence

from pilotlight.facts.capacity import Resources, Taint
from pilotlight.facts.workload import ATTACHABLE, GpuRequest, PodShape, Requirement, Toleration
from pilotlight.units import MILLI_PER_GPU

REPELLING = ("NoSchedule", "NoExecute")
INT64 = range(-(2**63), 2**63)
"""Gt and Lt compare numbers that Go's ParseInt reads."""


def affine(labels: Mapping[str, str], terms: Sequence[Sequence[Requirement]]) -> bool:
    """True where a node's labels meet one of a pod's terms, or it has none."""
    return len(terms) == 0 or any(not [one for one in term if not _meets(labels, one)] for term in terms)


def _meets(labels: Mapping[str, str], one: Requirement) -> bool:
    there = one.key in labels
    if one.operator in ("NotIn", "DoesNotExist"):
        return not there or (one.operator == "NotIn" and labels[one.key] not in one.values)
    if not there:
        return False
    if one.operator in ("Gt", "Lt"):
        return _beyond(labels[one.key], one)
    return one.operator == "Exists" or labels[one.key] in one.values


def _beyond(value: str, one: Requirement) -> bool:
    numbers = [number for text in (value, *one.values[:1]) if (number := _number(text)) is not None]
    if len(numbers) < 2:
        return False
    above = numbers[0] - numbers[1]
    return above > 0 if one.operator == "Gt" else above < 0


def _number(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if number in INT64 else None


def is_repelled(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
    """True where a taint keeps a pod off that none of its tolerations bears."""
    return bool([t for t in taints if t.effect in REPELLING and not any(_bears(one, t) for one in tolerations)])


def _bears(toleration: Toleration, taint: Taint) -> bool:
    effect = toleration.effect in ("", taint.effect)
    if toleration.operator == "Exists":
        return effect and toleration.key in ("", taint.key)
    return effect and (toleration.key, toleration.value) == (taint.key, taint.value)


def pick_devices(gpu: GpuRequest, resource: str, devices: Sequence[int]) -> tuple[int, ...] | None:
    """The devices that a pod gets of a node's, by index: of its resource, a share on the fullest that has room.

    None where they are too few; none at all where it asks for another resource than whole devices.
    """
    if gpu.resource != resource:
        return ()
    if gpu.milli < MILLI_PER_GPU:
        able = sorted((free, index) for index, free in enumerate(devices) if free >= gpu.milli)
        return (able[0][1],) if able else None
    untouched = tuple(index for index, free in enumerate(devices) if free == MILLI_PER_GPU)
    return untouched[: gpu.count] if len(untouched) >= gpu.count else None


def roomy(shape: PodShape, resource: str, devices: Sequence[int], slices: Mapping[str, int], free: Resources) -> bool:
    """True where one pod fits what is free: its devices, and each of its other resources."""
    gpu = shape.gpu
    if gpu.resource != resource and slices.get(gpu.resource, 0) < gpu.count:
        return False
    if pick_devices(gpu, resource, devices) is None or free.pods < 1:
        return False
    if shape.near is not None and are_ports_taken(free.ports, shape.near.ports):
        return False
    rest = {**slices, **dict(free.other)}
    limited = [(name, amount) for name, amount in shape.other if name in rest or not name.startswith(ATTACHABLE)]
    asked = ((shape.cpu_milli, free.cpu_milli), (shape.memory, free.memory), (shape.ephemeral, free.ephemeral))
    others = tuple((amount, rest.get(name, 0)) for name, amount in limited)
    return not [1 for want, have in (*asked, *others) if want and want > have]


EVERY_ADDRESS = "0.0.0.0"
"""Where a port is taken that names no address: on all of them."""


def are_ports_taken(ports: Sequence[str], wanted: Sequence[str]) -> bool:
    """True where a host port is taken: by the same protocol and number, on one address, or on all of them."""
    used = [_port(one) for one in ports]
    for number, address in (_port(one) for one in wanted):
        there = {where for which, where in used if which == number}
        if there and (address == EVERY_ADDRESS or there & {address, EVERY_ADDRESS}):
            return True
    return False


def _port(text: str) -> tuple[tuple[str, str], str]:
    protocol, number, *address = text.split("/")
    return (protocol, number), (address[0] if address and address[0] else EVERY_ADDRESS)


def _ports(free: Resources, shape: PodShape, sign: int) -> tuple[str, ...]:
    """The host ports in use after a pod left or came."""
    own = shape.near.ports if shape.near is not None else ()
    if not own:
        return free.ports
    return (*free.ports, *own) if sign < 0 else tuple(port for port in free.ports if port not in own)


def room_after_move(free: Resources, shape: PodShape, sign: int) -> Resources:
    """Room that is free after a pod left (1) or came (-1)."""
    change = dict(shape.other)
    return Resources(
        cpu_milli=free.cpu_milli + sign * shape.cpu_milli,
        memory=free.memory + sign * shape.memory,
        ephemeral=free.ephemeral + sign * shape.ephemeral,
        pods=free.pods + sign,
        other=tuple((name, have + sign * change.get(name, 0)) for name, have in free.other),
        ports=_ports(free, shape, sign),
    )
