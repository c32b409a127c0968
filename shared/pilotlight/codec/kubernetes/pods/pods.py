"""Pods that wait to facts: a demand, a finding, or nothing."""

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache

import msgspec

from pilotlight.codec.kubernetes import bounds
from pilotlight.codec.kubernetes.bounds import Unreadable, whole_name
from pilotlight.codec.kubernetes.companions import DaemonSet, Objects
from pilotlight.codec.kubernetes.pods import pod_bounds
from pilotlight.codec.kubernetes.pods.claimants import Claimants
from pilotlight.codec.kubernetes.pods.near import host_ports
from pilotlight.codec.kubernetes.pods.pod_groups import GANG_ANNOTATIONS, gang_key
from pilotlight.codec.kubernetes.pods.pod_placement import Terms, homes, pod_terms, tolerations
from pilotlight.codec.kubernetes.pods.requests import (
    Asked,
    gpu_request,
    other_resources,
    read_request,
    whole_units,
)
from pilotlight.codec.kubernetes.pods.volumes import attached_volumes, claims_of, reach_of
from pilotlight.codec.kubernetes.typed_objects import Container, OwnerReference, Pod, WireToleration
from pilotlight.facts import labels
from pilotlight.facts.capacity import Daemon
from pilotlight.facts.labels import CHECKPOINT_S, CHECKPOINT_TAKES_S
from pilotlight.facts.workload import (
    NO_GPU,
    Due,
    Finding,
    Gang,
    Near,
    PodDemand,
    PodShape,
    Requirement,
    is_gpu,
    shape,
)

MIRROR, DAEMONS = "kubernetes.io/config.mirror", "DaemonSet"
DEFAULT_SCHEDULER = ("", "default-scheduler")
"""Names under which pods leave themselves to the cluster's own scheduler."""
_SAYS = frozenset(
    (
        *(CHECKPOINT_S, CHECKPOINT_TAKES_S, labels.CHECKPOINTED_AT, MIRROR, *GANG_ANNOTATIONS),
        *(labels.WORKLOAD_CLASS[0], labels.GPU_SHARE, labels.DEADLINE, labels.WORK),
        *(labels.GPU_MODELS, labels.MIN_GPU_MEMORY),
    )
)
"""Annotations by which a pod says something."""
ANY_MODEL: Terms = ((Requirement(key=labels.GPU_MODEL, operator="Exists"),),)
"""The annotation's "any": every model will do, as long as the node has one."""


def waits(pod: Pod) -> bool:
    """True where a node could help: not finished, deleted, placed, mirrored or a DaemonSet's."""
    return not (pod.is_finished or pod.metadata.deletion_timestamp or pod.node or is_mirror(pod) or is_daemon(pod))


def is_daemon(pod: Pod) -> bool:
    """True where a DaemonSet made it: every node has one of its kind."""
    owner = pod.metadata.owner
    return owner is not None and owner.kind == DAEMONS


def is_mirror(pod: Pod) -> bool:
    """True where it mirrors a kubelet's static pod."""
    return MIRROR in pod.metadata.annotations


def demand_of(
    asked: Asked,
    objects: Objects,
    claims: Claimants,
    gang: Gang | None,
    *,
    require_label: bool,
    near: Near | None = None,
) -> PodDemand | Finding | None:
    """The demand of a waiting pod, a finding where no node would help, or None where it wants no GPU."""
    pod = asked.pod
    try:
        if not _wants_gpu(asked):
            return None
        _may_be_scheduled(pod, require_label)
        if gang is not None and not bounds.GANG_PODS.takes(gang.size):
            raise bounds.too_many("pods or more in its gang", gang.size, bounds.GANG_PODS)
        return _like_others(asked, objects, claims, gang, near)
    except Unreadable as problem:
        return Finding(subject=pod.name, code=problem.code, message=str(problem), uid=pod.metadata.uid)


def _wants_gpu(asked: Asked) -> bool:
    """Raises what makes the request unreadable; claims for devices that were not read are refused, never ignored."""
    if asked.problem is not None:
        raise asked.problem
    if asked.pod.spec.resource_claims and not asked.claims_read:
        raise Unreadable(
            "dra-claim",
            "asks for devices by ResourceClaim (DRA), and this look has none of resource.k8s.io/v1: buy by hand",
        )
    return asked.wants_gpu


