"""Kueue Workloads: the pods of work that has its quota and no pods yet, and how long admitted work may run.

A Workload that waits for quota is not helped by a node. One that has its quota while our admission check is pending is
demand: its job is suspended, so that no pod tells of it. Sources: the Workload CRD of Kueue v0.20, v1beta1 and v1beta2;
https://kueue.sigs.k8s.io/docs/concepts/workload/ for the label of a job's longest run.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from pilotlight.codec.kubernetes.bounds import COMING_PODS, too_many
from pilotlight.codec.kubernetes.typed_objects import (
    Condition,
    Metadata,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    Wire,
    WireToleration,
)
from pilotlight.facts.labels import GANG, GANG_SIZE
from pilotlight.facts.workload import Finding, Queued, QueuedSet, Reserving
from pilotlight.units import Seconds

GROUP = "kueue.x-k8s.io/"
"""Of what API group a Workload is Kueue's: Kubernetes has a kind of that name too."""
CHECK = "pilotlight"
"""The name of our AdmissionCheck; several have names that begin with it and a dash."""

MAX_EXEC = "kueue.x-k8s.io/max-exec-time-seconds"
_OWN_WORKLOAD = "kueue.x-k8s.io/workload"
_JOB_NAMES = ("jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name", "kueue.x-k8s.io/pod-group-name")
"""Labels of pods that name the job, where their owner is a part of it."""


class TemplateMetadata(Wire, frozen=True):
    """Labels and annotations of every pod of a set."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Template(Wire, frozen=True):
    """A pod as it will be made."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: PodSpec = PodSpec()


class PodSet(Wire, frozen=True):
    """So many pods alike."""

    template: Template
    name: str = "main"
    count: int = 1


class WorkloadSpec(Wire, frozen=True):
    """Spec of queued work."""

    pod_sets: tuple[PodSet, ...] = ()
    queue_name: str = ""
    active: bool = True
    priority: int = 0
    maximum_execution_time_seconds: float = 0


class Assignment(Wire, frozen=True):
    """Quota that a pod set was given: the flavor of each resource, for how many pods."""

    name: str = "main"
    count: int | None = None
    flavors: dict[str, str] = msgspec.field(default_factory=dict)


class Admission(Wire, frozen=True):
    """Admission of a workload."""

    pod_set_assignments: tuple[Assignment, ...] = ()


class AdmissionCheck(Wire, frozen=True):
    """State of an admission check: Pending, Ready, Retry or Rejected."""

    name: str = ""
    state: str = "Pending"


class WorkloadStatus(Wire, frozen=True):
    """Status of a workload. The first spelling of the time it ran before is v1beta1's."""

    conditions: tuple[Condition, ...] = ()
    admission: Admission | None = None
    admission_checks: tuple[AdmissionCheck, ...] = ()
    accumulated_past_exexcution_time_seconds: float = 0
    accumulated_past_execution_time_seconds: float = 0


class WorkloadMetadata(Metadata, frozen=True):
    """With the version of the object, over which an answer is written."""

    resource_version: str = ""


