"""A first policy for a cluster that was looked at: its pools as their nodes show them, and what that assumes."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_UP, Decimal
from typing import NamedTuple, get_args

from pilotlight.decide.offers.offerings import price_of
from pilotlight.facts import labels
from pilotlight.facts.capacity import CapacityType, ClusterView, Node, Taint
from pilotlight.facts.fit.matching import holds, untolerated_taint
from pilotlight.facts.offers.catalog import Catalog, InstanceType
from pilotlight.facts.place.homes import BIRTH_TAINT, but_home
from pilotlight.facts.policy import CloudName, Policy, PoolPolicy
from pilotlight.facts.workload import PodDemand
from pilotlight.units import count_of, milli, whole

CLOUDS: Mapping[str, CloudName] = {"aws": "eks", "gcp": "gke", "azure": "aks", "civo": "civo"}
"""Whose an instance is, as the policy names it."""

TOLD = {labels.INSTANCE_TYPE, labels.ZONE, labels.REGION, labels.OS, labels.ARCH, labels.CAPACITY_TYPE, labels.POOL}
"""Labels that a pool's nodes are known to carry without being listed."""
_PASSING = re.compile(
    r"(?:^|\.)(?:nvidia\.com|feature\.node\.kubernetes\.io|csi\.[^/]+|beta\.kubernetes\.io)/"
    r"|hostname|image|version|template|instance-?id|^node\.kubernetes\.io/(?!instance-type)",
    re.IGNORECASE,
)
"""Labels of one machine, or that come with its software: a node that is born tomorrow may carry others."""
_PASSING_TAINT = re.compile(
    r"^(?:node\.kubernetes\.io|node\.cloudprovider\.kubernetes\.io|pilotlight\.dev|karpenter\.sh)/"
    r"|^(?:ToBeDeleted|DeletionCandidateOf)"
)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-.*", re.IGNORECASE)


class FoundPool(NamedTuple):
    """A pool as it goes into the policy, what stands behind it, and its node's dollars an hour, where known."""

    name: str
    pool: PoolPolicy
    seen: str
    usd_per_hour: Decimal | None


class UnknownType(NamedTuple):
    """An instance type that no price list has, as its pool's nodes show it."""

    instance_type: str
    cloud: str
    gpu_model: str
    gpus: int
    capacity_type: CapacityType


class FirstPolicy(NamedTuple):
    """Facts behind a first policy. ``capacity_types`` are the pools'; ``assumed`` is what nothing showed; ``kept_off``
    are pods that wait and tolerate the taints of no pool that they could go to; ``unknown`` types of its pools.
    """

    pools: tuple[FoundPool, ...]
    capacity_types: tuple[CapacityType, ...]
    assumed: tuple[str, ...]
    kept_off: tuple[str, ...] = ()
    unknown: tuple[UnknownType, ...] = ()

    @property
    def most_nodes(self) -> int:
        """Over all pools."""
        return sum(found.pool.max for found in self.pools)

    @property
    def most_usd_per_hour(self) -> Decimal:
        """Cost of all of them at their most, in whole dollars; 0 where no price is known."""
        sums = sum((found.pool.max * found.usd_per_hour for found in self.pools if found.usd_per_hour), Decimal(0))
        return sums.to_integral_value(ROUND_UP)


def first_policy(view: ClusterView, catalog: Catalog) -> FirstPolicy:
    """The pools that nodes with GPUs belong to; where there is none, the cheapest type that holds the largest pod."""
    groups: dict[str, list[Node]] = {}
    for node in view.nodes:
        groups.setdefault(node.pool or node.instance_type or "gpu", []).append(node)
    assumed: list[str] = []
    found: list[FoundPool] = []
    for name, nodes in sorted(groups.items()):
        found.append(_of_nodes(name, _key(name, nodes[0], found), nodes, catalog, assumed))
    if not found and view.pending:
        found = _of_pods(view.pending, catalog, assumed)
    if not found:
        assumed.append("no node with a GPU is there and no pod waits for one: the policy has no pool yet")
    kinds = {one.pool.capacity_type for one in found}
    if "spot" in kinds:
        assumed.append("batch may use spot, for a pool of it is there; other classes stay off it")
    assumed += [
        f"pool {one.name}: no price of {one.pool.instance_type} is known: nothing is bought there until you write it, "
        "as the last lines of the policy show"
        for one in found
        if _unpriced(one)
    ]
    order: tuple[CapacityType, ...] = ("reserved", "spot", "on-demand")
    kept_off = tuple(_kept_off(found, catalog, view.pending))
    unknown = {
        one.pool.instance_type: UnknownType(
            one.pool.instance_type, one.pool.cloud, nodes[0].gpu_model, nodes[0].gpus, one.pool.capacity_type
        )
        for one, (_, nodes) in zip(found, sorted(groups.items()), strict=False)
        if one.pool.instance_type not in catalog.instance_types
    }
    sold = tuple(kind for kind in order if kind in kinds)
    return FirstPolicy(tuple(found), sold, tuple(assumed), kept_off, tuple(unknown.values()))


