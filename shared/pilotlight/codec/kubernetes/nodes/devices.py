"""Devices that drivers publish of each node (DRA), by kind: how many there are, and how many are free.

Devices that consume counters (partitions of one GPU) are counted as many as can be had at once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple, TypeVar

from pilotlight.codec.kubernetes.device_objects import (
    Attribute,
    CounterSet,
    Device,
    Devices,
    ResourceClaim,
    Result,
    SliceSpec,
)
from pilotlight.facts.fit.claimed_devices import CLAIMED, DeviceKind
from pilotlight.facts.workload import AMD, MIG_PREFIX, NVIDIA
from pilotlight.units import quantity

V = TypeVar("V")

_OF_DRIVER = {"gpu.nvidia.com": NVIDIA, "gpu.amd.com": AMD}
_Counter = tuple[str, str, str]
"""Pool, set, name."""
DeviceId = tuple[str, str, str]
"""Driver, pool, device."""


class OnNode(NamedTuple):
    """A node's devices by kind, how many of each kind's resource are free, and by what resource each is counted."""

    kinds: tuple[DeviceKind, ...]
    free: Mapping[str, int]
    resources: Mapping[DeviceId, str]


def slices_by_node(devices: Devices) -> dict[str, list[tuple[SliceSpec, Sequence[CounterSet]]]]:
    """The slices that hold, by node, each with the counters of its pool."""
    newest: dict[tuple[str, str], int] = {}
    for one in devices.slices.values():
        key = (one.spec.driver, one.spec.pool.name)
        newest[key] = max(newest.get(key, 0), one.spec.pool.generation)
    held = [
        s.spec for s in devices.slices.values() if s.spec.pool.generation == newest[s.spec.driver, s.spec.pool.name]
    ]
    counters: dict[tuple[str, str], list[CounterSet]] = defaultdict(list)
    for spec in held:
        counters[spec.driver, spec.pool.name].extend(spec.shared_counters)
    found: dict[str, list[tuple[SliceSpec, Sequence[CounterSet]]]] = defaultdict(list)
    for spec in held:
        if spec.node_name:
            found[spec.node_name].append((spec, counters[spec.driver, spec.pool.name]))
    return found


def allocated_devices(devices: Devices) -> set[DeviceId]:
    """The devices that claims have: driver, pool, device."""
    return {(r.driver, r.pool, r.device) for claim in devices.claims.values() for r in claim_results(claim)}


def claim_results(claim: ResourceClaim) -> Iterator[Result]:
    """Devices that a claim has for use, not for administration."""
    allocation = claim.status.allocation
    yield from (r for r in allocation.devices.results if not r.admin_access) if allocation is not None else ()


def node_devices(
    slices: Sequence[tuple[SliceSpec, Sequence[CounterSet]]],
    gone: Collection[DeviceId],
    plugins: Collection[str],
    devices: Devices,
) -> OnNode:
    """The kinds of a node's devices. ``plugins`` are resources that a device plugin offers there too."""
    mapped = {c.spec.extended_resource_name for c in devices.classes.values()} - {""}
    kinds: list[DeviceKind] = []
    free: dict[str, int] = {}
    resources: dict[DeviceId, str] = {}
    for driver in sorted({spec.driver for spec, _ in slices}):
        mine = [(spec, counters) for spec, counters in slices if spec.driver == driver]
        full = _amounts(mine)
        left = dict(full)
        alike: dict[str, list[tuple[str, Device]]] = defaultdict(list)
        for pool, device in ((spec.pool.name, device) for spec, _ in mine for device in spec.devices):
            resource = resources[driver, pool, device.name] = _resource(driver, device, plugins, mapped)
            alike[resource].append((pool, device))
            if (driver, pool, device.name) in gone:
                _take(device, pool, left)
        for resource, found in sorted(alike.items()):
            at_once = _at_once(found, full)
            there = [(p, d) for p, d in found if (driver, p, d.name) not in gone and not _closed(d)]
            kinds.append(_kind(driver, resource, [d for _, d in found], at_once, resource in plugins))
            free[resource] = _at_once(there, left)
    return OnNode(tuple(kinds), free, resources)


def _at_once(found: Iterable[tuple[str, Device]], counters: Mapping[_Counter, Decimal]) -> int:
    """Number of these devices that can be had at once."""
    left = dict(counters)
    return sum(1 for pool, device in found if _take(device, pool, left))


def _amounts(slices: Iterable[tuple[SliceSpec, Sequence[CounterSet]]]) -> dict[_Counter, Decimal]:
    return {
        (spec.pool.name, each.name, name): quantity(amount.value)
        for spec, sets in slices
        for each in sets
        for name, amount in each.counters.items()
    }


def _take(device: Device, pool: str, left: dict[_Counter, Decimal]) -> bool:
    """Take what a device consumes, where that is there; one that consumes no counters is always there."""
    wanted = {
        (pool, each.counter_set, name): quantity(amount.value)
        for each in device.consumes_counters
        for name, amount in each.counters.items()
    }
    if any(left.get(key, Decimal(0)) < amount for key, amount in wanted.items()):
        return False
    for key, amount in wanted.items():
        left[key] -= amount
    return True


def _closed(device: Device) -> bool:
    return any(taint.effect in ("NoSchedule", "NoExecute") for taint in device.taints)


def _resource(driver: str, device: Device, plugins: Collection[str], mapped: Collection[str]) -> str:
    """By what room is counted: the resource that pods may ask for too, else one that only claims have."""
    whole = _OF_DRIVER.get(driver)
    said = device.attributes
    kind, profile = ((said.get(name) or Attribute()).string or "" for name in ("type", "profile"))
    if whole is None or kind not in ("", "gpu", "mig"):
        return f"{CLAIMED}{driver}" + (f"/{kind}" if kind else "")
    name = f"{MIG_PREFIX}{profile}" if kind == "mig" else whole
    return name if name in plugins or name in mapped else f"{CLAIMED}{name}"


def _kind(driver: str, resource: str, found: Sequence[Device], count: int, plugin: bool) -> DeviceKind:
    attributes = [_said(driver, device) for device in found]
    capacity = [{_full(driver, n): str(c.value) for n, c in device.capacity.items()} for device in found]
    common, same = _common(attributes), _common(capacity)
    unlike = set[str]().union(*attributes) - common.keys() | set[str]().union(*capacity) - same.keys()
    return DeviceKind(
        driver=driver,
        resource=resource,
        count=count,
        attributes={n: v for n, v in common.items() if not isinstance(v, tuple)},
        versions={n: v[0] for n, v in common.items() if isinstance(v, tuple)},
        capacity=same,
        differs=tuple(sorted(unlike)),
        plugin=plugin,
        shares=any(device.allow_multiple_allocations for device in found),
    )


def _common(each: Sequence[Mapping[str, V]]) -> dict[str, V]:
    """Those that all have, and have alike, by name."""
    return {n: v for n, v in sorted(each[0].items()) if all(other.get(n) == v for other in each)}


def _said(driver: str, device: Device) -> dict[str, str | int | bool | tuple[str]]:
    """A device's attributes by their full names; versions in a tuple."""
    found: dict[str, str | int | bool | tuple[str]] = {}
    for name, value in device.attributes.items():
        for one in (value.string, value.truth, value.number):
            if one is not None:
                found[_full(driver, name)] = one
        if value.version is not None:
            found[_full(driver, name)] = (value.version,)
    return found


def _full(driver: str, name: str) -> str:
    return name if "/" in name else f"{driver}/{name}"
