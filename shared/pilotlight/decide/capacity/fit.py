"""Whether a pod may run on a node, by the rules of the Kubernetes scheduler (labels, taints, room)."""

import re
from collections.abc import Iterable, Mapping, Sequence

from pilotlight.facts.capacity import Resources, Taint
from pilotlight.facts.workload import GpuRequest, PodShape, Requirement, Toleration, unnamed
from pilotlight.units import MILLI_PER_GPU

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


def selects(labels: Mapping[str, str], terms: Sequence[Sequence[Requirement]]) -> bool:
    """Whether labels meet node affinity: any of ``terms``, all of whose requirements hold. No terms: anywhere."""
    return not terms or any(all(holds(labels, r) for r in term) for term in terms)


def holds(labels: Mapping[str, str], requirement: Requirement) -> bool:
    """One requirement against labels. As in Kubernetes, NotIn and DoesNotExist hold where the key is absent."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            have, bound = _integer(value or ""), _integer(*requirement.values[:1])
            if have is None or bound is None:
                return False
            return have > bound if requirement.operator == "Gt" else have < bound


def _integer(text: str = "") -> int | None:
    """A number as Go's ParseInt reads it: Python's int() would take "1_0" and " 1" too."""
    return int(text) if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63 else None


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps a pod off (NoSchedule or NoExecute), or None."""
    for taint in taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not any(_tolerates(t, taint) for t in tolerations):
            return taint
    return None


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if not toleration.key:
        return toleration.operator == "Exists"
    if toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


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
    shape: PodShape, resource: str, devices: Sequence[int], slices: Mapping[str, int], free: Resources
) -> int:
    """How many pods of one shape fit a node with so much free; ``devices`` are whole ones of ``resource``."""
    gpu = shape.gpu
    if gpu.count == 0:
        count = free.pods
    elif gpu.resource != resource:
        count = slices.get(gpu.resource, 0) // gpu.count
    elif gpu.milli < MILLI_PER_GPU:
        count = sum(d // gpu.milli for d in devices)
    else:
        count = sum(1 for d in devices if d == MILLI_PER_GPU) // gpu.count
    if count == 0:
        return 0
    if shape.cpu_milli:
        count = min(count, free.cpu_milli // shape.cpu_milli)
    if shape.memory:
        count = min(count, free.memory // shape.memory)
    if shape.ephemeral:
        count = min(count, free.ephemeral // shape.ephemeral)
    if shape.other:
        have = dict(free.other)
        count = min(count, *(have.get(name, unnamed(name)) // amount for name, amount in shape.other))
    return max(0, min(count, free.pods))