NAMED = 3


def _kept_off(found: Sequence[FoundPool], catalog: Catalog, pending: Iterable[PodDemand]) -> Iterator[str]:
    """A line for the same taints: the pods that wait, and that each pool which would hold them keeps off by some.

    Only a taint that says no more than "has GPUs" is every GPU pod's to tolerate: any other may be a team's own.
    """
    lacking: dict[tuple[str, bool], list[str]] = {}
    told = {*labels.NAMES_A_GPU, labels.INSTANCE_TYPE, *(key for one in found for key in one.pool.labels)}
    for pod in pending:
        fit = [one for one in found if _holds(one.pool, catalog.instance_types.get(one.pool.instance_type), pod, told)]
        met = {one.name: _untolerated(one.pool, pod) for one in fit}
        if met and all(met.values()):
            lacking.setdefault(_said_of(met), []).append(pod.full_name)
    for (missing, anyones), pods in lacking.items():
        more = f" and {len(pods) - NAMED} more" if len(pods) > NAMED else ""
        lack = "lacks" if len(pods) == 1 else "lack"
        how = (
            "add it to the pods" if anyones else "add it where the pods may use that pool, else write one of their own"
        )
        yield f"{', '.join(pods[:NAMED])}{more} {lack} the toleration {missing}: nothing is bought for that; {how}"


def _said_of(met: Mapping[str, Sequence[Taint]]) -> tuple[str, bool]:
    """Taints by pool, in words; where some pools have none but GPUs' own, of those alone, and True."""
    anyones = {name: taints for name, taints in met.items() if all(t.key.endswith("/gpu") for t in taints)}
    shown = [f"{', '.join(map(_shown, taints))} of pool {name}" for name, taints in (anyones or met).items()]
    return " or ".join(shown), bool(anyones)


def _untolerated(pool: PoolPolicy, pod: PodDemand) -> list[Taint]:
    """The pool's taints that keep a pod off."""
    return [one for one in but_home(pool.taints) if untolerated_taint((one,), pod.shape.tolerations)]


def _shown(taint: Taint) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def _unpriced(found: FoundPool) -> bool:
    return found.usd_per_hour is None


def _of_nodes(name: str, key: str, nodes: Sequence[Node], catalog: Catalog, assumed: list[str]) -> FoundPool:
    """A pool by its nodes: its name at the cloud, and ours."""
    first, most = nodes[0], 2 * len(nodes)
    kinds = Counter(node.instance_type for node in nodes)
    instance_type = kinds.most_common(1)[0][0] or "unknown"
    if not first.pool:
        assumed.append(f"pool {key}: its nodes name no pool; give them the label {labels.POOL}={key}")
    if len(kinds) > 1:
        assumed.append(f"pool {key}: all its nodes are {instance_type}, though {len(kinds)} types were seen")
    if first.slices:
        assumed.append(
            f"pool {key}: nodes offer parts of GPUs ({', '.join(sorted(first.slices))}): write them as slices"
        )
    assumed.append(f"pool {key}: at most {count_of(most, 'node')}, twice as many as there are now")
    pool = PoolPolicy(
        cloud=CLOUDS.get(first.cloud) or _cloud_of(instance_type, catalog),
        cluster_pool="" if key == name else first.pool,
        instance_type=instance_type,
        capacity_type=first.capacity_type,
        labels=_common(nodes),
        taints=_taints(nodes),
        max=most,
    )
    gpus = f"{first.gpus} {first.gpu_model or 'GPU'}" if first.gpus else "GPUs"
    return FoundPool(key, pool, f"{len(nodes)} now, each with {gpus}", _price(pool, catalog))


def _cloud_of(instance_type: str, catalog: Catalog) -> CloudName:
    """Cloud that rents a type, as the catalogue has it; the built-in one where that is not known."""
    machine = catalog.instance_types.get(instance_type)
    named: Mapping[str, CloudName] = {**CLOUDS, **{cloud: cloud for cloud in get_args(CloudName)}}
    return named.get(machine.cloud, "world") if machine is not None else "world"


