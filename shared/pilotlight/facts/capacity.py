"""Offerings that can be bought, and nodes that are there with the pods on them."""

from datetime import UTC, datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Literal

import msgspec

from pilotlight.facts.fit.claimed_devices import DeviceKind
from pilotlight.facts.offers.spot_history import Survival
from pilotlight.facts.workload import NVIDIA, GpuRequest, PodShape
from pilotlight.units import MILLI_PER_GPU, Seconds, UsdPerHour

CapacityType = Literal["on-demand", "spot", "reserved"]
Mode = Literal["observe", "advise", "scale-up", "act"]
PoolMode = Literal["observe", "advise", "scale-up", "act", "canary"]
"""What a pool's own may be: a ``canary`` acts for as long as it keeps within its bounds."""


class Taint(msgspec.Struct, frozen=True, kw_only=True):
    """A taint as nodes carry it."""

    key: str
    effect: str
    value: str = ""


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
    """Instance type x zone x capacity type, as one pool sells it.

    ``usd_per_hour`` covers the node with its disks and public address. A node is billed at least
    ``minimum_s`` and then by ``increment_s``. ``resources`` is the predicted allocatable of an empty node,
    that pool's DaemonSets already taken off. ``resource`` is what pods ask for to get a whole GPU of it,
    ``whole_gpus`` how many they may have so: None is all of ``gpus``. ``slices`` are parts of GPUs a node of it offers
    (MIG profiles, shared replicas). ``on_demand_usd_per_hour`` is what a spot node's type costs on demand, where known.
    ``wake_s`` is how long a stopped node takes to start, ``standby_usd_per_hour`` what it costs meanwhile, where known.
    ``labels`` are those a node of it will carry. ``survival`` is what ``interruptions_per_hour`` rests on where it was
    learnt; without it that is the catalogue's. ``usual_usd_per_hour`` is what spot was told to cost in its zone lately:
    zones are compared by it, and nothing is held or metered by it. ``priced_at`` is when its price was
    read; None for the policy's own figure. A reserved one is paid for already, and ``paid_until`` is when that ends.
    ``kinds`` are the devices that drivers published of a node of it, where one has joined.
    """

    pool: str
    instance_type: str
    capacity_type: CapacityType
    gpu_model: str
    gpus: int
    usd_per_hour: UsdPerHour
    zone: str = ""
    gpu_memory_gib: int = 0
    minimum_s: Seconds = 60
    increment_s: Seconds = 1
    boot_s: Seconds = 180
    resources: Resources = Resources()
    resource: str = NVIDIA
    whole_gpus: int | None = None
    slices: dict[str, int] = {}
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    interruptions_per_hour: float = 0.0
    survival: Survival | None = None
    on_demand_usd_per_hour: UsdPerHour | None = None
    wake_s: Seconds | None = None
    standby_usd_per_hour: UsdPerHour | None = None
    priced_at: datetime | None = None
    paid_until: datetime | None = None
    usual_usd_per_hour: UsdPerHour | None = None
    kinds: tuple[DeviceKind, ...] = ()

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


class BoundPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod on a node. ``blocks`` says why it would stop a drain ("PodDisruptionBudget x"), or is empty.

    ``max_run_s`` is 0 where it names no deadline. ``grace_s`` is what it may take to stop. ``checkpoint_s`` are the
    seconds between its checkpoints, ``checkpoint_takes_s`` what one takes when it is asked for; 0 where it names none.
    ``checkpointed_at`` is its last checkpoint, where it tells. ``shape`` is what it would need elsewhere, where known.
    ``works_since`` is when its containers began, read of those whose job names a deadline. ``priority`` is its class's.
    """

    uid: str
    namespace: str
    name: str
    gpu: GpuRequest | None = None
    daemonset: bool = False
    blocks: str = ""
    workload_class: str = ""
    team: str = ""
    gang: str = ""
    max_run_s: Seconds = 0
    grace_s: Seconds = 30
    started_at: datetime | None = None
    checkpoint_s: Seconds = 0
    checkpoint_takes_s: Seconds = 0
    checkpointed_at: datetime | None = None
    works_since: datetime | None = None
    priority: int = 0
    shape: PodShape | None = None


_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class Node(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A node that has registered. ``ready`` means it takes GPU pods: Ready, and its GPUs are allocatable.

    ``devices`` are the free thousandths of each whole device of ``resource``; ``slices`` the free counts of other GPU
    resources; ``free`` what is left beside GPUs. ``idle_since`` is the later of when it became ready and when its last
    GPU pod finished, where none is there: of one that was deleted the cluster shows nothing. ``instance`` is the
    cloud's id, ``cloud`` whose it is, empty where nothing says so. ``schedulable`` is false when somebody cordoned it,
    or when it carries our taint: ``marked``. ``conditions`` are those that are true and say that it goes.
    ``attachable`` are the volumes it takes in all, by ``ATTACHABLE`` resource, where that is known.
    ``closed`` says that it carries our placement taint, which is none of ``taints``; ``unserved`` names DaemonSets that
    select it and have no pod on it yet. ``ready_since`` is when it last became Ready. ``room`` is its whole allocatable
    beside GPUs, where it is known. ``kinds`` are the devices that drivers publish of it, for claims.
    ``sick`` is what a watcher of its driver says is the matter with its GPUs, or empty.
    """

    name: str
    pool: str
    instance_type: str
    capacity_type: CapacityType
    created_at: datetime
    ready: bool
    devices: tuple[int, ...] = ()
    resource: str = NVIDIA
    slices: dict[str, int] = {}
    free: Resources = Resources()
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    pods: tuple[BoundPod, ...] = ()
    zone: str = ""
    instance: str = ""
    cloud: str = ""
    schedulable: bool = True
    marked: bool = False
    idle_since: datetime | None = None
    gpu_model: str = ""
    conditions: tuple[str, ...] = ()
    attachable: dict[str, int] = {}
    closed: bool = False
    unserved: tuple[str, ...] = ()
    ready_since: datetime | None = None
    room: Resources | None = None
    kinds: tuple[DeviceKind, ...] = ()
    sick: str = ""

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
    def due(self) -> bool:
        """True where a pod on it has a deadline."""
        return any(pod.shape is not None and pod.shape.due is not None for pod in self.gpu_pods)

    @cached_property
    def place(self) -> tuple[str, str]:
        """Its pool and its name."""
        return self.pool, self.name

    @cached_property
    def runs(self) -> tuple[tuple[str, datetime | None], ...]:
        """Of each pod that holds a GPU its ``run_kind``, and when it started."""
        pods = self.gpu_pods
        return tuple([(run_kind(p.workload_class, p.team, p.gpu.count if p.gpu else 0), p.started_at) for p in pods])

    @cached_property
    def last_start(self) -> datetime:
        """When the last of its pods with a GPU started: of one that does not say it, not yet."""
        return max([pod.started_at or _LATEST for pod in self.gpu_pods], default=_EARLIEST)

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