class Workload(Wire, frozen=True):
    """A Workload of Kueue."""

    metadata: WorkloadMetadata
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    @property
    def wants_nodes(self) -> bool:
        """True where it has its quota and waits for our admission check."""
        states = [check.state for check in self.status.admission_checks]
        return (
            self.spec.active
            and "QuotaReserved" in self._true
            and self._true.isdisjoint(("Admitted", "Finished", "Evicted"))
            and bool(self.our_check)
            and not {"Retry", "Rejected"}.intersection(states)
        )

    @property
    def our_check(self) -> str:
        """The name of the check that waits for our answer; empty where none does."""
        checks = (check for check in self.status.admission_checks if check.state == "Pending")
        return next((c.name for c in checks if c.name == CHECK or c.name.startswith(f"{CHECK}-")), "")

    @property
    def turn(self) -> str:
        """The name of this reservation of its quota, where it holds one and a check of ours is on it; else empty."""
        checks = (c for c in self.status.admission_checks if c.name == CHECK or c.name.startswith(f"{CHECK}-"))
        over = {"Finished", "Evicted"} & self._true
        if over or not self.spec.active or all(c.state in ("Retry", "Rejected") for c in checks):
            return ""
        since = (c.last_transition_time for c in self.status.conditions if c.type == "QuotaReserved")
        at = next((f"{t:%Y%m%dT%H%M%S}" if t else "0" for t in since), "") if "QuotaReserved" in self._true else ""
        return f"{self.metadata.uid or self.metadata.name}-{at}" if at else ""

    @property
    def waits_for_quota(self) -> bool:
        """True where it is queued and has no quota yet: no node helps it."""
        return self.spec.active and self._true.isdisjoint(("QuotaReserved", "Admitted", "Finished"))

    @property
    def specs(self) -> tuple[PodSpec, ...]:
        """Specs of its pods to come, where it wants nodes."""
        return tuple(pod_set.template.spec for pod_set in self.spec.pod_sets) if self.wants_nodes else ()

    @property
    def pods(self) -> int:
        """Number of its pods, by the quota that it was given; less than none where a count is."""
        counts = [count for _, _, count in self.assignments]
        return -1 if any(count < 0 for count in counts) else sum(counts)

    @property
    def assignments(self) -> list[tuple[PodSet, Assignment, int]]:
        """Its pod sets with what quota each was given, and for how many pods."""
        admission = self.status.admission
        found = {a.name: a for a in admission.pod_set_assignments} if admission else {}
        sets = [(each, found.get(each.name, Assignment())) for each in self.spec.pod_sets]
        return [(each, given, each.count if given.count is None else given.count) for each, given in sets]

    @property
    def asks_for_gpus(self) -> bool:
        """True where any pod of it asks for a GPU, or a part of one."""
        specs = (pod_set.template.spec for pod_set in self.spec.pod_sets)
        lists = (c.resources for spec in specs for c in spec.containers)
        return any("gpu" in name or "/mig-" in name for r in lists for name in (*r.limits, *r.requests))

    @property
    def _true(self) -> set[str]:
        return {condition.type for condition in self.status.conditions if condition.status == "True"}

    @property
    def max_run_s(self) -> Seconds:
        """Seconds that it may still run; 0 where nothing limits it."""
        limit, status = self.spec.maximum_execution_time_seconds, self.status
        ran = status.accumulated_past_exexcution_time_seconds + status.accumulated_past_execution_time_seconds
        return max(1.0, limit - ran) if limit else 0.0


class FlavorSpec(Wire, frozen=True):
    """Labels and tolerations that Kueue gives the pods of a flavor."""

    node_labels: dict[str, str] = msgspec.field(default_factory=dict)
    tolerations: tuple[WireToleration, ...] = ()


class ResourceFlavor(Wire, frozen=True):
    """A ResourceFlavor of Kueue: which nodes a quota is of."""

    metadata: Metadata
    spec: FlavorSpec = FlavorSpec()


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
    found = ((w, w.turn) for w in workloads)
    return tuple(Reserving(turn=turn, namespace=w.metadata.namespace, owner=_owner(w)) for w, turn in found if turn)


def _owner(workload: Workload) -> str:
    owner = workload.metadata.owner
    return f"{owner.kind}/{owner.name}" if owner is not None else ""


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
    names = [meta.annotations.get(_OWN_WORKLOAD, ""), *(meta.labels.get(label, "") for label in _JOB_NAMES)]
    names += [owner.name for owner in meta.owner_references]
    limits = [of_jobs.get(f"{meta.namespace}/{name}", 0.0) for name in names if name]
    return min((limit for limit in (pod.spec.active_deadline_seconds, said, *limits) if limit > 0), default=0.0)


def _pods(workload: Workload, flavors: Mapping[str, ResourceFlavor]) -> Iterator[Pod]:
    for pod_set, assigned, count in workload.assignments:
        own = [flavors[name].spec for name in sorted(set(assigned.flavors.values())) if name in flavors]
        for n in range(count):
            yield _pod(workload, pod_set, n, workload.pods, own)


def _pod(workload: Workload, pod_set: PodSet, n: int, size: int, flavors: Iterable[FlavorSpec]) -> Pod:
    meta, template = workload.metadata, pod_set.template
    gang = {GANG: meta.name, GANG_SIZE: str(size)} if size > 1 else {}
    replace = msgspec.structs.replace
    spec = template.spec
    for flavor in flavors:
        spec = replace(
            spec,
            node_selector={**spec.node_selector, **flavor.node_labels},
            tolerations=(*spec.tolerations, *flavor.tolerations),
        )
    return Pod(
        metadata=Metadata(
            name=f"{meta.name}-{pod_set.name}-{n}",
            namespace=meta.namespace,
            uid=_uid(workload, pod_set, n),
            labels=template.metadata.labels,
            annotations={**template.metadata.annotations, **gang, _OWN_WORKLOAD: meta.name},
            owner_references=_owners(workload),
            creation_timestamp=meta.creation_timestamp,
        ),
        spec=replace(spec, priority=spec.priority or workload.spec.priority, scheduling_gates=(), scheduler_name=""),
        status=PodStatus(),
    )


def _owners(workload: Workload) -> tuple[OwnerReference, ...]:
    owner = workload.metadata.owner
    return (owner,) if owner is not None else ()
