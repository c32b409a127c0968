"""A cloud of three types with round prices, and pods to run on it."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.labels import INSTANCE_TYPE
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, Requirement, shape
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World

START = datetime(2026, 7, 1, tzinfo=UTC)


def _type(model: str, gpus: int, usd: int, **fields: Any) -> InstanceType:
    prices: dict[CapacityType, Price] = {
        "on-demand": Price(usd_per_hour=Decimal(usd), source="test", date="2026-07-01"),
        "spot": Price(usd_per_hour=Decimal(usd) / 4, source="test", date="2026-07-01"),
    }
    fields = {"boot_s": 100.0, "interruptions_per_hour": 0.5, **fields}
    return InstanceType(cloud="test", gpu_model=model, gpus=gpus, prices=prices, **fields)


CATALOG = Catalog(
    name="small",
    as_of=START,
    instance_types={"one": _type("T4", 1, 1), "four": _type("V100", 4, 12), "eight": _type("A100", 8, 32)},
)
POOLS = tuple(WorldPool(name=name, instance_type=name) for name in CATALOG.instance_types)
SPOT = tuple(WorldPool(name=name, instance_type=name, capacity_type="spot") for name in CATALOG.instance_types)


def world(pools: tuple[WorldPool, ...] = POOLS, **options: Any) -> World:
    """A world of the small cloud; ``faults`` as a mapping or none."""
    faults = Faults(**options.pop("faults", {}))
    return World(options.pop("catalog", CATALOG), pools, faults=faults, **options)


def pod(name: str, gpus: int = 1, milli: int = 1000, on: str = "", **traits: Any) -> PodDemand:
    """A pod, on one instance type where ``on`` names it."""
    terms = ((Requirement(key=INSTANCE_TYPE, operator="In", values=(on,)),),) if on else ()
    made = shape(**{"gpu": GpuRequest(count=gpus, milli=milli), "terms": terms, **traits})
    return PodDemand(uid=name, namespace="default", name=name, shape=made, created_at=START)


def gang(name: str, size: int) -> list[PodDemand]:
    """Pods that start together, each of 8 GPUs."""
    return [pod(f"{name}-{n}", 8, gang=Gang(key=name, size=size)) for n in range(size)]
