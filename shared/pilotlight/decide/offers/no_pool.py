"""Why a pod can never run on an offering, or on none of them, and the way out."""

from collections.abc import Sequence

from pilotlight.facts.capacity import Offering
from pilotlight.facts.fit.claimed_devices import CLAIMED
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.labels import (
    ARCH,
    CAPACITY_TYPE,
    GPU_MEMORY,
    GPU_MODEL,
    GPU_PRESENT,
    GPU_PRODUCT,
    INSTANCE_TYPE,
    NODE_NAME,
    OS,
    POOL,
    REGION,
    ZONE,
)
from pilotlight.facts.place.homes import but_home
from pilotlight.facts.place.pod_verdicts import Code
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodShape, Requirement, unlisted_amount

MOST = 4
"""So many values of a label, and so many alternatives, are said at most."""

_OF_TYPE = frozenset({ARCH, GPU_MEMORY, GPU_MODEL, GPU_PRESENT, GPU_PRODUCT, REGION, ZONE})
"""Labels that a node has by its type or zone: of a pool without a price they may not be known."""


def no_pool(shape: PodShape, codes: set[Code], offerings: Sequence[Offering]) -> tuple[Code, str]:
    """Why no offering at all can hold a shape, as (code, message), from the codes of what is wrong with each."""
    if codes == {"device"}:
        have = " and ".join(sorted({offered_gpus(o) for o in offerings}))
        return "device", (
            f"asks for {resource_in_words(shape.gpu.resource)}, which no pool offers (they offer {have}): "
            "add a pool of such a type, or list it in pools.<pool>.slices where its nodes have it"
        )
    codes = codes - {"device"}
    if "volume" in codes and codes <= {"volume", "selector", "toleration"}:
        return "volume", _no_volume(shape, offerings)
    if "resource" in codes:
        names = sorted({name for o in offerings for name in missing(shape, o)})
        return "resource", (
            f"asks for {' and '.join(names)}, which the nodes of no pool that it may use offer. Take it out of the "
            "pod, or list it in pools.<pool>.slices where a pool's nodes have it"
        )
    if "neighbours" in codes and shape.near is not None:
        ports = " and ".join(shape.near.ports)
        return "neighbours", f"a DaemonSet has host port {ports} on the nodes that it could use: take another port"
    if codes <= {"selector"}:
        return "selector", "no pool's labels match the pod's node selector or affinity; mend the selector or add a pool"
    if codes <= {"selector", "toleration"}:
        return "toleration", (
            "label/toleration mismatch: the pod does not tolerate the taint of any pool it selects; add the toleration"
        )
    if codes & {"class", "spot"}:
        return "class", f"the rules of class {shape.workload_class} leave no pool for it"
    return "no-pool", f"no pool has a node that can hold {shape.gpu} with the pod's other needs"


def unpriced_pool(shape: PodShape, policy: Policy, offerings: Sequence[Offering]) -> str:
    """Why a shape that no offering's labels and taints let in has no pool: there is none, or its pool has no price."""
    if not policy.pools:
        return "the policy has no pools: pilotlight init writes those of a cluster"
    sold = {offering.pool for offering in offerings}
    for name, pool in policy.pools.items():
        if name in sold or untolerated_taint(but_home(pool.taints), shape.tolerations) is not None:
            continue
        known = {POOL: name, OS: "linux", INSTANCE_TYPE: pool.instance_type, CAPACITY_TYPE: pool.capacity_type}
        known |= pool.labels
        if selects(known, [[r for r in term if r.key in known or r.key not in _OF_TYPE] for term in shape.terms]):
            return (
                f"pool {name} may take it, but no price of its type {pool.instance_type} is known: add the type to a "
                "file of prices.files, or, where a file has it, set "
                f'prices.overrides["{pool.instance_type}/{pool.capacity_type}"]'
            )
    return "" if sold else "no price of any pool is known: add the pools' types to a file of prices.files"


def _no_volume(shape: PodShape, offerings: Sequence[Offering]) -> str:
    found = next(words for o in offerings if (words := beyond_reach(shape, o)))
    where, _, fix = found.partition("; ")
    mend = fix or "add a pool there, or give the pod a volume that the pools' nodes can have"
    return f"no pool has nodes for it: {where}; {mend}"


def beyond_reach(shape: PodShape, offering: Offering) -> str:
    """Why a volume of the pod cannot be had on an offering's nodes, or empty."""
    wrong = next((terms for terms in shape.reach if not selects(offering.labels, terms)), None)
    if wrong is None:
        return ""
    keys = {r.key for term in wrong for r in term}
    unknown = ZONE in keys and ZONE not in offering.labels
    fix = f"; the pool's zone is not known: set pools.{offering.pool}.zones" if unknown else ""
    if NODE_NAME in keys:
        fix = "; where that node is gone, take the annotation volume.kubernetes.io/selected-node off its claim"
    return f"a volume of the pod can be had only where {_said(wrong)}{fix}"


def _said(terms: Sequence[Sequence[Requirement]]) -> str:
    """Terms as people read them, at most a few: "topology.kubernetes.io/zone is us-east-1a or us-east-1b"."""
    words = [
        " and ".join(
            f"{r.key} is {' or '.join(r.values[:MOST])}" if r.operator == "In" else f"{r.key} {r.operator}" for r in t
        )
        for t in terms[:MOST]
    ]
    return ", or ".join(words)


def offered_gpus(offering: Offering) -> str:
    """The GPU resources of an offering's nodes, in words."""
    own = [offering.resource] if offering.devices else []
    return " and ".join(resource_in_words(one) for one in (*own, *sorted(offering.slices))) or "no GPU to pods"


def resource_in_words(resource: str) -> str:
    """A resource in words."""
    return f"{resource.removeprefix(CLAIMED)} by claim" if resource.startswith(CLAIMED) else resource


def missing(shape: PodShape, offering: Offering) -> list[str]:
    """The resources beside GPUs, CPU, memory and disk that a pod asks for and no node of an offering has."""
    have = {*offering.slices, *dict(offering.resources.other)}
    return [name for name, _ in shape.other if name not in have and not unlisted_amount(name)]


def say_which_gpu(workload_class: str) -> str:
    """The way out for a pod that names no GPU, of a class that may not be guessed for."""
    return (
        f"say which GPU: a {workload_class} pod that names none is not guessed for; set the annotation "
        f"pilotlight.dev/gpu-models, a node selector, or classes.{workload_class}.gpu_models"
    )


def other_gpus(shape: PodShape, offering: Offering) -> str:
    """The GPUs of an offering beside those that a pod asks for, in words."""
    return f"its nodes offer {offered_gpus(offering)}, the pod asks for {resource_in_words(shape.gpu.resource)}"
