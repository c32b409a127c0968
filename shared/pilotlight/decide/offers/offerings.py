"""Offerings of the policy's pools: one for each pool and zone, priced and with its predicted allocatable."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from pilotlight.decide.work import Work
from pilotlight.facts import labels
from pilotlight.facts.capacity import CapacityType, Offering
from pilotlight.facts.offers.catalog import NVML_MIB, Catalog, InstanceType, empty_node
from pilotlight.facts.place.homes import but_home
from pilotlight.facts.policy import CloudName, Policy, PoolPolicy
from pilotlight.facts.workload import Finding
from pilotlight.units import UsdPerHour

NO_BUYS = 3
"""At so many times ``prices.max_age_days`` a price is too old to buy at."""


def offerings(policy: Policy, catalog: Catalog, region: str = "") -> tuple[tuple[Offering, ...], tuple[Finding, ...]]:
    """Every offering of the policy's pools, and a finding for each pool whose type or price is unknown.

    ``region`` is that of pools whose zones do not say one. Another region's price is none; where no region is known,
    only a price on which the files of all regions agree is one.
    """
    found: list[Offering] = []
    findings: list[Finding] = []
    for name, pool in policy.pools.items():
        where = _region(pool.cloud, pool.zones[0] if pool.zones else "") or region
        machine = catalog.sold_in(where, pool.instance_type)
        if machine is None:
            from pilotlight.decide.offers.unbuyable import unknown_type

            findings.append(unknown_type(name, pool, catalog))
            continue
        unsaid = not where and bool(machine.region)
        here = catalog.sold_anywhere(machine, pool.instance_type) if unsaid else _priced_in(machine, where)
        price = price_of(policy, pool.instance_type, here, pool.capacity_type)
        if price is None:
            from pilotlight.decide.offers.unbuyable import unknown_price

            findings.append(unknown_price(name, pool, where, machine))
            continue
        machine = here
        found += [_offering(policy, name, pool, machine, price, zone) for zone in pool.zones or ("",)]
    return tuple(found), tuple(findings)


def _priced_in(machine: InstanceType, where: str) -> InstanceType:
    """A machine without the prices of another region."""
    if not machine.region or where == machine.region:
        return machine
    disks_there = machine.disk_gib > 0
    return replace(machine, prices={}, standby_usd_per_hour=None if disks_there else machine.standby_usd_per_hour)


def price_of(policy: Policy, name: str, machine: InstanceType, capacity_type: CapacityType) -> UsdPerHour | None:
    """Dollars an hour for one node with its disks and address: the policy's override, else the catalogue's.

    What is reserved is paid for whether it runs or not: a node of it costs its disks and address alone. Flex-start
    without a price of its own costs no more than on demand.
    """
    override = policy.prices.overrides.get(f"{name}/{capacity_type}")
    if override is not None:
        return override + machine.extra_usd_per_hour
    if capacity_type == "reserved":
        return machine.extra_usd_per_hour
    if capacity_type == "flex-start" and capacity_type not in machine.prices:
        return price_of(policy, name, machine, "on-demand")
    price = machine.prices.get(capacity_type)
    return None if price is None else price.usd_per_hour + machine.extra_usd_per_hour


def stale_prices(policy: Policy, offered: Iterable[Offering], now: datetime) -> tuple[Finding, ...]:
    """A finding for each pool whose price is older than ``prices.max_age_days``. Overrides have no age."""
    days = policy.prices.max_age_days
    return tuple(
        Finding(
            subject=f"pool {o.pool}",
            code="stale-price",
            message=(
                f"the {o.capacity_type} price of {o.instance_type} is of {o.priced_at:%Y-%m-%d}, older than "
                f"{days} days: {renewal(policy, o)}; nothing is bought at {NO_BUYS} times that age"
            ),
        )
        for o in offered
        if o.priced_at is not None and (now - o.priced_at).days > days
    )


TOLD_BY: Mapping[CloudName, str] = {
    "eks": "pilotlight prices FILE --region REGION writes today's into the file that prices.files names",
}
"""What renews the prices of a cloud that tells them."""


def renewal(policy: Policy, offering: Offering) -> str:
    """Advice to a person on an old price."""
    pool = policy.pools.get(offering.pool)
    own = f'prices.overrides: {{"{offering.instance_type}/{offering.capacity_type}": YOUR-PRICE}}'
    known = TOLD_BY.get(pool.cloud) if pool is not None else None
    return f"{known}, or set {own}" if known else f"check it, then set {own} or a newer catalogue"


def too_old(policy: Policy, offering: Offering, now: datetime) -> bool:
    """True for a price so old that nothing is bought at it."""
    at = offering.priced_at
    return at is not None and (now - at).days > NO_BUYS * policy.prices.max_age_days


def _offering(
    policy: Policy, name: str, pool: PoolPolicy, machine: InstanceType, price: UsdPerHour, zone: str
) -> Offering:
    empty = empty_node(machine, pool.slices, pool.daemonsets)
    return Offering(
        pool=name,
        instance_type=pool.instance_type,
        capacity_type=pool.capacity_type,
        gpu_model=machine.gpu_model,
        gpus=machine.gpus,
        usd_per_hour=price,
        zone=zone,
        gpu_memory_gib=machine.gpu_memory_gib,
        minimum_s=machine.minimum_s,
        increment_s=machine.increment_s,
        boot_s=machine.boot_s,
        wake_s=machine.wake_s,
        standby_usd_per_hour=machine.standby_usd_per_hour,
        resources=empty.resources,
        resource=empty.resource,
        whole_gpus=empty.whole_gpus,
        slices=empty.parts,
        labels=_labels(name, pool, machine, zone),
        taints=but_home(pool.taints) if pool.taints else (),
        interruptions_per_hour=machine.interruptions_per_hour if pool.capacity_type == "spot" else 0.0,
        on_demand_usd_per_hour=price_of(policy, pool.instance_type, machine, "on-demand"),
        priced_at=_priced_at(policy, pool, machine),
    )


def _priced_at(policy: Policy, pool: PoolPolicy, machine: InstanceType) -> datetime | None:
    kinds = [pool.capacity_type] if pool.capacity_type in machine.prices else [pool.capacity_type, "on-demand"]
    if pool.capacity_type == "reserved" or any(f"{pool.instance_type}/{k}" in policy.prices.overrides for k in kinds):
        return None
    return datetime.fromisoformat(machine.prices[kinds[-1]].date).replace(tzinfo=UTC)


def _labels(name: str, pool: PoolPolicy, machine: InstanceType, zone: str) -> dict[str, str]:
    """The labels a node of a pool will carry; the policy's win over the well-known ones. Its name is not known yet."""
    known = {
        labels.INSTANCE_TYPE: pool.instance_type,
        labels.ZONE: zone,
        labels.REGION: _region_label(pool.cloud, zone),
        labels.OS: "linux",
        labels.ARCH: machine.arch,
        labels.GPU_PRODUCT: machine.gpu_product,
        labels.GPU_PRESENT: "true" if machine.gpu_product else "",
        labels.GPU_MEMORY: str(NVML_MIB.get(machine.gpu_product, "")),
        labels.POOL: name,
        labels.GPU_MODEL: machine.gpu_model,
        labels.CAPACITY_TYPE: pool.capacity_type,
    }
    return {labels.HOSTNAME: ""} | {key: value for key, value in known.items() if value} | pool.labels


def _region(cloud: str, zone: str) -> str:
    """Where a zone's prices hold: the region that its name or id says; for a local zone of AWS that place; or empty."""
    if cloud == "gke":
        return zone.rpartition("-")[0]
    if cloud != "eks" or not zone:
        return ""
    if zone[-1:].isalpha() and zone[-2:-1].isdigit():
        return zone[:-1]
    from pilotlight.facts.offers.aws_zones import region_of_id

    return region_of_id(zone)


def _region_label(cloud: str, zone: str) -> str:
    """The region as nodes have it: a local zone of AWS is part of one."""
    place = _region(cloud, zone)
    if cloud != "eks" or place.count("-") < 4:
        return place
    from pilotlight.facts.offers.aws_zones import region_around

    return region_around(place)


def tell_stale_prices(work: Work) -> None:
    """Tell of pools whose price is too old."""
    work.findings += stale_prices(work.policy, work.by_pool.values(), work.now)
