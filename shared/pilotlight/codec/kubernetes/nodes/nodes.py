"""Nodes to facts: what is free on each, what is on it, and what would stop its drain."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pilotlight.codec.kubernetes.bounds import Unreadable, whole_name
from pilotlight.codec.kubernetes.companions import Objects
from pilotlight.codec.kubernetes.nodes.gpu_models import capacity_type, cloud_of, gpu_model, instance_id, pool_label
from pilotlight.codec.kubernetes.nodes.node_room import NodeRoom, bare_room, free_room, room_of
from pilotlight.codec.kubernetes.pods.claimants import Claimants
from pilotlight.codec.kubernetes.pods.eviction_blocks import blocks_drain
from pilotlight.codec.kubernetes.pods.pods import image_name, is_daemon
from pilotlight.codec.kubernetes.pods.pods_on_nodes import bound_pod
from pilotlight.codec.kubernetes.pods.requests import Asked, other_resources
from pilotlight.codec.kubernetes.pods.volumes import attach_limits, attached_volumes
from pilotlight.codec.kubernetes.typed_objects import Condition, ImageThere, KubeNode, Pod
from pilotlight.facts import labels
from pilotlight.facts.capacity import Node
from pilotlight.facts.fit.claimed_devices import DeviceKind
from pilotlight.facts.interruption.notice_kinds import CONDITIONS, SHUTDOWN, SHUTTING_DOWN
from pilotlight.facts.money.gates import GATE
from pilotlight.facts.nodes.gpu_faults import OF_PROGRAMS, WHERE_FALSE, WHERE_TRUE
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import GpuRequest, is_gpu, part_of_gpu
from pilotlight.units import MILLI_PER_GPU

if TYPE_CHECKING:
    from pilotlight.codec.kubernetes.nodes.devices import OnNode


class Onboard(NamedTuple):
    """The pods of one node: those that hold a place, and those that are done."""

    live: Sequence[Asked]
    finished: Sequence[Asked]


def node_of(
    node: KubeNode, onboard: Onboard, policy: Policy, objects: Objects, claims: Claimants, on: "OnNode | None" = None
) -> Node | None:
    """A GPU node as a fact, or None for a node without GPUs. ``on`` are devices that drivers publish of it.

    A node of a known pool whose GPUs are not allocatable yet is one too, and not ready. Raises Unreadable.
    """
    meta, room, by_claim = node.metadata, room_of(node), _by_claim(on)
    if not _has_gpus(meta.labels, room, policy) and not any(is_gpu(kind.resource) for kind in by_claim.kinds):
        return None
    pool = pool_of(meta.labels, policy)
    known = policy.pools.get(pool)
    model = meta.labels.get(labels.GPU_MODEL) or gpu_model(meta.labels.get(labels.GPU_PRODUCT, ""))
    kind = capacity_type(meta.labels) or (known.capacity_type if known else "on-demand")
    ready_since = _ready_since(node)
    limits = attach_limits(meta.name, objects)
    gpus = _gpus(room, onboard, by_claim)
    pods = [bound_pod(a, objects, claims, blocks_drain(a.pod, objects), elsewhere=kind == "spot") for a in onboard.live]
    return Node(
        name=meta.name,
        pool=whole_name(pool),
        instance_type=whole_name(meta.labels.get(labels.INSTANCE_TYPE, known.instance_type if known else "")),
        capacity_type=kind,
        created_at=meta.created_at,
        ready=ready_since is not None and bool(gpus.devices or gpus.slices),
        devices=gpus.devices,
        resource=gpus.resource,
        slices=gpus.slices,
        kinds=by_claim.kinds,
        free=free_room(room, onboard.live, (*_attachable(limits, onboard, objects), *by_claim.free)),
        attachable=limits,
        labels={**meta.labels, labels.NODE_NAME: meta.name, **({labels.GPU_MODEL: model} if model else {})},
        taints=tuple(taint for taint in node.spec.taints if taint.key != labels.HOME),
        pods=tuple(pods),
        zone=whole_name(meta.labels.get(labels.ZONE, "")),
        instance=whole_name(instance_id(node.spec.provider_id)),
        cloud=whole_name(cloud_of(node.spec.provider_id)),
        schedulable=not is_closed(node),
        marked=is_marked(node),
        opened_by=whole_name(meta.annotations.get(labels.CLOSED_BY, "")) if not is_marked(node) else "",
        idle_since=_idle_since(onboard, ready_since),
        gpu_model=whole_name(model),
        ready_since=ready_since,
        room=bare_room(room, (*sorted(limits.items()), *by_claim.others)),
        home=_home(node),
        conditions=_conditions(node),
        sick=next(filter(None, map(_ill, node.status.conditions)), ""),
        images=_images(node.status.images) if node.status.images else (),
    )


def _images(there: Sequence[ImageThere]) -> tuple[str, ...]:
    """Images that a node has, each by all its names; its kubelet lists the largest 50."""
    return tuple(image_name(name) for one in there[:MOST_IMAGES] for name in one.names[:MOST_NAMES])


MOST_IMAGES, MOST_NAMES = 64, 4
"""So many images of a node are read, and so many names of each."""


class _ByClaim(NamedTuple):
    """Room that pods get of a node by claim alone: whole GPUs and parts of them, other devices free and in all."""

    kinds: tuple[DeviceKind, ...] = ()
    resource: str = ""
    devices: tuple[int, ...] = ()
    slices: Mapping[str, int] = MappingProxyType({})
    free: tuple[tuple[str, int], ...] = ()
    others: tuple[tuple[str, int], ...] = ()


def _by_claim(on: "OnNode | None") -> _ByClaim:
    if on is None:
        return _ByClaim()
    found = [(kind.resource, kind.count, on.free.get(kind.resource, 0)) for kind in on.kinds if not kind.plugin]
    parts = {name: free for name, _, free in found if part_of_gpu(name)}
    others = [each for each in found if not is_gpu(each[0])]
    whole = [each for each in found if is_gpu(each[0]) and not part_of_gpu(each[0])]
    name, count, free = max(whole, key=lambda each: each[1], default=("", 0, 0))
    return _ByClaim(
        kinds=on.kinds,
        resource=name,
        devices=(MILLI_PER_GPU,) * free + (0,) * (count - free),
        slices=parts,
        free=tuple((name, free) for name, _, free in others),
        others=tuple((name, count) for name, count, _ in others),
    )


def _conditions(node: KubeNode) -> tuple[str, ...]:
    """Those that say that it goes; a kubelet that shuts down in order says so in why it is not ready."""
    shown = [c.type for c in node.status.conditions if c.status == "True" and c.type in CONDITIONS]
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if ready is not None and ready.status == "False" and SHUTTING_DOWN in ready.message:
        shown.append(SHUTDOWN)
    return tuple(shown)


def is_marked(node: KubeNode) -> bool:
    """True where it carries our taint."""
    return any(taint.key == labels.DRAINING for taint in node.spec.taints)


def is_opened(node: KubeNode) -> bool:
    """True where a person took our taint off while it was being given back."""
    return labels.CLOSED_BY in node.metadata.annotations and not is_marked(node)


def _home(node: KubeNode) -> str:
    """Home that it is kept for; one without a value is ``NEW_HOME``, for no pod is given it either."""
    found = {taint.effect: taint.value for taint in node.spec.taints if taint.key == labels.HOME}
    if "NoExecute" in found:
        return labels.ODD_HOME
    return found["NoSchedule"] or labels.NEW_HOME if "NoSchedule" in found else ""


def is_closed(node: KubeNode) -> bool:
    """True where it takes no new pods: by our taint, or cordoned by somebody."""
    return node.spec.unschedulable or is_marked(node)


def is_gpu_node(node: KubeNode, policy: Policy) -> bool:
    """True where a node matters: ``node_of`` makes a fact of it, or cannot read it."""
    try:
        return _has_gpus(node.metadata.labels, room_of(node), policy)
    except Unreadable:
        return True


def _has_gpus(node_labels: Mapping[str, str], room: NodeRoom, policy: Policy) -> bool:
    return room.has_gpus or pool_of(node_labels, policy) in policy.pools or labels.GPU_PRODUCT in node_labels


def pool_of(node_labels: Mapping[str, str], policy: Policy) -> str:
    """The policy's name of a node's pool, else the cloud's, else empty."""
    name = pool_label(node_labels)
    if name in policy.pools:
        return name
    called = (name, f"{GATE}{name}")
    return next((ours for ours, pool in policy.pools.items() if name and pool.cluster_pool in called), name)