def _may_be_scheduled(pod: Pod, require_label: bool) -> None:
    """Raise what keeps the scheduler from even trying."""
    if require_label and pod.metadata.labels.get(labels.OPT_IN[0]) != labels.OPT_IN[1]:
        key, value = labels.OPT_IN
        raise Unreadable("not-opted-in", f"has no label {key}={value}, which require_label asks for: add it to opt in")
    scheduled = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
    reason = scheduled.reason if scheduled is not None and scheduled.status == "False" else ""
    if scheduled is None and pod.spec.scheduler_name not in DEFAULT_SCHEDULER:
        who = pod.spec.scheduler_name
        raise Unreadable("scheduler-silent", f"is for scheduler {who}, which has said nothing of it: see that it runs")
    gates = ", ".join(gate.get("name", "?") for gate in pod.spec.scheduling_gates)
    if gates or reason == "SchedulingGated":
        held = gates or "(unnamed)"
        raise Unreadable("scheduling-gated", f"is held by scheduling gate {held}: it waits for that, not a node")
    if own := pod.metadata.annotations.get(labels.OWN_REQUEST):
        raise Unreadable("own-request", f"waits for the nodes of ProvisioningRequest {own}: nothing is bought for it")
    if reason not in ("", "Unschedulable"):
        raise Unreadable("scheduler-error", f"the scheduler reports {reason}: see the pod's events")


def _like_others(asked: Asked, objects: Objects, claims: Claimants, gang: Gang | None, near: Near | None) -> PodDemand:
    """A pod's demand; of pods that say the same, worked out once."""
    pod, meta, spec = asked.pod, asked.pod.metadata, asked.pod.spec
    alike = None if near or spec.affinity or claims_of(pod) else of_template(asked)
    if alike is None or spec.init_containers or spec.topology_spread_constraints or spec.host_network:
        return _demand(asked, reach_of(pod, objects), objects, claims, gang, near)
    where = id(spec.tolerations), tuple(spec.node_selector.items()), spec.scheduler_name, spec.preemption_policy
    alike = (*alike, *where, len(spec.volumes), id(gang))
    known = claims.waiting.get(alike)
    if known is None:
        made = _demand(asked, (), objects, claims, gang, near)
        if not made.refused:
            claims.waiting[alike] = asked, made
        return made
    claims.grant(pod)
    changes = {"uid": meta.uid or pod.name, "name": meta.name, "created_at": meta.created_at, "said": _said(pod)}
    return msgspec.structs.replace(known[1], **changes)


def of_template(asked: Asked) -> tuple[Hashable, ...] | None:
    """What a pod says alike with others of its template, told by the parts that they share; None where it says more."""
    pod, spec, meta, owner = asked.pod, asked.pod.spec, asked.pod.metadata, asked.pod.metadata.owner
    if owner is None or asked.problem or asked.claimed or spec.resource_claims or spec.scheduling_group:
        return None
    for status in pod.status.container_statuses:
        if status.restart_count:
            return None
    said: Hashable = None
    if not _SAYS.isdisjoint(meta.annotations):
        if names_deadline(pod):
            return None
        said = tuple([(name, text) for name, text in meta.annotations.items() if name in _SAYS])
    parts = id(spec.containers), id(meta.labels), id(asked.request), id(asked.gpu)
    limits = spec.priority, spec.active_deadline_seconds, spec.termination_grace_period_seconds
    return *parts, meta.namespace, owner.kind, owner.name, *limits, said


def _demand(
    asked: Asked, reach: Sequence[Terms], objects: Objects, claims: Claimants, gang: Gang | None, near: Near | None
) -> PodDemand:
    pod, request, meta = asked.pod, asked.request, asked.pod.metadata
    pod_bounds.refuse(pod)
    pod_bounds.amounts(request)
    terms = pod_terms(pod, reach)
    models = _models(meta.annotations)
    if models == ("any",):
        models = ()
        terms = tuple((*term, *ANY_MODEL[0]) for term in terms) or ANY_MODEL
    said = claims.settle(asked)
    gpu = asked.gpu if asked.claimed is None else gpu_request(request, meta.annotations.get(labels.GPU_SHARE))
    return PodDemand(
        uid=meta.uid or pod.name,
        namespace=meta.namespace,
        name=meta.name,
        created_at=meta.created_at,
        said=_said(pod),
        scheduler=pod.spec.scheduler_name if pod.spec.scheduler_name not in DEFAULT_SCHEDULER else "",
        refused=said.refused,
        owner=owner_name(meta.owner),
        image=image_of(asked),
        shape=shape(
            gpu=gpu or NO_GPU,
            claimed=asked.claimed,
            cpu_milli=whole_units(request.get("cpu", 0), 1000),  # type: ignore[arg-type]
            memory=whole_units(request.get("memory", 0)),  # type: ignore[arg-type]
            ephemeral=whole_units(request.get("ephemeral-storage", 0)),  # type: ignore[arg-type]
            other=(*other_resources(request, gpu), *sorted(attached_volumes((pod,), objects).items())),
            terms=terms,
            reach=tuple(reach),
            tolerations=tolerations(pod.spec.tolerations),
            gpu_models=models,
            min_gpu_memory_gib=pod_bounds.gib(meta.annotations),
            workload_class=said.workload_class,
            class_reason=said.class_reason[: bounds.SAID],
            team=said.team,
            priority=said.priority,
            max_run_s=pod_bounds.run_s(pod.spec),
            checkpoint_s=pod_bounds.seconds(meta.annotations, CHECKPOINT_S),
            gang=gang,
            near=near,
            due=_due(pod, said.workload_class, gang=bool(gang or gang_key(pod))),
        ),
        grace_s=pod_bounds.grace_s(pod.spec),
        checkpoint_takes_s=pod_bounds.seconds(meta.annotations, CHECKPOINT_TAKES_S),
        never_preempts=pod.spec.preemption_policy == "Never",
        homes=homes(pod.spec.tolerations),
    )


