"""The objects beside pods and nodes: storage, disruption budgets, pod groups, namespaces; the fields that matter."""

from typing import TYPE_CHECKING

import msgspec

from pilotlight.codec.kubernetes.kueue_objects import ResourceFlavor, Workload
from pilotlight.codec.kubernetes.typed_objects import Metadata, NodeSelector, PodSpec, ResourceLists, Selector, Wire
from pilotlight.facts.workload import Finding

if TYPE_CHECKING:
    from pilotlight.codec.kubernetes.device_objects import Devices


class TemplateMeta(Wire, frozen=True):
    """Labels of the pods of a template."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)


class PodTemplate(Wire, frozen=True):
    """Template that pods are made from."""

    metadata: TemplateMeta = TemplateMeta()
    spec: PodSpec = PodSpec()


class DaemonSetSpec(Wire, frozen=True):
    """Its pods."""

    template: PodTemplate = PodTemplate()


class DaemonSet(Wire, frozen=True):
    """A DaemonSet: a pod of it belongs on every node that its template allows."""

    metadata: Metadata
    spec: DaemonSetSpec = DaemonSetSpec()


class ClaimSpec(Wire, frozen=True):
    """Storage that a claim asks for."""

    storage_class_name: str | None = None
    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    resources: ResourceLists = ResourceLists()
    selector: Selector | None = None


class ClaimStatus(Wire, frozen=True):
    """Phase of a claim: it has its volume, waits for one, or lost it."""

    phase: str = "Pending"


class VolumeClaim(Wire, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: Metadata
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class VolumeAffinity(Wire, frozen=True):
    """From where a volume can be reached."""

    required: NodeSelector | None = None


class ClaimRef(Wire, frozen=True):
    """Whose a volume is."""

    name: str = ""
    namespace: str = ""


class CsiSource(Wire, frozen=True):
    """The driver of a volume."""

    driver: str = ""


class PersistentVolumeSpec(Wire, frozen=True):
    """Its reach, and whose it is or may become."""

    node_affinity: VolumeAffinity | None = None
    storage_class_name: str = ""
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    capacity: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    claim_ref: ClaimRef | None = None
    csi: CsiSource | None = None


class PersistentVolumeStatus(Wire, frozen=True):
    """Phase of a volume, such as Available; empty where it is not said."""

    phase: str = ""


class PersistentVolume(Wire, frozen=True):
    """A PersistentVolume."""

    metadata: Metadata
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class LabelExpression(Wire, frozen=True):
    """One label, and the values it may have."""

    key: str
    values: tuple[str, ...] = ()


class Attachable(Wire, frozen=True):
    """Number of volumes that can be attached; None is no limit that is known."""

    count: int | None = None


class NodeDriver(Wire, frozen=True):
    """A driver on a node."""

    name: str
    allocatable: Attachable | None = None


class CsiNodeSpec(Wire, frozen=True):
    """The drivers of a node."""

    drivers: tuple[NodeDriver, ...] = ()


class CsiNode(Wire, frozen=True):
    """A CSINode: it has the name of its node."""

    metadata: Metadata
    spec: CsiNodeSpec = CsiNodeSpec()


class Topology(Wire, frozen=True):
    """Labels that must all hold where a volume is made."""

    match_label_expressions: tuple[LabelExpression, ...] = ()


class StorageClass(Wire, frozen=True):
    """A StorageClass."""

    metadata: Metadata
    volume_binding_mode: str = "Immediate"
    provisioner: str = ""
    allowed_topologies: tuple[Topology, ...] = ()


class CsiDriverSpec(Wire, frozen=True):
    """Whether the scheduler looks at the room that a driver tells."""

    storage_capacity: bool | None = None


class CsiDriver(Wire, frozen=True):
    """A CSIDriver."""

    metadata: Metadata
    spec: CsiDriverSpec = CsiDriverSpec()


class StorageCapacity(Wire, frozen=True):
    """A CSIStorageCapacity: the room for volumes of a class where a driver reaches; no ``node_topology`` is nowhere."""

    metadata: Metadata
    storage_class_name: str = ""
    node_topology: Selector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class BudgetSpec(Wire, frozen=True):
    """Whom a PodDisruptionBudget covers."""

    selector: Selector | None = None


class BudgetStatus(Wire, frozen=True):
    """Number of pods that may go now."""

    disruptions_allowed: int = 0


class DisruptionBudget(Wire, frozen=True):
    """A PodDisruptionBudget."""

    metadata: Metadata
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class GangPolicy(Wire, frozen=True):
    """Number of pods that start together, as Kubernetes' own PodGroup has it."""

    min_count: int = 1


