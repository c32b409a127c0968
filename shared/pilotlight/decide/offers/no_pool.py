"""Why a pod can never run on an offering, or on none of them, and the way out."""

from collections.abc import Sequence

from pilotlight.decide.fit.fit import model_allowed, pods_that_fit
from pilotlight.facts.capacity import Offering
from pilotlight.facts.fit.claimed_devices import CLAIMED
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.labels import ZONE
from pilotlight.facts.place.pod_verdicts import Code
from pilotlight.facts.workload import PodShape, Requirement, clash, unlisted_amount

MOST = 4
"""So many values of a label, and so many alternatives, are said at most."""


def misfit(shape: PodShape, offering: Offering) -> tuple[Code, str] | None:
    """Why a shape can never run on an offering, as (code, reason), or None."""
    if not _offers(offering, shape.gpu.resource):
        return (
            "device",
            f"its nodes offer {offered_gpus(offering)}, the pod asks for {resource_in_words(shape.gpu.resource)}",
        )
    if shape.reach and (beyond := beyond_reach(shape, offering)):
        return "volume", beyond
    if not selects(offering.labels, shape.terms):
        return "selector", "the pod's node selector or affinity does not match its labels"
    taint = untolerated_taint(offering.taints, shape.tolerations)
    if taint is not None:
        return "toleration", f"the pod does not tolerate {taint.key}={taint.value}:{taint.effect}"
    if not model_allowed(shape, offering.gpu_model):
        return "model", f"{offering.gpu_model} is not one of {', '.join(shape.gpu_models)}"
    if shape.min_gpu_memory_gib and offering.gpu_memory_gib < shape.min_gpu_memory_gib:
        return "gpu-memory", f"{offering.gpu_memory_gib} GiB a GPU, the pod needs {shape.min_gpu_memory_gib}"
    if shape.other and (lacks := missing(shape, offering)):
        return "resource", f"its nodes offer no {' and no '.join(lacks)} (pools.{offering.pool}.slices)"
    if not per_node(shape, offering):
        ports = shape.near.ports if shape.near is not None else ()
        if ports and clash(offering.resources.ports, ports):
            return "neighbours", f"a DaemonSet has host port {' or '.join(ports)} on every node of it"
        return "size", f"an empty node does not hold it ({_lack(shape, offering)})"
    return None


def per_node(shape: PodShape, offering: Offering) -> int:
    """Pods of a shape that an empty node holds."""
    return pods_that_fit(shape, offering.resource, offering.devices, offering.slices, offering.resources)


def _offers(offering: Offering, resource: str) -> bool:
    return resource in offering.slices or (resource == offering.resource and bool(offering.devices))


def _lack(shape: PodShape, offering: Offering) -> str:
    have = offering.resources
    whole = shape.gpu.resource == offering.resource
    gpus = len(offering.devices) if whole else offering.slices.get(shape.gpu.resource, 0)
    if gpus < shape.gpu.count:
        return f"needs {shape.gpu}, a node {'has' if whole else 'offers'} {gpus}"
    for name, amount in shape.other:
        if (room := dict(have.other).get(name, unlisted_amount(name))) < amount:
            return f"needs {amount} {name}, {room} allocatable"
    if shape.cpu_milli > have.cpu_milli:
        return f"needs {shape.cpu_milli / 1000:g} CPU, {have.cpu_milli / 1000:g} allocatable"
    if shape.memory > have.memory:
        return f"needs {shape.memory / 2**30:.1f} GiB of memory, {have.memory / 2**30:.1f} allocatable"
    return "too little ephemeral storage or pod slots"


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
            f"asks for {' and '.join(names)}, which the nodes of no pool that it may use offer: take it out of the "
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
    have = dict(offering.resources.other)
    return [name for name, _ in shape.other if name not in have and not unlisted_amount(name)]
