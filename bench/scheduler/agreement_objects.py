"""Objects that pod shapes are made of: pods, nodes, and the terms of affinity and spread between them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from agreement_bed import ONLY, POOLS

Object = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
BEAR: Object = {"key": ONLY["key"], "operator": "Exists"}
ONE_ZONE: Object = {"one": {**POOLS["one"], "zones": ["zone-a"]}}
TWO_ZONES: Object = {"one": {**POOLS["one"], "zones": ["zone-a", "zone-b"]}}
FOUR: Object = {"four": {**POOLS["four"], "zones": ["zone-a"]}}


class Shape(NamedTuple):
    """Pods that wait, beside what is there.

    ``there`` is made first: namespaces, classes, nodes, pods with a node of their own.
    ``pools`` are what can be bought. ``alone``: its pods choose no nodes of their own, so that it sees the others'.
    ``claims``: a driver publishes the devices of nodes, and no device plugin runs.
    """

    family: str
    name: str
    pods: Sequence[Object]
    there: Sequence[Object] = ()
    pools: Object = POOLS
    alone: bool = False
    claims: bool = False


def pod(name: str, gpus: Any = 1, *, labels: Any = None, node: str = "", **spec: Any) -> Object:
    """A pod of one container that asks for GPUs; ``requests``, ``limits``, ``ports`` are its container's."""
    limits = {**({"nvidia.com/gpu": str(gpus)} if gpus else {}), **spec.pop("limits", {})}
    resources = {"limits": limits, "requests": {"cpu": "100m", **spec.pop("requests", {})}}
    container = {"name": "main", "image": "example.invalid/x", "resources": resources, "ports": spec.pop("ports", [])}
    meta: Object = {"name": name, "labels": labels or {}}
    if "namespace" in spec:
        meta["namespace"] = spec.pop("namespace")
    bears = [BEAR, *spec.pop("tolerations", [])]
    place = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], "tolerations": bears, "terminationGracePeriodSeconds": 0, **place, **spec},
    }


def pods(count: int, gpus: Any = 1, **rest: Any) -> list[Object]:
    """Pods alike."""
    return [pod(f"p{n}", gpus, **rest) for n in range(count)]


def node(name: str, zone: str = "zone-a", *, labels: Object | None = None, taints: Any = (), **room: str) -> Object:
    """A node without GPUs that is there; ``room`` is added to it."""
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: zone, **(labels or {})}},
        "room": {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", **room},
        "taints": list(taints),
    }


def other(kind: str, name: str, **rest: Any) -> Object:
    """Any other object."""
    version = {
        "StorageClass": "storage.k8s.io/v1",
        "CSINode": "storage.k8s.io/v1",
        "DaemonSet": "apps/v1",
        "PriorityClass": "scheduling.k8s.io/v1",
        "RuntimeClass": "node.k8s.io/v1",
    }.get(kind, "v1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **rest.pop("meta", {})}, **rest}


def required(*terms: Object) -> Object:
    """Required node affinity of any of some terms."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expr(key: str, operator: str, *values: str) -> Object:
    """One expression."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def term(*expressions: Object) -> Object:
    """A term of expressions."""
    return {"matchExpressions": list(expressions)}


def near(kind: str, topology: str, selector: Object | None, **rest: Any) -> Object:
    """Required pod affinity ("podAffinity") or anti-affinity ("podAntiAffinity")."""
    one = {"topologyKey": topology, **({"labelSelector": selector} if selector is not None else {}), **rest}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [one]}}


def app(value: str) -> Object:
    """A selector of one label."""
    return {"matchLabels": {"app": value}}


def spread(topology: str, selector: Object, **rest: Any) -> Object:
    """A topology spread constraint that forbids."""
    return {
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "topologyKey": topology,
        "labelSelector": selector,
        **rest,
    }