def _key(name: str, node: Node, taken: Sequence[FoundPool]) -> str:
    """Key of a pool in the policy: its name, or what it is made of where that is an id."""
    if not _ID.fullmatch(name):
        return name
    made_of = (node.gpu_model or node.instance_type or "gpu").lower()
    used = {one.name for one in taken}
    return next(key for n in range(1, len(used) + 2) if (key := f"{made_of}-{n}" if n > 1 else made_of) not in used)


def _common(nodes: Sequence[Node]) -> dict[str, str]:
    """The labels that all nodes of a pool carry with one value, and that a new one will carry too."""
    shared = set.intersection(*(set(node.labels.items()) for node in nodes))
    own = {node.name for node in nodes} | {node.instance for node in nodes}
    return {
        key: value
        for key, value in sorted(shared)
        if key not in {*TOLD, labels.NODE_NAME, labels.GPU_MODEL} and value not in own and not _PASSING.search(key)
    }


def _taints(nodes: Sequence[Node]) -> tuple[Taint, ...]:
    """The taints that all nodes carry and are born with; that of a home, whatever home each of them has by now."""
    shared = [taint for taint in nodes[0].taints if all(taint in node.taints for node in nodes)]
    home = (BIRTH_TAINT,) if all(node.home for node in nodes) else ()
    return (*(taint for taint in shared if not _PASSING_TAINT.search(taint.key)), *home)


def _price(pool: PoolPolicy, catalog: Catalog) -> Decimal | None:
    machine = catalog.instance_types.get(pool.instance_type)
    return None if machine is None else price_of(Policy(version=1), pool.instance_type, machine, pool.capacity_type)


def _of_pods(pending: Iterable[PodDemand], catalog: Catalog, assumed: list[str]) -> list[FoundPool]:
    """One pool for the pod that asks for most, of the cheapest type that holds it."""
    largest = max(pending, key=lambda pod: (pod.shape.gpu.count, pod.shape.memory, pod.full_name))
    fitting = [
        (price.usd_per_hour, name, machine)
        for name, machine in catalog.instance_types.items()
        if (price := machine.prices.get("on-demand")) and _holds(_alone(name), machine, largest, _OF_TYPES)
    ]
    if not fitting:
        assumed.append(f"no type of catalogue {catalog.name} holds {largest.full_name}: the policy has no pool yet")
        return []
    usd, name, machine = min(fitting, key=lambda each: each[:2])
    asked = {one.key: one.values[0] for term in largest.shape.terms[:1] for one in term if one.operator == "In"}
    pool = PoolPolicy(
        cloud=_cloud_of(name, catalog),
        instance_type=name,
        labels={key: value for key, value in sorted(asked.items()) if key not in {*TOLD, *labels.NAMES_A_GPU}},
        taints=tuple(
            Taint(key=each.key, value=each.value, effect=each.effect or "NoSchedule")
            for each in largest.shape.tolerations
            if each.key.endswith("/gpu")
        ),
        max=2,
    )
    assumed.append(
        f"no node with a GPU is there: {name} is the cheapest of catalogue {catalog.name} that holds "
        f"{largest.full_name}; write a pool that you have instead, with its name at the cloud"
    )
    return [FoundPool(machine.gpu_model.lower(), pool, "none now", usd)]


_OF_TYPES = frozenset((labels.INSTANCE_TYPE, labels.GPU_PRODUCT, labels.GPU_MODEL))
"""Labels that a type of the catalogue tells."""


def _alone(instance_type: str) -> PoolPolicy:
    """A pool of which its type is known, and nothing else."""
    return PoolPolicy(cloud="world", instance_type=instance_type, max=1)


def _holds(pool: PoolPolicy, machine: InstanceType | None, pod: PodDemand, told: Container[str]) -> bool:
    """Whether an empty node would hold a pod, by the labels that are ``told`` and, where it is known, by its type."""
    shape, known = pod.shape, {**pool.labels, labels.INSTANCE_TYPE: pool.instance_type}
    if machine is not None:
        known |= {labels.GPU_PRODUCT: machine.gpu_product, labels.GPU_MODEL: machine.gpu_model}
    named = [one for term in shape.terms[:1] for one in term if one.key in told]
    return all(holds(known, one) for one in named) and (
        machine is None
        or (
            machine.gpus >= shape.gpu.count
            and machine.gpu_resource == shape.gpu.resource
            and (not shape.gpu_models or machine.gpu_model in shape.gpu_models)
            and machine.gpu_memory_gib >= shape.min_gpu_memory_gib
            and milli(machine.cpu) > shape.cpu_milli
            and whole(machine.memory) > shape.memory
        )
    )
