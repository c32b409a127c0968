"""The objects beside pods and nodes: storage, disruption budgets, pod groups, namespaces; the fields that matter."""

import msgspec

from pilotlight.codec.kubernetes.objects import Expression, Metadata, NodeSelector, Wire


class ClaimSpec(Wire, frozen=True):
    """What a claim asks for."""

    storage_class_name: str | None = None
    volume_name: str = ""


class ClaimStatus(Wire, frozen=True):
    """Whether a claim has its volume."""

    phase: str = "Pending"


class Claim(Wire, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: Metadata
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class VolumeAffinity(Wire, frozen=True):
    """From where a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire, frozen=True):
    """Only its reach is read."""

    node_affinity: VolumeAffinity | None = None


class PersistentVolume(Wire, frozen=True):
    """A PersistentVolume."""

    metadata: Metadata
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class StorageClass(Wire, frozen=True):
    """A StorageClass."""

    metadata: Metadata
    volume_binding_mode: str = "Immediate"


class Selector(Wire, frozen=True):
    """A label selector."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[Expression, ...] = ()


class BudgetSpec(Wire, frozen=True):
    """Whom a PodDisruptionBudget covers."""

    selector: Selector | None = None


class BudgetStatus(Wire, frozen=True):
    """How many may go now."""

    disruptions_allowed: int = 0


class DisruptionBudget(Wire, frozen=True):
    """A PodDisruptionBudget."""

    metadata: Metadata
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class PodGroupSpec(Wire, frozen=True):
    """How many pods start together."""

    min_member: int = 1


class PodGroup(Wire, frozen=True):
    """A PodGroup, of Volcano or of the scheduler plugins."""

    metadata: Metadata
    spec: PodGroupSpec = PodGroupSpec()


class Namespace(Wire, frozen=True):
    """A namespace: its labels may name a team."""

    metadata: Metadata
