"""The catalogue: instance types with dated prices, as data with sources, and what an empty node has for pods."""

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import ROUND_UP, Decimal
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from pilotlight.facts.capacity import CapacityType, Resources
from pilotlight.facts.workload import AMD, NVIDIA, WorkloadClass, is_gpu, part_of_gpu
from pilotlight.units import Seconds, UsdPerHour, milli, quantity, whole

DISK_HOURS = 720
"""The hours of a month by which disks are billed: AWS reckons with 30 days."""
_MICRO = Decimal("0.000001")

_GIB = 2**30
MEMORY_RESERVE = ((4, 25), (4, 20), (8, 10), (112, 6), (None, 2))
"""(GiB, percent of them kept back), in steps. Source: GKE docs, "Plan GKE node sizes", memory reservations."""
CPU_RESERVE = ((1, 600), (1, 100), (2, 50), (None, 25))
"""(cores, hundredths of a percent kept back). Source: the same page; EKS AMIs reserve by the same steps."""
EVICTION_MEMORY = 100 * 2**20
"""The kubelet's default hard eviction threshold memory.available; that of nodefs is a tenth of the disk."""
NO_DAEMONSETS: Mapping[str, str] = MappingProxyType({})

_AMD = re.compile(r"(?:AMD|Instinct|Radeon|MI\d)", re.IGNORECASE)
"""How the names of AMD's models begin."""


NVML_MIB: Mapping[str, int] = {
    "Tesla-T4": 15360,
    "Tesla-V100-SXM2-16GB": 16384,
    "NVIDIA-A10G": 23028,
    "NVIDIA-L4": 23034,
    "NVIDIA-L40S": 46068,
    "NVIDIA-A100-SXM4-40GB": 40960,
    "NVIDIA-A100-SXM4-80GB": 81920,
    "NVIDIA-A100-80GB-PCIe": 81920,
    "NVIDIA-H100-80GB-HBM3": 81559,
    "NVIDIA-H200": 143771,
}
"""MiB of a device as NVML reports them, by product: a little less than the data sheet's for most."""


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars an hour for one node, with where and when they were read."""

    usd_per_hour: Decimal
    source: str
    date: str


class DiskPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars a month for one GiB of a kind of disk, with where and when they were read."""

    usd_per_gib_month: Decimal
    source: str
    date: str