class SchedulingPolicy(Wire, frozen=True):
    """Policy by which pods start together, where they do at all."""

    gang: GangPolicy | None = None


class PodGroupSpec(Wire, frozen=True):
    """Number of pods that start together: by Volcano, the scheduler plugins and KAI, or by Kubernetes."""

    min_member: int = 1
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()


class PodGroup(Wire, frozen=True):
    """A PodGroup, of Volcano, the scheduler plugins, KAI or Kubernetes (``scheduling.k8s.io``)."""

    metadata: Metadata
    spec: PodGroupSpec = PodGroupSpec()

    @property
    def least(self) -> int:
        """So many pods start together; 1 is no gang."""
        gang = self.spec.scheduling_policy.gang
        return gang.min_count if gang is not None else self.spec.min_member


class LeaderWorkerSetSpec(Wire, frozen=True):
    """When its workers are made."""

    startup_policy: str = "LeaderCreated"


class LeaderWorkerSet(Wire, frozen=True):
    """A LeaderWorkerSet: each replica is a group of a leader and its workers."""

    metadata: Metadata
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


class Namespace(Wire, frozen=True):
    """A namespace: its labels may name a team."""

    metadata: Metadata


class Objects(msgspec.Struct, frozen=True, kw_only=True):
    """Objects beside pods and nodes, by name. Namespaced ones have "namespace/name" as key.

    ``storage_known`` tells whether claims were listed at all: only then is a claim that is not here missing.
    ``holders`` are the pods ("namespace/name") that have claims which only one pod may have, by claim. ``shares`` are
    the volumes of claims that compete for them, by claim; empty for one that gets none. ``devices`` are None where
    nothing of claims for devices was listed. ``strange`` is what of all objects could not be read.
    """

    claims: dict[str, VolumeClaim] = {}  # PersistentVolumeClaims, by "namespace/name".
    volumes: dict[str, PersistentVolume] = {}  # PersistentVolumes, by name.
    storage_classes: dict[str, StorageClass] = {}  # By name.
    csi_nodes: dict[str, CsiNode] = {}  # Drivers of each node with their limits, by the node's name.
    csi_drivers: dict[str, CsiDriver] = {}  # By name.
    capacities: dict[str, StorageCapacity] = {}  # Room that drivers tell, by "namespace/name".
    budgets: dict[str, DisruptionBudget] = {}  # PodDisruptionBudgets, by "namespace/name".
    pod_groups: dict[str, PodGroup] = {}  # Of any maker, by "namespace/name".
    leader_worker_sets: dict[str, LeaderWorkerSet] = {}  # By "namespace/name".
    namespaces: dict[str, Namespace] = {}  # By name.
    workloads: dict[str, Workload] = {}  # Kueue's, by "namespace/name".
    flavors: dict[str, ResourceFlavor] = {}  # Kueue's ResourceFlavors, by name.
    daemon_sets: dict[str, DaemonSet] = {}  # By "namespace/name".
    daemon_sets_known: bool | None = None  # They were listed; False: we may not list them, None: nobody asked.
    devices: "Devices | None" = None  # None: nothing of claims for devices was listed.
    storage_known: bool = False  # Claims were listed at all: only then is one that is not here missing.
    strange: tuple[Finding, ...] = ()  # Objects that could not be read.
    holders: dict[str, str] = {}  # Claim that only one pod may have -> the pod that has it, both "namespace/name".
    shares: dict[str, str] = {}  # Claim that competes -> its volume's name, "" for one that gets none.