def _said(pod: Pod) -> str:
    """Message that the scheduler last gave of it, or its beginning."""
    said = (c.message for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "False")
    return next(said, "")[: bounds.SAID]


def _due(pod: Pod, workload_class: str, *, gang: bool) -> Due | None:
    if not names_deadline(pod):
        return None
    from pilotlight.codec.kubernetes.pods.pod_deadline import due_of

    return due_of(pod, workload_class, gang=gang)


def names_deadline(pod: Pod) -> bool:
    """True where it says by when its work is to be done, or how much that is."""
    return labels.DEADLINE in pod.metadata.annotations or labels.WORK in pod.metadata.annotations


def other_demand(asked: Asked, objects: Objects, claims: Claimants) -> PodDemand | None:
    """The demand of a pod that wants no GPU and that the scheduler finds no node for; None for any other."""
    said = (c for c in asked.pod.status.conditions if c.type == "PodScheduled" and c.status == "False")
    unschedulable = any(c.reason == "Unschedulable" for c in said)
    if asked.holds_gpu or not waits(asked.pod) or not unschedulable:
        return None
    try:
        none = asked._replace(gpu=NO_GPU)
        return _demand(none, reach_of(asked.pod, objects), objects, claims, None, None)
    except Unreadable:
        return None


def pod_of_daemons(daemons: DaemonSet) -> Pod:
    """Pod of a DaemonSet, by the DaemonSet's name."""
    template = daemons.spec.template
    spec = msgspec.structs.replace(template.spec, tolerations=(*template.spec.tolerations, *_DAEMONS_BEAR))
    return Pod(metadata=msgspec.structs.replace(daemons.metadata, labels=template.metadata.labels), spec=spec)


def daemon_of(pod: Pod, claims: Claimants, near: Near | None) -> Daemon | None:
    """Room that a DaemonSet's pod takes of a node, and its relations; None where it cannot be read."""
    asked = read_request(pod)
    if asked.problem is not None:
        return None
    whole = asked if asked.gpu else asked._replace(gpu=NO_GPU)
    ports = host_ports(pod)
    near = near or (Near(ports=ports) if ports else None)
    try:
        return Daemon(name=pod.name, takes=_demand(whole, (), Objects(), claims, None, near).shape)
    except Unreadable:
        return None


_DAEMONS_BEAR = tuple(
    WireToleration(key=f"node.kubernetes.io/{name}", operator="Exists")
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)


def owner_name(owner: OwnerReference | None) -> str:
    """An owner as "Job/train"; empty where there is none."""
    return whole_name(f"{owner.kind}/{owner.name}") if owner else ""


def image_of(asked: Asked) -> str:
    """Image of the first container that asks for GPUs, else of the first; empty where none does, or one began again."""
    if not asked.holds_gpu or asked.pod.status.restarted:
        return ""
    every: Sequence[Container] = asked.pod.spec.containers
    if len(every) > 1:
        every = sorted(every, key=lambda c: not any(map(is_gpu, (*c.resources.limits, *c.resources.requests))))
    for container in every:
        if container.image:
            return image_name(container.image)
    return ""


@lru_cache(maxsize=8192)
def image_name(text: str) -> str:
    """An image's whole name, as kubelets list it: with its registry, and with its tag where it has no digest."""
    (name, at, digest), (host, slash, _) = text.partition("@"), text.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        name = f"docker.io/{name}" if slash else f"docker.io/library/{name}"
    if not at and ":" not in name.rpartition("/")[2]:
        name += ":latest"
    return whole_name(f"{name}{at}{digest}")


def shape_elsewhere(asked: Asked, objects: Objects, claims: Claimants) -> PodShape | None:
    """Shape that the pod would need on another node; None where it names what no other node could give."""
    try:
        return _demand(asked, reach_of(asked.pod, objects), objects, claims, None, None).shape
    except Unreadable:
        return None


def _models(annotations: Mapping[str, str]) -> tuple[str, ...]:
    text = annotations.get(labels.GPU_MODELS, "")
    models = tuple(sorted({name.strip() for name in text.split(",") if name.strip()}))
    if len(models) > bounds.MODELS.most:
        raise bounds.too_many(f"models in {labels.GPU_MODELS}", len(models), bounds.MODELS)
    if long := next((name for name in models if len(name) > bounds.NAME.most), ""):
        raise Unreadable(bounds.CODE, f"{labels.GPU_MODELS} names {bounds.quote_value(long)}: {bounds.NAME.mend}")
    return ("any",) if "any" in (m.lower() for m in models) else models
