"""The catalogue: instance types and their dated prices, as data with sources."""

import re
from datetime import datetime
from decimal import Decimal
from typing import Literal

import msgspec

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.workload import AMD, NVIDIA, WorkloadClass
from pilotlight.units import Seconds

_AMD = re.compile(r"(?:AMD|Instinct|Radeon|MI\d)", re.IGNORECASE)
"""How the names of AMD's models begin."""


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars an hour for one node, with where and when they were read."""

    usd_per_hour: Decimal
    source: str
    date: str


class ToldPrices(msgspec.Struct, frozen=True, kw_only=True):
    """What a cloud itself said of prices, by instance type, when it was last asked."""

    at: datetime
    prices: dict[str, dict[CapacityType, Price]] = {}


class InstanceType(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One machine a cloud rents. ``memory`` and ``ephemeral`` are Kubernetes quantities of the bare machine.

    ``gpu_memory_gib`` is that of one device. ``gpu_product`` is the label NVIDIA's feature discovery sets.
    ``minimum_s`` and ``increment_s`` are the cloud's billing steps. ``extra_usd_per_hour`` is disks and address.
    ``resource`` is what pods ask for to get one of its GPUs, as "amd.com/gpu"; empty goes by the model.
    ``wake_s`` is how long a stopped one takes to start, and ``standby_usd_per_hour`` what it costs meanwhile: one
    without both is never stopped.
    ``arch`` is its nodes' label kubernetes.io/arch.
    """

    cloud: str
    gpu_model: str
    gpus: int
    gpu_memory_gib: int = 0
    gpu_product: str = ""
    resource: str = ""
    arch: Literal["amd64", "arm64"] = "amd64"
    cpu: str = "1000000"
    memory: str = "1Ei"
    ephemeral: str = "1Ei"
    pods: int = 110
    prices: dict[CapacityType, Price]
    minimum_s: Seconds = 60
    increment_s: Seconds = 1
    boot_s: Seconds = 180
    extra_usd_per_hour: Decimal = Decimal(0)
    wake_s: Seconds | None = None
    standby_usd_per_hour: Decimal | None = None
    interruptions_per_hour: float = 0.0

    @property
    def gpu_resource(self) -> str:
        """What pods ask for to get one of its GPUs: nvidia.com/gpu unless it says otherwise or is AMD's."""
        return self.resource or (AMD if _AMD.match(self.gpu_model) else NVIDIA)


class Catalog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A catalogue file. ``throughput[class][model]`` is relative speed; models not in it do not compare.

    ``as_of`` is when its prices held; a replay's clock starts there.
    """

    name: str
    as_of: datetime
    instance_types: dict[str, InstanceType]
    throughput: dict[WorkloadClass, dict[str, float]] = {}
    throughput_source: str = ""
    notes: str = ""
