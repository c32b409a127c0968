"""Kueue Workloads: the pods of work that has its quota and no pods yet, and how long admitted work may run.

A Workload that waits for quota is not helped by a node. One that has its quota while our admission check is pending is
demand: its job is suspended, so that no pod tells of it. Sources: the Workload CRD of Kueue v0.20, v1beta1 and v1beta2;
https://kueue.sigs.k8s.io/docs/concepts/workload/ for the label of a job's longest run.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from pilotlight.codec.kubernetes.bounds import COMING_PODS, too_many
from pilotlight.codec.kubernetes.kueue_objects import PARKED, FlavorSpec, PodSet, ResourceFlavor, Workload, is_ours
from pilotlight.codec.kubernetes.pods.pod_groups import gang_key
from pilotlight.codec.kubernetes.typed_objects import Metadata, OwnerReference, Pod, PodStatus
from pilotlight.facts.labels import GANG, GANG_SIZE
from pilotlight.facts.workload import Finding, Parked, Queued, QueuedSet, Reserving
from pilotlight.units import Seconds

MAX_EXEC = "kueue.x-k8s.io/max-exec-time-seconds"
_OWN_WORKLOAD = "kueue.x-k8s.io/workload"
_JOB_NAMES = ("jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name", "kueue.x-k8s.io/pod-group-name")
"""Labels of pods that name the job, where their owner is a part of it."""


def planned_workloads(workloads: Iterable[Workload]) -> tuple[list[Workload], list[Finding]]:
    """The Workloads that want nodes and are planned, and what is told of those whose pods are too many.

    The smallest first: a count is an int32, and no quota holds pods that ask for nothing of it.
    """
    room = int(COMING_PODS.most)
    taken: set[tuple[str, str]] = set()
    findings: list[Finding] = []
    wanting = [workload for workload in workloads if workload.wants_nodes]
    for workload in sorted(wanting, key=lambda w: (w.pods, w.metadata.namespace, w.metadata.name)):
        meta, count = workload.metadata, workload.pods
        if 0 <= count <= room:
            room -= count
            taken.add((meta.namespace, meta.name))
            continue
        many = too_many("pods to come", count, COMING_PODS)
        findings.append(
            Finding(subject=f"{meta.namespace}/{meta.name}", code=many.code, message=f"Workload {many}", uid=meta.uid)
        )
    return [w for w in wanting if (w.metadata.namespace, w.metadata.name) in taken], findings


def pods_to_come(workloads: Iterable[Workload], flavors: Mapping[str, ResourceFlavor]) -> tuple[Pod, ...]:
    """The pods of Workloads that want nodes: each set's template so many times, as one gang."""
    return tuple(pod for workload in workloads if workload.wants_nodes for pod in _pods(workload, flavors))


def waiting_for_us(workloads: Iterable[Workload]) -> tuple[Queued, ...]:
    """The Workloads whose admission we answer."""
    return tuple(_queued(workload) for workload in workloads if workload.wants_nodes)


def reserving(workloads: Iterable[Workload]) -> tuple[Reserving, ...]:
    """The Workloads that have their quota and a check of ours, let in or not."""
    return tuple(_reserving(w, turn) for w, turn in ((w, w.turn) for w in workloads) if turn)


def parked_work(workloads: Iterable[Workload]) -> tuple[Parked, ...]:
    """The Workloads that we made inactive, in the order of their queues: by priority, then by age."""
    found = sorted((w for w in workloads if PARKED in w.metadata.annotations), key=_by_age)
    return tuple(
        Parked(
            namespace=w.metadata.namespace,
            name=w.metadata.name,
            version=w.metadata.resource_version,
            uid=w.metadata.uid,
            why=w.metadata.annotations[PARKED],
            active=w.spec.active,
        )
        for w in found
    )


def _by_age(workload: Workload) -> tuple[int, datetime, str, str]:
    meta = workload.metadata
    return -workload.spec.priority, meta.created_at, meta.namespace, meta.name


def _owner(workload: Workload) -> str:
    owner = workload.metadata.owner
    return f"{owner.kind}/{owner.name}" if owner is not None else ""


def _reserving(workload: Workload, turn: str) -> Reserving:
    meta = workload.metadata
    return Reserving(
        namespace=meta.namespace,
        name=meta.name,
        version=meta.resource_version,
        uid=meta.uid,
        turn=turn,
        check=next((c.name for c in workload.status.admission_checks if is_ours(c.name)), ""),
        queue=workload.queue,
        owner=_owner(workload),
    )


def _queued(workload: Workload) -> Queued:
    meta = workload.metadata
    sets = []
    for each, _, count in workload.assignments:
        uids = tuple(_uid(workload, each, n) for n in range(count))
        sets.append(QueuedSet(name=each.name, uids=uids, selects=tuple(each.template.spec.node_selector)))
    return Queued(
        namespace=meta.namespace,
        name=meta.name,
        version=meta.resource_version,
        check=workload.our_check,
        sets=tuple(sets),
        turn=workload.turn,
        uid=meta.uid,
        queue=workload.queue,
        pinned=workload.is_pinned,
    )


