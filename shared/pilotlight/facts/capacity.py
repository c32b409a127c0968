"""Offerings that can be bought, nodes that are there with the pods on them, and one read of a cluster."""

from datetime import datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Literal

import msgspec

from pilotlight.facts.fit.claimed_devices import DeviceKind
from pilotlight.facts.offers.spot_history import Survival
from pilotlight.facts.workload import NVIDIA, Finding, GpuRequest, Parked, PodDemand, PodShape, Queued, Reserving
from pilotlight.units import EPOCH, MILLI_PER_GPU, Seconds, UsdPerHour, clock_seconds

CapacityType = Literal["on-demand", "spot", "reserved", "flex-start"]


class Taint(msgspec.Struct, frozen=True, kw_only=True):
    """A taint as nodes carry it."""

    key: str  # Its key.
    effect: str  # NoSchedule, PreferNoSchedule or NoExecute.
    value: str = ""  # Its value; may be empty.


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """Resources of a node for pods, beside its GPUs. ``memory`` and ``ephemeral`` are bytes.

    ``other`` are amounts of further resources by name: hugepages in bytes, "rdma/hca". What is not named is not there.
    ``ports`` are the host ports that pods have taken already, as in ``Near``.
    """

    cpu_milli: int = 1_000_000_000
    memory: int = 1 << 62
    ephemeral: int = 1 << 62
    pods: int = 1_000_000
    other: tuple[tuple[str, int], ...] = ()
    ports: tuple[str, ...] = ()


