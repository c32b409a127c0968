"""Kueue's own objects, as its interface writes them: Workloads with their conditions and checks, and ResourceFlavors.

Sources: the Workload and ResourceFlavor CRDs of Kueue v0.20, v1beta1 and v1beta2.
"""

import msgspec

from pilotlight.codec.kubernetes.typed_objects import Condition, Metadata, PodSpec, Wire, WireToleration
from pilotlight.units import Seconds

GROUP = "kueue.x-k8s.io/"
"""Of what API group a Workload is Kueue's: Kubernetes has a kind of that name too."""
CHECK = "pilotlight"
"""The name of our AdmissionCheck; several have names that begin with it and a dash."""
PARKED = "pilotlight.dev/inactive-because"
"""The annotation of a Workload that we made inactive (spec.active), with the reason."""


def is_ours(check: str) -> bool:
    """True for the name of a check of ours."""
    return check == CHECK or check.startswith(f"{CHECK}-")


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
    """Admission of a workload by a ClusterQueue."""

    cluster_queue: str = ""
    pod_set_assignments: tuple[Assignment, ...] = ()


class PodSetUpdate(Wire, frozen=True):
    """What a check adds to the pods of a set."""

    name: str = ""


class AdmissionCheck(Wire, frozen=True):
    """State of an admission check: Pending, Ready, Retry or Rejected."""

    name: str = ""
    state: str = "Pending"
    pod_set_updates: tuple[PodSetUpdate, ...] = ()


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
        """True where it has its quota and waits for our admission check alone: until another's is answered, which may
        be never, a node would stand idle."""
        others = (check for check in self.status.admission_checks if not is_ours(check.name))
        ours = (check for check in self.status.admission_checks if is_ours(check.name))
        return (
            self.spec.active
            and "QuotaReserved" in self._true
            and self._true.isdisjoint(("Admitted", "Finished", "Evicted"))
            and bool(self.our_check)
            and all(check.state == "Ready" for check in others)
            and not any(check.state in ("Retry", "Rejected") for check in ours)
        )

    @property
    def our_check(self) -> str:
        """The name of the check that waits for our answer; empty where none does."""
        checks = (check for check in self.status.admission_checks if check.state == "Pending")
        return next((c.name for c in checks if is_ours(c.name)), "")

    @property
    def queue(self) -> str:
        """The ClusterQueue whose quota it has; empty without quota."""
        return self.status.admission.cluster_queue if self.status.admission else ""

    @property
    def is_pinned(self) -> bool:
        """True where what an earlier answer added to its pods is still on our check: Kueue's reset leaves that."""
        return any(check.pod_set_updates for check in self.status.admission_checks if check.name == self.our_check)

    @property
    def turn(self) -> str:
        """The name of this reservation of its quota, where it holds one and a check of ours is on it; else empty."""
        checks = (c for c in self.status.admission_checks if is_ours(c.name))
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