def _ill(condition: Condition) -> str:
    """Words of a condition that says GPUs are ill, or nothing; XIDs that programs cause are no illness."""
    bad = condition.type in (WHERE_TRUE if condition.status == "True" else WHERE_FALSE)
    if not bad or condition.status == "Unknown":
        return ""
    xids = {int(found) for found in re.findall(_XID, f"{condition.reason} {condition.message}")}
    if xids and xids <= OF_PROGRAMS:
        return ""
    said = f"{condition.reason}: {condition.message}".strip(": ")
    return f"{condition.type} is {condition.status}" + (f" ({said[:MOST_SAID]})" if said else "")


_XID = r"(?i)xid\s*(?:\([^)]*\)\s*)?:?\s*(\d+)"
NOT_READY = "node.kubernetes.io/not-ready"
"""The key of a taint that Kubernetes puts on a node that is not Ready, and takes off a moment after it is."""
MOST_SAID = 160
"""Characters of what a condition says."""


def _ready_since(node: KubeNode) -> datetime | None:
    """When it became Ready; None where it is not, or where the taint that says so still keeps pods off it."""
    if any(taint.key == NOT_READY for taint in node.spec.taints):
        return None
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if ready is None or ready.status != "True":
        return None
    return ready.last_transition_time or node.metadata.created_at