class Offering(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Instance type x zone x capacity type, as one pool sells it."""

    pool: str  # The policy's pool that sells it.
    instance_type: str  # Its cloud's name of the machine.
    capacity_type: CapacityType  # How it is paid for.
    gpu_model: str  # As the catalogue has it, such as "A100".
    gpus: int  # Devices of one node.
    usd_per_hour: UsdPerHour  # Of the node with its disks and public address.
    zone: str = ""  # Empty: any zone of the pool.
    gpu_memory_gib: int = 0  # GiB of one device; 0 where it is not known.
    minimum_s: Seconds = 60  # A node is billed for at least so many seconds.
    increment_s: Seconds = 1  # And then by so many.
    boot_s: Seconds = 180  # Seconds from the request to a node that takes pods.
    # Predicted allocatable of an empty node, that pool's DaemonSets already taken off.
    resources: Resources = Resources()
    resource: str = NVIDIA  # Pods ask for this to get a whole GPU of it.
    whole_gpus: int | None = None  # So many may be had whole; None is all of ``gpus``.
    slices: dict[str, int] = {}  # Parts of GPUs that a node offers (MIG profiles, shared replicas), by resource.
    labels: dict[str, str] = {}  # Labels that a node of it will carry.
    taints: tuple[Taint, ...] = ()  # Taints that a node of it will carry.
    interruptions_per_hour: float = 0.0  # Of spot: the expected rate.
    # The history that the rate rests on where it was learnt; None: it is the catalogue's.
    survival: Survival | None = None
    on_demand_usd_per_hour: UsdPerHour | None = None  # Of a spot node's type, on demand, where known.
    committed_usd_per_hour: UsdPerHour | None = None  # Of a reserved one: what a bill's commitments pay, amortised.
    wake_s: Seconds | None = None  # Seconds that a stopped node takes to start, where known.
    ready_s: Seconds | None = None  # Seconds from the request to a pod on it, as learned; None: too little was seen.
    pull_s: Seconds = 0.0  # Seconds of the usual image pull on a new node, as learned.
    standby_usd_per_hour: UsdPerHour | None = None  # Of a stopped node, where known.
    priced_at: datetime | None = None  # When its price was read; None for the policy's own figure.
    paid_until: datetime | None = None  # Of a reserved one, which is paid for already: when that ends.
    # Of spot in its zone lately: zones are compared by it; nothing is held or metered by it.
    usual_usd_per_hour: UsdPerHour | None = None
    kinds: tuple[DeviceKind, ...] = ()  # Devices that drivers published of a node of it, where one has joined.

    @cached_property
    def name(self) -> str:
        """One readable name, unique in a plan: "a100/p4d.24xlarge/us-east-1a/spot"."""
        return "/".join(p for p in (self.pool, self.instance_type, self.zone, self.capacity_type) if p)

    @property
    def compared_usd_per_hour(self) -> UsdPerHour:
        """The price by which it is chosen."""
        return self.usd_per_hour if self.usual_usd_per_hour is None else self.usual_usd_per_hour

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The free thousandths of each device of an empty node that pods may have whole."""
        return (MILLI_PER_GPU,) * (self.gpus if self.whole_gpus is None else self.whole_gpus)


LONGEST_UID = 64
"""Letters of a uid that records keep: an API server's have 36."""


class BoundPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod on a node."""

    uid: str  # Kubernetes' own.
    namespace: str  # Of the pod.
    name: str  # Of the pod.
    owner: str = ""  # What made it, as "Job/train"; empty where it holds no GPU.
    gpu: GpuRequest | None = None  # Devices that it holds; None where it holds none.
    daemonset: bool = False  # It belongs to a DaemonSet, and stays with its node.
    blocks: str = ""  # Why it would stop a drain ("PodDisruptionBudget x"), or empty.
    workload_class: str = ""  # Its class, as its claims count.
    team: str = ""  # The team that pays for it.
    gang: str = ""  # Key of the pods it starts together with, or empty.
    max_run_s: Seconds = 0  # Longest run in seconds; 0 where it names no deadline.
    grace_s: Seconds = 30  # Seconds that it may take to stop.
    created_at: datetime | None = None  # When the pod was made; None where nobody asks.
    started_at: datetime | None = None  # None where the cluster does not say it.
    checkpoint_s: Seconds = 0  # Seconds between its checkpoints; 0 where it names none.
    checkpoint_takes_s: Seconds = 0  # Seconds of a checkpoint that it is asked for; 0 where it cannot be asked.
    checkpointed_at: datetime | None = None  # Its last checkpoint, where it tells.
    works_since: datetime | None = None  # When its containers began; None where one does not run.
    image: str = ""  # Of its first container that asks for GPUs, else of its first; empty once one was started again.
    priority: int = 0  # That of its priority class.
    shape: PodShape | None = None  # What it would need elsewhere, where known.

    @property
    def key(self) -> str:
        """Its uid as records keep it: one that is too long for an API server's, as its digest."""
        return self.uid if len(self.uid) <= LONGEST_UID else sha256(self.uid.encode("utf-8", "replace")).hexdigest()


class Node(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A node that has registered. Of a GPU pod that was deleted the cluster shows nothing."""

    name: str  # As the cluster has it.
    pool: str  # The policy's pool that it belongs to.
    instance_type: str  # Its cloud's name of the machine.
    capacity_type: CapacityType  # How it is paid for.
    created_at: datetime  # When its node object was made.
    ready: bool  # It takes GPU pods: Ready, and its GPUs are allocatable.
    devices: tuple[int, ...] = ()  # Free thousandths of each whole device of ``resource``.
    resource: str = NVIDIA  # The resource by which its whole devices are asked for.
    slices: dict[str, int] = {}  # Free counts of other GPU resources.
    free: Resources = Resources()  # What is left beside GPUs.
    labels: dict[str, str] = {}  # As the cluster has them.
    taints: tuple[Taint, ...] = ()  # As the cluster has them, without our home taint.
    pods: tuple[BoundPod, ...] = ()  # All that are bound to it.
    zone: str = ""  # Empty where it is not said.
    instance: str = ""  # The cloud's id.
    cloud: str = ""  # Whose instance it is, empty where nothing says so.
    schedulable: bool = True  # False when somebody cordoned it, or it carries our taint.
    marked: bool = False  # It carries our taint.
    # The decision that its note names, where our taint is off: a person took that off while it was being given back.
    opened_by: str = ""
    # The later of when it became ready and when its last GPU pod finished, where none is there.
    idle_since: datetime | None = None
    gpu_model: str = ""  # Empty where no label says it.
    conditions: tuple[str, ...] = ()  # Those that are true and say that it goes.
    attachable: dict[str, int] = {}  # Volumes that it takes in all, by ``ATTACHABLE`` resource, where known.
    home: str = ""  # Value of our home taint, which is none of ``taints``; empty: open to every pod.
    unserved: tuple[str, ...] = ()  # DaemonSets that select it and have no pod on it yet.
    ready_since: datetime | None = None  # When it last became Ready.
    room: Resources | None = None  # Its whole allocatable beside GPUs, where known.
    kinds: tuple[DeviceKind, ...] = ()  # Devices that drivers publish of it, for claims.
    sick: str = ""  # What a watcher of its driver says is the matter with its GPUs, or empty.
    images: tuple[str, ...] = ()  # Those that it has, by name, as its kubelet tells them: the largest few.

    @property
    def gpus(self) -> int:
        """Whole-GPU devices it has."""
        return len(self.devices)

    @cached_property
    def gpu_pods(self) -> tuple[BoundPod, ...]:
        """The pods on it that hold a GPU: only these keep a node alive."""
        return tuple([p for p in self.pods if p.gpu is not None and not p.daemonset])

    @property
    def others(self) -> tuple[BoundPod, ...]:
        """The pods on it that hold no GPU and do not stay with it: they leave before it goes."""
        return tuple([p for p in self.pods if p.gpu is None and not p.daemonset])

    @cached_property
    def has_due_job(self) -> bool:
        """True where a pod on it has a deadline."""
        return any(pod.shape is not None and pod.shape.due is not None for pod in self.gpu_pods)

    @cached_property
    def works_since(self) -> datetime:
        """When the last of its GPU pods that are known to work began; the epoch where none does."""
        return max([p.works_since for p in self.gpu_pods if p.works_since is not None and p.image], default=EPOCH)

    @cached_property
    def place(self) -> tuple[str, str]:
        """Its pool and its name."""
        return self.pool, self.name

    @cached_property
    def runs(self) -> tuple[tuple[str, int], ...]:
        """Of each started pod that holds a GPU its ``run_kind``, and when it began, in seconds from the epoch."""
        return tuple(
            [
                (run_kind(p.workload_class, p.team, p.gpu.count if p.gpu else 0), round(clock_seconds(p.started_at)))
                for p in self.gpu_pods
                if p.started_at is not None
            ]
        )

    @cached_property
    def shows(self) -> tuple[str, int, bool, bool]:
        """Its pool, its devices, whether it is ready, and whether its GPUs are said to be ill or are lost with pods."""
        return self.pool, len(self.devices), self.ready, bool(self.sick or (self.gpu_pods and not self.ready))

    @cached_property
    def digest(self) -> str:
        """Of all that is known of it. Most nodes of a look are those of the look before."""
        return digest(self)

    @cached_property
    def roomy(self) -> bool:
        """True where a device of it, or a part of one, has room."""
        return any(self.devices) or any(self.slices.values())

    @cached_property
    def used_milli(self) -> int:
        """Thousandths of GPUs in use."""
        return MILLI_PER_GPU * len(self.devices) - sum(self.devices)


@lru_cache(maxsize=1024)
def run_kind(workload_class: str, team: str, gpus: int) -> str:
    """Pods of one class, team and number of GPUs run alike: what their lengths are learned by."""
    return f"{workload_class}/{team}/{gpus}"


def digest(value: object) -> str:
    """Digest of facts, for records: SHA-256 of their JSON with keys in order. Equal ones have equal digests."""
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


class Scaler(msgspec.Struct, frozen=True, kw_only=True):
    """Another autoscaler that was alive at ``seen_at``, and the groups it scales; none where it does not tell them."""

    name: str
    seen_at: datetime
    groups: tuple[str, ...] = ()


class Daemon(msgspec.Struct, frozen=True, kw_only=True):
    """The pod of a DaemonSet, which takes its room on every new node that it selects, before any other pod."""

    name: str
    takes: PodShape


class ClusterView(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One read of the cluster: GPU pods that wait, nodes, pods that no node would help, and who else scales nodes.

    Nothing is bought for ``others``, and a node that we closed may be one that they fit.
    """

    pending: tuple[PodDemand, ...] = ()  # GPU pods that wait.
    nodes: tuple[Node, ...] = ()  # Those with GPUs.
    findings: tuple[Finding, ...] = ()  # What a person must mend.
    scalers: tuple[Scaler, ...] = ()  # Who else scales nodes.
    others: tuple[PodDemand, ...] = ()  # Pods that wait and want no GPU: theirs are 0.
    watched: bool = True  # Somebody lifts our taints should we fall silent.
    limited: bool | None = True  # Our account may add homes to a pod and change nothing else; None: not known.
    around: dict[str, dict[str, int]] = {}  # Pods that are there, in each domain, by ``NearRule.key``.
    daemons: tuple[Daemon, ...] = ()  # They will be on new nodes too.
    queued: tuple[Queued, ...] = ()  # Work whose pods are among those that wait, and that our answer lets in.
    reserving: tuple[Reserving, ...] = ()  # All that has its quota and a check of ours.
    parked: tuple[Parked, ...] = ()  # Work that we took out of its queue until there is money.

    @cached_property
    def shapes(self) -> tuple[PodShape, ...]:
        """Shapes of the pods that wait, hardly any of them twice."""
        return tuple({id(pod.shape): pod.shape for pod in self.pending}.values())

    def node_of(self, instance: str, name: str = "") -> Node | None:
        """The node of an instance; clouds that tell its name instead of its id are understood."""
        return next((n for n in self.nodes if instance in (n.instance, n.name) or (name and n.name == name)), None)