class SpotLearnt(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of an hour of spot of a type in a zone, as told up to ``at``: ``now``, ``least`` and ``most`` of the last
    days, and the ``usual``, in which what was told earlier fades.
    """

    at: datetime
    now: Decimal
    least: Decimal
    most: Decimal
    usual: Decimal


class LivePrices(msgspec.Struct, frozen=True, kw_only=True):
    """Prices that a cloud itself told when it was last asked, by instance type; of spot by "type/zone" too.

    ``soon_taken`` are types in zones, "type/zone", of whose spot it said that most is taken within an hour; ``taken``
    has by those the least share an hour that it said is taken.
    ``committed`` is a bill's word: the effective dollars of a GPU-hour under a commitment, by pool.
    """

    at: datetime
    prices: dict[str, dict[CapacityType, Price]] = {}
    zones: dict[str, SpotLearnt] = {}
    soon_taken: tuple[str, ...] = ()
    taken: dict[str, float] = {}
    committed: dict[str, UsdPerHour] = {}


class InstanceType(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One machine a cloud rents. One without ``wake_s`` and a price of standing by is never stopped."""

    cloud: str  # That rents it.
    gpu_model: str  # Such as "A100".
    gpus: int  # Devices.
    gpu_memory_gib: int = 0  # GiB of one device.
    gpu_product: str = ""  # Label that NVIDIA's feature discovery sets.
    resource: str = ""  # Pods ask for it to get a GPU, as "amd.com/gpu"; empty goes by the model.
    arch: Literal["amd64", "arm64"] = "amd64"  # Label kubernetes.io/arch of its nodes.
    cpu: str = "1000000"  # Kubernetes quantity of the bare machine.
    memory: str = "1Ei"  # Kubernetes quantity of the bare machine.
    ephemeral: str = "1Ei"  # Kubernetes quantity of the bare machine.
    pods: int = 110  # Most pods of a node.
    prices: dict[CapacityType, Price]  # Dollars an hour, by capacity type.
    minimum_s: Seconds = 60  # Seconds that are billed at least.
    increment_s: Seconds = 1  # Seconds by which it is billed then.
    boot_s: Seconds = 180  # Seconds from the request to a node that takes pods.
    extra_usd_per_hour: Decimal = Decimal(0)  # Disks and address.
    wake_s: Seconds | None = None  # Seconds that a stopped one takes to start.
    standby_usd_per_hour: Decimal | None = None  # Of a stopped one; left out, what its disk costs.
    disk: str = "gp3"  # Kind of its disk.
    disk_gib: int = 0  # GiB of its disk.
    region: str = ""  # Where its prices hold; empty: its catalogue's.
    interruptions_per_hour: float = 0.0  # Of spot.

    @property
    def gpu_resource(self) -> str:
        """Resource that pods ask for to get one of its GPUs: nvidia.com/gpu unless it says otherwise or is AMD's."""
        return self.resource or (AMD if _AMD.match(self.gpu_model) else NVIDIA)


def speeds(*tables: Mapping[Any, Mapping[str, float]]) -> dict[Any, dict[str, float]]:
    """Relative speeds by class and model: a later table adds its models to a class, and replaces those it names."""
    merged: dict[Any, dict[str, float]] = {}
    for table in tables:
        for workload, models in table.items():
            merged[workload] = {**merged.get(workload, {}), **models}
    return merged


def _same(sold: CapacityType, one: InstanceType, other: InstanceType) -> bool:
    """True where a type costs the same in two regions. ``one`` is sold so."""
    there = other.prices.get(sold)
    known = there is not None and there.usd_per_hour == one.prices[sold].usd_per_hour
    return known and other.extra_usd_per_hour == one.extra_usd_per_hour


class Catalog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A catalogue file. ``throughput[class][model]`` is relative speed; models not in it do not compare.

    ``as_of`` is when its prices held; a replay's clock starts there. ``region`` is where they hold, empty: anywhere;
    ``disks`` what its kinds of disk cost there. ``elsewhere[region]`` are other files' types there; no file has it.
    """

    name: str
    as_of: datetime
    instance_types: dict[str, InstanceType]
    throughput: dict[WorkloadClass, dict[str, float]] = {}
    throughput_source: str = ""
    notes: str = ""
    region: str = ""
    disks: dict[str, DiskPrice] = {}
    elsewhere: dict[str, dict[str, InstanceType]] = {}

    def sold_in(self, region: str, name: str) -> InstanceType | None:
        """A type with the prices of a region where a file has them, else as the last file that names it does."""
        kind = self.instance_types.get(name)
        if kind is None or not kind.region or kind.region == region:
            return kind
        return self.elsewhere.get(region, {}).get(name, kind)

    def sold_anywhere(self, kind: InstanceType, name: str) -> InstanceType:
        """A type as it is sold in every region whose file has it: with the prices alone on which all of them agree."""
        others = [kinds[name] for region, kinds in self.elsewhere.items() if name in kinds and region != kind.region]
        prices = {sold: price for sold, price in kind.prices.items() if all(_same(sold, kind, o) for o in others)}
        standby = {kind.standby_usd_per_hour, *(other.standby_usd_per_hour for other in others)}
        same = kind.standby_usd_per_hour if len(standby) == 1 else None
        return msgspec.structs.replace(kind, prices=prices, standby_usd_per_hour=same)

    def followed_by(self, later: "Catalog") -> "Catalog":
        """With a later one, whose entries replace these; a type of another region stays too, for pools there."""
        stay = {region: dict(kinds) for region, kinds in self.elsewhere.items()}
        for name in later.instance_types.keys() & self.instance_types.keys():
            kind = self.instance_types[name]
            if kind.region and kind.region != later.instance_types[name].region:
                stay.setdefault(kind.region, {})[name] = kind
        return msgspec.structs.replace(
            later,
            instance_types={**self.instance_types, **later.instance_types},
            throughput=speeds(self.throughput, later.throughput),
            elsewhere=stay,
        )

    def resolve(self) -> "Catalog":
        """With each type's own region, and what it costs while it stands by where its disks say that."""
        types = {name: self._resolved(kind) for name, kind in self.instance_types.items()}
        return msgspec.structs.replace(self, instance_types=types)

    def _resolved(self, kind: InstanceType) -> InstanceType:
        standby = kind.standby_usd_per_hour
        if standby is None and kind.disk_gib:
            a_month = self.disks[kind.disk].usd_per_gib_month * kind.disk_gib
            standby = (a_month / DISK_HOURS).quantize(_MICRO, ROUND_UP)
        return msgspec.structs.replace(kind, region=kind.region or self.region, standby_usd_per_hour=standby)


class EmptyNode(msgspec.Struct, frozen=True, kw_only=True):
    """An empty node's resources for pods, and the GPUs that they may have."""

    resources: Resources
    resource: str  # Name by which pods ask for whole GPUs.
    whole_gpus: int
    parts: dict[str, int]  # Parts of GPUs, and whole ones by other names.


def empty_node(
    machine: InstanceType, slices: Mapping[str, int], daemonsets: Mapping[str, str] = NO_DAEMONSETS
) -> EmptyNode:
    """An empty node for pods: the machine less kubelet and system reserves, less its DaemonSets.

    Where ``slices`` name parts of GPUs, its GPUs are cut up: whole are those that ``slices`` names. Those that are no
    GPUs are resources like CPU.
    """
    cpu, memory, disk = milli(machine.cpu), whole(machine.memory), whole(machine.ephemeral)
    taken = {name: quantity(amount) for name, amount in daemonsets.items()}

    def less(amount: int, name: str, scale: int = 1) -> int:
        return max(0, amount - int(-(-taken.get(name, Decimal(0)) * scale // 1)))

    own = machine.gpu_resource
    offered = {own: machine.gpus, **{name: count for name, count in slices.items() if is_gpu(name)}}
    if own not in slices and any(part_of_gpu(name) for name in slices):
        offered[own] = 0
    offered = {name: less(count, name) for name, count in offered.items()}
    return EmptyNode(
        resources=Resources(
            cpu_milli=less(cpu - _stepped(cpu, CPU_RESERVE, 1000, 10_000), "cpu", 1000),
            memory=less(memory - _stepped(memory, MEMORY_RESERVE, _GIB, 100) - EVICTION_MEMORY, "memory"),
            ephemeral=less(disk - disk // 10, "ephemeral-storage"),
            pods=less(machine.pods, "pods"),
            other=tuple((name, less(count, name)) for name, count in sorted(slices.items()) if not is_gpu(name)),
        ),
        resource=own,
        whole_gpus=offered.pop(own),
        parts=offered,
    )


def _stepped(amount: int, steps: tuple[tuple[int | None, int], ...], unit: int, whole_share: int) -> int:
    """The part of an amount that is kept back, step by step, rounded up."""
    kept, left = 0, amount
    for width, share in steps:
        part = left if width is None else min(left, width * unit)
        kept += part * share
        left -= part
    return -(-kept // whole_share)