def _idle_since(onboard: Onboard, ready_since: datetime | None) -> datetime | None:
    """When the node fell idle: its last GPU pod's end, or when it became ready; None while one works there."""
    if any(a.holds_gpu and not is_daemon(a.pod) for a in onboard.live):
        return None
    ends = [end for a in onboard.finished if a.gpu and (end := _end(a.pod))]
    return max([*ends, *([ready_since] if ready_since else [])], default=None)


def _end(pod: Pod) -> datetime | None:
    ends = [s.state.terminated.finished_at for s in pod.status.container_statuses if s.state.terminated]
    return max((end for end in ends if end), default=None)


class _Gpus(NamedTuple):
    """GPUs of a node by plugin and by claim: free thousandths of the whole ones, free counts of the others."""

    resource: str
    devices: tuple[int, ...]
    slices: dict[str, int]


def _gpus(room: NodeRoom, onboard: Onboard, by_claim: _ByClaim) -> _Gpus:
    holding = [a for a in onboard.live if a.holds_gpu]
    return _Gpus(
        resource=room.resource if room.whole else by_claim.resource or room.resource,
        devices=_free_devices(room.resource, room.whole, holding) or by_claim.devices,
        slices={**_free_slices(room.slices, holding), **by_claim.slices},
    )


def _free_devices(resource: str, count: int, holding: Sequence[Asked]) -> tuple[int, ...]:
    """Free thousandths of each device: whole requests first, then shares on the fullest device with room.

    Which device a pod holds is not in the API: this packing is the best that can be true.
    """
    used, parts = 0, list[int]()
    for asked in holding:
        gpu = _held(asked, resource, count)
        if gpu.resource == resource and gpu.milli == MILLI_PER_GPU:
            used += gpu.count
        elif gpu.resource == resource and gpu.milli < MILLI_PER_GPU:
            parts.append(gpu.milli)
    whole = min(count, used)
    free = [0] * whole + [MILLI_PER_GPU] * (count - whole)
    for part in sorted(parts, reverse=True):
        fitting = [room for room in free if room >= part]
        if fitting:
            free[free.index(min(fitting))] -= part
    return tuple(free)


def _held(asked: Asked, resource: str, count: int) -> GpuRequest:
    """Request that a pod on a node holds; one that cannot be read holds all."""
    return asked.gpu or GpuRequest(count=max(1, count), resource=resource)


def _free_slices(slices: Mapping[str, int], holding: Sequence[Asked]) -> dict[str, int]:
    if not slices:
        return {}
    used = Counter[str]()
    for asked in holding:
        if asked.gpu:
            used.update({asked.gpu.resource: asked.gpu.count, **dict(other_resources(asked.request, asked.gpu))})
    return {name: max(0, count - used[name]) for name, count in slices.items()}


def _attachable(limits: Mapping[str, int], onboard: Onboard, objects: Objects) -> tuple[tuple[str, int], ...]:
    """Number of volumes more that it takes, by driver."""
    used = attached_volumes((a.pod for a in onboard.live), objects) if limits else {}
    return tuple((name, max(0, count - used.get(name, 0))) for name, count in sorted(limits.items()))
