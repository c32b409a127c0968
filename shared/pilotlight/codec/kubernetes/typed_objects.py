"""The fields of pods and nodes that matter here, as typed structs. Everything else in an object is skipped.

Field names and meanings: the Kubernetes API reference, v1.36.
"""

from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.facts.capacity import Taint
from pilotlight.units import EPOCH


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A part of an object: unknown fields are skipped."""


class OwnerReference(Wire, frozen=True):
    """Owner that made an object."""

    kind: str
    name: str
    uid: str = ""
    controller: bool = False


class Metadata(Wire, frozen=True):
    """An object's name and what is attached to it."""

    name: str
    namespace: str = "default"
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None

    @property
    def created_at(self) -> datetime:
        """When it was made; the epoch where it does not say."""
        return self.creation_timestamp or EPOCH

    @property
    def owner(self) -> OwnerReference | None:
        """The controller that made it, or the only owner it names."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return self.owner_references[0] if self.owner_references else None


class ResourceLists(Wire, frozen=True):
    """Requests and limits: quantities as they stand in the object."""

    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}


class ContainerPort(Wire, frozen=True):
    """A port; ``host_port`` 0 is none of the host's."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Wire, frozen=True):
    """A container. ``restart_policy`` Always makes an init container a sidecar."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    resources: ResourceLists = ResourceLists()
    restart_policy: str = ""
    ports: tuple[ContainerPort, ...] = ()


class Expression(Wire, frozen=True):
    """One requirement of a node selector term."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class Term(Wire, frozen=True):
    """Requirements that must all hold."""

    match_expressions: tuple[Expression, ...] = ()
    match_fields: tuple[Expression, ...] = ()


class NodeSelector(Wire, frozen=True):
    """Terms, any of which will do."""

    node_selector_terms: tuple[Term, ...] = ()


class NodeAffinity(Wire, frozen=True):
    """Only what is required at scheduling."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Selector(Wire, frozen=True):
    """A label selector."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Expression, ...] = ()


class PodTerm(Wire, frozen=True):
    """Pods by label and namespace, and the node label whose values tell who is near."""

    topology_key: str
    label_selector: Selector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: Selector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PodAffinity(Wire, frozen=True):
    """Only what is required at scheduling."""

    required: tuple[PodTerm, ...] = msgspec.field(default=(), name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Wire, frozen=True):
    """Affinity that is required of a pod's node, and of the pods near it."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Spread(Wire, frozen=True):
    """A topology spread constraint."""

    topology_key: str
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: Selector | None = None
    match_label_keys: tuple[str, ...] = ()
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class WireToleration(Wire, frozen=True):
    """A toleration as written: every field may be absent."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class ClaimVolume(Wire, frozen=True):
    """A volume that is a PersistentVolumeClaim."""

    claim_name: str


class EmptyDir(Wire, frozen=True):
    """Local storage; ``medium`` Memory is none."""

    medium: str = ""


class Volume(Wire, frozen=True):
    """A pod's volume; only the kinds that matter are kept. ``ephemeral`` is a claim that is made for the pod alone."""

    name: str = ""
    ephemeral: dict[str, object] | None = None
    persistent_volume_claim: ClaimVolume | None = None
    empty_dir: EmptyDir | None = None
    host_path: dict[str, object] | None = None


class SchedulingGroup(Wire, frozen=True):
    """With whom a pod is scheduled (Kubernetes 1.36, alpha)."""

    pod_group_name: str = ""


class PodSpec(Wire, frozen=True):
    """Spec of a pod, in the fields that are read."""

    containers: tuple[Container, ...] = ()  # They run side by side.
    init_containers: tuple[Container, ...] = ()  # They run before, sidecars among them.
    overhead: dict[str, str | int | float] = {}  # Of the runtime class, by resource.
    resources: ResourceLists = ResourceLists()  # Requests and limits of the pod as a whole.
    node_name: str = ""  # "" while it waits.
    node_selector: dict[str, str] = {}  # Labels that its node must have.
    affinity: Affinity | None = None  # Required only: preferences are not read.
    tolerations: tuple[WireToleration, ...] = ()  # Taints that it bears.
    priority: int = 0  # The higher goes first.
    preemption_policy: str = ""  # "Never", or "" for the default.
    active_deadline_seconds: float = 0  # Seconds that it may run; 0 is no limit.
    termination_grace_period_seconds: float = 30  # Seconds that it may take to stop.
    scheduling_gates: tuple[dict[str, str], ...] = ()  # Names of what holds it back from the scheduler.
    scheduling_group: SchedulingGroup | None = None  # Kubernetes' own PodGroup that it belongs to.
    resource_claims: tuple[dict[str, object], ...] = ()  # Its claims for devices (DRA).
    volumes: tuple[Volume, ...] = ()  # Only those of claims count.
    topology_spread_constraints: tuple[Spread, ...] = ()  # Spread over domains.
    host_network: bool = False  # Its ports are the node's.
    scheduler_name: str = ""  # "" is the default one.


class Condition(Wire, frozen=True):
    """A condition of a pod or node."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class Terminated(Wire, frozen=True):
    """End of a container."""

    finished_at: datetime | None = None


class Running(Wire, frozen=True):
    """Since when a container runs."""

    started_at: datetime | None = None


class ContainerState(Wire, frozen=True):
    """State of a container: it runs, or has ended."""

    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Wire, frozen=True):
    """State of a container, and what its kubelet has given it."""

    name: str = ""
    state: ContainerState = ContainerState()
    restart_count: int = 0
    resources: ResourceLists | None = None  # What it has.
    allocated_resources: dict[str, str | int | float] = {}  # What its kubelet let it have.


class PodStatus(Wire, frozen=True):
    """Status of a pod, in the fields that are read."""

    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[dict[str, object], ...] = ()

    @property
    def restarted(self) -> bool:
        """True once a container was started again: when it began tells nothing of how long a new pod takes."""
        return bool([one for one in self.container_statuses if one.restart_count])


class Pod(Wire, frozen=True):
    """A pod. ``unread`` is why nothing but its name and place could be read, or empty."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
    unread: str = ""

    @property
    def name(self) -> str:
        """As kubectl takes it: "namespace/name"."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def is_finished(self) -> bool:
        """True where it holds nothing any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def has_rules(self) -> bool:
        """True where it may have rules on the pods near by."""
        return self.spec.affinity is not None or bool(self.spec.topology_spread_constraints)

    @property
    def node(self) -> str:
        """The node it holds a place on: where it is bound, or where preemption makes room for it."""
        return self.spec.node_name or self.status.nominated_node_name


class NodeSpec(Wire, frozen=True):
    """Marks of a node: cordon, taints, provider's id."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    provider_id: str = msgspec.field(default="", name="providerID")


class ImageThere(Wire, frozen=True):
    """An image that a node has: its names, by tag and by digest."""

    names: tuple[str, ...] = ()


class NodeStatus(Wire, frozen=True):
    """Status of a node: its capacity, conditions and images."""

    capacity: dict[str, str | int | float] = {}
    allocatable: dict[str, str | int | float] = {}
    conditions: tuple[Condition, ...] = ()
    images: tuple[ImageThere, ...] | None = ()


class KubeNode(Wire, frozen=True):
    """A node. ``unread`` is why nothing but its name could be read, or empty."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
    unread: str = ""