def queue_findings(workloads: Iterable[Workload]) -> Iterator[Finding]:
    """One a queue whose work waits for quota: a node would not help it."""
    waiting = Counter(
        f"{w.metadata.namespace}/{w.spec.queue_name}"
        for w in workloads
        if w.waits_for_quota and w.spec.queue_name and w.asks_for_gpus
    )
    for queue, count in sorted(waiting.items()):
        name = queue.rpartition("/")[2]
        what = f"{count} Workload{'s wait' if count > 1 else ' waits'} for quota of {name}, not for nodes"
        yield Finding(subject=f"queue {queue}", code="waits-for-quota", message=f"{what}: raise it, or wait its turn")


def _uid(workload: Workload, pod_set: PodSet, n: int) -> str:
    return f"{workload.metadata.uid or workload.metadata.name}/{pod_set.name}/{n}"


def longest_runs(workloads: Iterable[Workload]) -> dict[str, Seconds]:
    """The longest run by "namespace/job" and by "namespace/workload", of the Workloads that have a limit."""
    out: dict[str, Seconds] = {}
    for workload in workloads:
        meta = workload.metadata
        if workload.max_run_s:
            for name in (meta.name, *(owner.name for owner in meta.owner_references)):
                out[f"{meta.namespace}/{name}"] = workload.max_run_s
    return out


def longest_run_of(pod: Pod, of_jobs: Mapping[str, Seconds]) -> Seconds:
    """The least of what limits a pod's run: its own deadline, its label, its Workload; 0 where nothing does."""
    meta = pod.metadata
    if not (of_jobs or MAX_EXEC in meta.labels or MAX_EXEC in meta.annotations):
        return pod.spec.active_deadline_seconds
    text = meta.labels.get(MAX_EXEC) or meta.annotations.get(MAX_EXEC) or ""
    said = float(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0
    limits = [of_jobs.get(name, 0.0) for name in _work_names(pod)]
    return min((limit for limit in (pod.spec.active_deadline_seconds, said, *limits) if limit > 0), default=0.0)


def _work_names(pod: Pod) -> Iterator[str]:
    """What may be the Workload or the job of a pod, as "namespace/name"."""
    meta = pod.metadata
    names = [meta.annotations.get(_OWN_WORKLOAD, ""), *(meta.labels.get(label, "") for label in _JOB_NAMES)]
    yield from (f"{meta.namespace}/{name}" for name in (*names, *(o.name for o in meta.owner_references)) if name)


def sizes_in_part(workloads: Iterable[Workload]) -> dict[str, int]:
    """How many pods there will be of work that was given quota for a part, by "namespace/job" and by its Workload."""
    out: dict[str, int] = {}
    for workload in workloads:
        meta = workload.metadata
        if any(0 < given.count < each.count for each, given, _ in workload.assignments if given.count is not None):
            for name in (meta.name, *(owner.name for owner in meta.owner_references)):
                out[f"{meta.namespace}/{name}"] = workload.pods
    return out


def as_let_in(pod: Pod, sizes: Mapping[str, int]) -> Pod:
    """The pod, whose gang is as large as what was let in of it."""
    size = next((sizes[name] for name in _work_names(pod) if name in sizes), 0) if sizes else 0
    if not size or not gang_key(pod):
        return pod
    replace, meta = msgspec.structs.replace, pod.metadata
    return replace(pod, metadata=replace(meta, annotations={**meta.annotations, GANG_SIZE: str(size)}))


def _pods(workload: Workload, flavors: Mapping[str, ResourceFlavor]) -> Iterator[Pod]:
    for pod_set, assigned, count in workload.assignments:
        own = [flavors[name].spec for name in sorted(set(assigned.flavors.values())) if name in flavors]
        for n in range(count):
            yield _pod(workload, pod_set, n, workload.pods, own)


def _pod(workload: Workload, pod_set: PodSet, n: int, size: int, flavors: Iterable[FlavorSpec]) -> Pod:
    meta, template = workload.metadata, pod_set.template
    replace = msgspec.structs.replace
    spec = template.spec
    for flavor in flavors:
        spec = replace(
            spec,
            node_selector={**spec.node_selector, **flavor.node_labels},
            tolerations=(*spec.tolerations, *flavor.tolerations),
        )
    own = Metadata(
        name=f"{meta.name}-{pod_set.name}-{n}",
        namespace=meta.namespace,
        uid=_uid(workload, pod_set, n),
        labels=template.metadata.labels,
        annotations={**template.metadata.annotations, _OWN_WORKLOAD: meta.name},
        owner_references=_owners(workload),
        creation_timestamp=meta.creation_timestamp,
    )
    if size > 1 or gang_key(Pod(metadata=own, spec=spec)):  # Of a gang that was let in in part one pod may be all.
        own = replace(own, annotations={**own.annotations, GANG: meta.name, GANG_SIZE: str(size)})
    return Pod(
        metadata=own,
        spec=replace(spec, priority=spec.priority or workload.spec.priority, scheduling_gates=(), scheduler_name=""),
        status=PodStatus(),
    )


def _owners(workload: Workload) -> tuple[OwnerReference, ...]:
    owner = workload.metadata.owner
    return (owner,) if owner is not None else ()
