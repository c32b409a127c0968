"""Which part of a node each team holds: whole GPUs, MIG slices and time-sliced shares in one measure."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import gcd, lcm
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.fit.claimed_devices import CLAIMED
from pilotlight.facts.money.bill import Holder
from pilotlight.facts.workload import MIG_PREFIX, NVIDIA, GpuRequest, part_of_gpu
from pilotlight.units import MILLI_PER_GPU

if TYPE_CHECKING:
    from fractions import Fraction


def holdings(node: Node, gpus: int) -> tuple[tuple[Holder, ...], int]:
    """Holders of a node's GPUs with their parts, and how many parts there are.

    A whole device is one GPU, or less where a GPU is advertised several times. Slices share the GPUs that are no whole
    devices: a MIG profile by its compute slices ("2g" is twice "1g"), a time-sliced share like every other.
    """
    if gpus <= 0:
        return (), 1
    held, parts = pod_parts(node, gpus)
    owned: dict[tuple[str, str, str], int] = {}
    for pod, own in held:
        key = pod.team, pod.namespace, pod.workload_class
        owned[key] = owned.get(key, 0) + own
    whole = max(gpus * parts, sum(owned.values()))
    common = gcd(parts, whole, *owned.values())
    return tuple([Holder(*key, own // common) for key, own in sorted(owned.items())]), whole // common


def as_first_seen(node: Node, owners: Mapping[str, tuple[str, str]]) -> Node:
    """The node with its pods as they were when they were first seen on it, by uid: a team and a class."""
    for pod in node.pods:
        if owners.get(pod.uid) not in (None, (pod.team, pod.workload_class)):
            return replace(node, pods=tuple([_as_was(each, owners.get(each.uid)) for each in node.pods]))
    return node


def _as_was(pod: BoundPod, owner: tuple[str, str] | None) -> BoundPod:
    if owner is None or owner == (pod.team, pod.workload_class):
        return pod
    return replace(pod, team=owner[0], workload_class=owner[1])


def shares(node: Node, gpus: int) -> "list[tuple[BoundPod, Fraction]]":
    """Shares of a node's GPUs that each of its pods holds."""
    from fractions import Fraction

    held, parts = pod_parts(node, gpus)
    return [(pod, Fraction(own, parts)) for pod, own in held]


def pod_parts(node: Node, gpus: int) -> tuple[list[tuple[BoundPod, int]], int]:
    """Parts of a node's GPUs that each of its pods holds, and how many parts a GPU has."""
    if gpus <= 0:
        return [], 1
    pods, devices = node.gpu_pods, max(1, node.gpus)
    sliced = node.slices or [pod for pod in pods if pod.gpu and pod.gpu.resource != NVIDIA]
    weights, slices = _slice_weights(node, gpus) if sliced else ({}, 1)
    whole = MILLI_PER_GPU * devices
    parts = lcm(whole, slices)
    of_slice, of_milli = parts // slices, parts // whole * min(gpus, devices)
    held = []
    for pod in pods:
        gpu = pod.gpu
        assert gpu is not None
        if weights and gpu.resource in weights:
            held.append((pod, gpu.count * weights[gpu.resource] * of_slice))
        else:
            held.append((pod, gpu.count * gpu.milli * of_milli))
    return held, parts


def measure(node: Node, gpus: int) -> Callable[[GpuRequest], Decimal]:
    """GPUs of a node that devices of it stand for, in the measure of its pods' parts."""
    weights, slices = _slice_weights(node, gpus)
    of_milli = Decimal(min(gpus, node.gpus)) / (MILLI_PER_GPU * max(1, node.gpus))

    def measured(gpu: GpuRequest) -> Decimal:
        sliced = weights.get(gpu.resource)
        return gpu.total_milli * of_milli if sliced is None else Decimal(gpu.count * sliced) / slices

    return measured


def _slice_weights(node: Node, gpus: int) -> tuple[dict[str, int], int]:
    """GPUs that one slice of each resource stands for, each of so many parts."""
    counts = dict(node.slices)
    for pod in node.gpu_pods:
        if pod.gpu and pod.gpu.resource != NVIDIA and part_of_gpu(pod.gpu.resource):
            counts[pod.gpu.resource] = counts.get(pod.gpu.resource, 0) + pod.gpu.count
    if not counts:
        return {}, 1
    total = sum([count * _compute_slices(name) for name, count in counts.items()])
    sliced = gpus - node.gpus if gpus > node.gpus else gpus
    return {name: sliced * _compute_slices(name) for name, count in counts.items() if count}, total or 1


def _compute_slices(resource: str) -> int:
    """The 2 of "nvidia.com/mig-2g.20gb"; 1 of anything else."""
    name = resource.removeprefix(CLAIMED)
    digits = name.removeprefix(MIG_PREFIX).partition("g.")[0] if name.startswith(MIG_PREFIX) else ""
    return int(digits) if digits.isdigit() and int(digits) else 1
