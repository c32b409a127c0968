"""A look without the objects that are set apart: what could not be judged counts as used, and is kept.

A waiting pod is left out: nothing is bought for it. A pod on a node stays there with its GPUs, its team and its class,
and nothing else of it is looked at. A node stays lit, has no room, and works for a pod that is nobody's. A Workload is
left out with its pods: nobody answers for it.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from msgspec.structs import replace

from pilotlight.facts.capacity import BoundPod, ClusterView, Node, Resources
from pilotlight.facts.limits.isolated_objects import NAMELESS, SetApart
from pilotlight.facts.workload import GpuRequest, Queued

_NO_ROOM = Resources(cpu_milli=0, memory=0, ephemeral=0, pods=0)


def without_judged(view: ClusterView, apart: Sequence[SetApart]) -> ClusterView:
    """The view with these objects set apart."""
    pods, nodes, works = (
        {one.name: one.degree for one in apart if one.kind == kind} for kind in ("pod", "node", "workload")
    )
    gone = pods.keys() | {
        uid for work in view.queued if _named(work) in works for each in work.sets for uid in each.uids
    }
    return replace(
        view,
        pending=tuple(pod for pod in view.pending if pod.uid not in gone),
        nodes=tuple(_node(node, pods, nodes.get(node.name, 0)) for node in view.nodes),
        queued=tuple(work for work in view.queued if _named(work) not in works),
        findings=tuple(found for found in view.findings if found.uid not in pods),
    )


def stand_in(name: str) -> str:
    """Stand-in for the name of an object whose name is not looked at; the same at every look."""
    return f"apart-{blake2b(name.encode(), digest_size=6).hexdigest()}"


def named_again(pod: BoundPod, apart: Sequence[SetApart]) -> BoundPod:
    """A pod under the name that the cluster knows it by."""
    one = next((one for one in apart if one.kind == "pod" and stand_in(one.name) == pod.uid), None)
    if one is None:
        return pod
    namespace, _, name = one.called.partition("/")
    return replace(pod, uid=one.name, namespace=namespace, name=name)


def known_as(node: str, apart: Sequence[SetApart]) -> str:
    """The name that the cluster knows a node by."""
    return next((one.name for one in apart if one.kind == "node" and stand_in(one.name) == node), node)


def kept_pod(pod: BoundPod, degree: int) -> BoundPod:
    """A pod that is not judged, with its GPUs: in doubt it has one. Whose money it is stays as it was."""
    nameless = degree >= NAMELESS
    return BoundPod(
        uid=stand_in(pod.uid) if nameless else pod.uid,
        namespace="" if nameless else pod.namespace,
        name=stand_in(pod.uid) if nameless else pod.name,
        gpu=pod.gpu or GpuRequest(count=1),
        daemonset=pod.daemonset,
        workload_class=pod.workload_class,
        team=pod.team,
        started_at=pod.started_at,
    )


def kept_node(node: Node, degree: int, degrees: Mapping[str, int]) -> Node:
    """A node that is not judged: it is lit, it works, and nothing fits on it. ``degrees`` are of pods, by uid."""
    pods = tuple(kept_pod(pod, degrees.get(pod.uid, 1)) for pod in node.pods if not pod.daemonset)
    name = stand_in(node.name) if degree >= NAMELESS else node.name
    nobody = BoundPod(uid=stand_in(node.name), namespace="", name=name, gpu=GpuRequest(count=1))
    return Node(
        name=name,
        pool=node.pool,
        instance_type=node.instance_type,
        capacity_type=node.capacity_type,
        created_at=node.created_at,
        ready=True,
        devices=(0,) * len(node.devices),
        resource=node.resource,
        free=_NO_ROOM,
        pods=pods or (nobody,),
        zone=node.zone,
        instance=node.instance or node.name,
        cloud=node.cloud,
        schedulable=node.schedulable,
        marked=node.marked,
        gpu_model=node.gpu_model,
        ready_since=node.ready_since,
    )


def _node(node: Node, pods: Mapping[str, int], degree: int) -> Node:
    if degree:
        return kept_node(node, degree, pods)
    if pods.keys().isdisjoint([pod.uid for pod in node.pods]):
        return node
    kept = tuple(kept_pod(pod, pods[pod.uid]) if pod.uid in pods else pod for pod in node.pods)
    return replace(node, pods=kept, idle_since=None)


def _named(work: Queued) -> str:
    return f"{work.namespace}/{work.name}"
