"""Which part of a node each team holds: whole GPUs, MIG slices and time-sliced shares in one measure."""

from collections.abc import Mapping
from fractions import Fraction
from math import lcm

from msgspec.structs import replace

from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.fit.claimed_devices import CLAIMED
from pilotlight.facts.money.bill import Holder
from pilotlight.facts.workload import MIG_PREFIX, part_of_gpu
from pilotlight.units import MILLI_PER_GPU


def holdings(node: Node, gpus: int) -> tuple[tuple[Holder, ...], int]:
    """Holders of a node's GPUs with their parts, and how many parts there are.

    A whole device is one GPU, or less where a GPU is advertised several times. Slices share the GPUs that are no whole
    devices: a MIG profile by its compute slices ("2g" is twice "1g"), a time-sliced share like every other.
    """
    if gpus <= 0:
        return (), 1
    owned: dict[tuple[str, str, str], Fraction] = {}
    for pod, share in shares(node, gpus):
        key = pod.team, pod.namespace, pod.workload_class
        owned[key] = owned.get(key, Fraction(0)) + share
    whole = max(Fraction(gpus), sum(owned.values(), Fraction(0)))
    scale = lcm(whole.denominator, *(share.denominator for share in owned.values()))
    return tuple(Holder(*key, int(share * scale)) for key, share in sorted(owned.items())), int(whole * scale)


def as_first_seen(node: Node, owners: Mapping[str, tuple[str, str]]) -> Node:
    """The node with its pods as they were when they were first seen on it, by uid: a team and a class."""
    pods = tuple(_as_was(pod, owners.get(pod.uid)) for pod in node.pods)
    return node if all(new is old for new, old in zip(pods, node.pods, strict=True)) else replace(node, pods=pods)


def _as_was(pod: BoundPod, owner: tuple[str, str] | None) -> BoundPod:
    if owner is None or owner == (pod.team, pod.workload_class):
        return pod
    return replace(pod, team=owner[0], workload_class=owner[1])


def shares(node: Node, gpus: int) -> list[tuple[BoundPod, Fraction]]:
    """Shares of a node's GPUs that each of its pods holds."""
    if gpus <= 0:
        return []
    weights = _slice_weights(node, gpus)
    return [(pod, _held(pod, node, gpus, weights)) for pod in node.gpu_pods]


def _held(pod: BoundPod, node: Node, gpus: int, weights: Mapping[str, Fraction]) -> Fraction:
    gpu = pod.gpu
    assert gpu is not None
    if gpu.resource in weights:
        return gpu.count * weights[gpu.resource]
    return Fraction(gpu.total_milli, MILLI_PER_GPU) * min(Fraction(1), Fraction(gpus, max(1, node.gpus)))


def _slice_weights(node: Node, gpus: int) -> dict[str, Fraction]:
    """GPUs that one slice of each resource stands for."""
    counts = dict(node.slices)
    for pod in node.gpu_pods:
        if pod.gpu and part_of_gpu(pod.gpu.resource):
            counts[pod.gpu.resource] = counts.get(pod.gpu.resource, 0) + pod.gpu.count
    total = sum(count * _compute_slices(name) for name, count in counts.items())
    sliced = gpus - node.gpus if gpus > node.gpus else gpus
    return {name: Fraction(sliced * _compute_slices(name), total) for name, count in counts.items() if count}


def _compute_slices(resource: str) -> int:
    """The 2 of "nvidia.com/mig-2g.20gb"; 1 of anything else."""
    name = resource.removeprefix(CLAIMED)
    digits = name.removeprefix(MIG_PREFIX).partition("g.")[0] if name.startswith(MIG_PREFIX) else ""
    return int(digits) if digits.isdigit() and int(digits) else 1
