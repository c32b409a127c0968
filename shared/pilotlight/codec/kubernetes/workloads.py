"""Kueue Workloads: the pods of work that has its quota and no pods yet, and how long admitted work may run.

A Workload that waits for quota is not helped by a node. One that has its quota while an admission check is pending is
demand: its job is suspended, so that no pod tells of it. Sources: the Workload CRD of Kueue v0.20, v1beta1 and v1beta2;
https://kueue.sigs.k8s.io/docs/concepts/workload/ for the label of a job's longest run.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from pilotlight.codec.kubernetes.objects import (
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
from pilotlight.units import Seconds

GROUP = "kueue.x-k8s.io/"
"""Of what API group a Workload is Kueue's: Kubernetes has a kind of that name too."""

MAX_EXEC = "kueue.x-k8s.io/max-exec-time-seconds"
_OWN_WORKLOAD = "kueue.x-k8s.io/workload"
_JOB_NAMES = ("jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name", "kueue.x-k8s.io/pod-group-name")
"""Labels of pods that name the job, where their owner is a part of it."""


class TemplateMetadata(Wire, frozen=True):
    """What is attached to every pod of a set."""

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
    """What is queued."""

    pod_sets: tuple[PodSet, ...] = ()
    active: bool = True
    priority: int = 0
    maximum_execution_time_seconds: float = 0


class Assignment(Wire, frozen=True):
    """What quota a pod set was given: the flavor of each resource, for how many pods."""

    name: str = "main"
    count: int | None = None
    flavors: dict[str, str] = msgspec.field(default_factory=dict)


class Admission(Wire, frozen=True):
    """What was admitted."""

    pod_set_assignments: tuple[Assignment, ...] = ()


class AdmissionCheck(Wire, frozen=True):
    """How far a check is: Pending, Ready, Retry or Rejected."""

    name: str = ""
    state: str = "Pending"


class WorkloadStatus(Wire, frozen=True):
    """How far it is. The first spelling of the time it ran before is v1beta1's."""

    conditions: tuple[Condition, ...] = ()
    admission: Admission | None = None
    admission_checks: tuple[AdmissionCheck, ...] = ()
    accumulated_past_exexcution_time_seconds: float = 0
    accumulated_past_execution_time_seconds: float = 0


class Workload(Wire, frozen=True):
    """A Workload of Kueue."""

    metadata: Metadata
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    @property
    def wants_nodes(self) -> bool:
        """Whether it has its quota and waits for nothing but its admission checks."""
        true = {c.type for c in self.status.conditions if c.status == "True"}
        states = [check.state for check in self.status.admission_checks]
        return (
            self.spec.active
            and "QuotaReserved" in true
            and true.isdisjoint(("Admitted", "Finished", "Evicted"))
            and "Pending" in states
            and not {"Retry", "Rejected"}.intersection(states)
        )

    @property
    def max_run_s(self) -> Seconds:
        """How long it may still run; 0 where nothing limits it."""
        limit, status = self.spec.maximum_execution_time_seconds, self.status
        ran = status.accumulated_past_exexcution_time_seconds + status.accumulated_past_execution_time_seconds
        return max(1.0, limit - ran) if limit else 0.0


class FlavorSpec(Wire, frozen=True):
    """What Kueue gives the pods of a flavor."""

    node_labels: dict[str, str] = msgspec.field(default_factory=dict)
    tolerations: tuple[WireToleration, ...] = ()


class ResourceFlavor(Wire, frozen=True):
    """A ResourceFlavor of Kueue: which nodes a quota is of."""

    metadata: Metadata
    spec: FlavorSpec = FlavorSpec()


def pods_to_come(workloads: Iterable[Workload], flavors: Mapping[str, ResourceFlavor]) -> tuple[Pod, ...]:
    """The pods of Workloads that want nodes: each set's template so many times, as one gang."""
    return tuple(pod for workload in workloads if workload.wants_nodes for pod in _pods(workload, flavors))


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
    admission = workload.status.admission
    given = {a.name: a for a in admission.pod_set_assignments} if admission else {}
    sets = [(s, given.get(s.name, Assignment())) for s in workload.spec.pod_sets]
    counts = [s.count if a.count is None else a.count for s, a in sets]
    for (pod_set, assigned), count in zip(sets, counts, strict=True):
        own = [flavors[name].spec for name in sorted(set(assigned.flavors.values())) if name in flavors]
        for n in range(count):
            yield _pod(workload, pod_set, n, sum(counts), own)


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
            uid=f"{meta.uid or meta.name}/{pod_set.name}/{n}",
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
