"""Devices by claim (DRA): what drivers publish of each node, what is taken of it, and what pods ask for.

Source: the Kubernetes API reference, v1.36, ``resource.k8s.io/v1``. Devices that consume counters (partitions of one
GPU) are counted as many as can be had at once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import msgspec

from pilotlight.codec.kubernetes.bounds import CLAIMS, DEVICE_ASKS, DEVICE_TEXT, Unreadable, too_many
from pilotlight.codec.kubernetes.pods.pods import Asked
from pilotlight.codec.kubernetes.pods.requests import IMPLICIT, Request, summed
from pilotlight.codec.kubernetes.typed_objects import Metadata, Pod, Wire
from pilotlight.facts.fit.claimed_devices import CLAIMED, Claimed, DeviceAsk, DeviceKind
from pilotlight.facts.workload import AMD, MIG_PREFIX, NVIDIA, GpuRequest, is_gpu
from pilotlight.units import quantity

_OF_DRIVER = {"gpu.nvidia.com": NVIDIA, "gpu.amd.com": AMD}
_MOST = 64
"""So many devices a claim can have."""
_Counter = tuple[str, str, str]
"""Pool, set, name."""
DeviceId = tuple[str, str, str]
"""Driver, pool, device."""


class Attribute(Wire, frozen=True):
    """What a device says of itself: one of these."""

    truth: bool | None = msgspec.field(default=None, name="bool")
    number: int | None = msgspec.field(default=None, name="int")
    string: str | None = None
    version: str | None = None


class Capacity(Wire, frozen=True):
    """An amount."""

    value: str | int | float = 0


class Consumes(Wire, frozen=True):
    """What a device takes of a set of counters."""

    counter_set: str
    counters: dict[str, Capacity] = msgspec.field(default_factory=dict)


class DeviceTaint(Wire, frozen=True):
    """Keeps claims off a device."""

    key: str = ""
    effect: str = ""


class Device(Wire, frozen=True):
    """A device, or a part of one."""

    name: str
    attributes: dict[str, Attribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, Capacity] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[Consumes, ...] = ()
    taints: tuple[DeviceTaint, ...] = ()


class CounterSet(Wire, frozen=True):
    """What devices of one set share."""

    name: str
    counters: dict[str, Capacity] = msgspec.field(default_factory=dict)


class SlicePool(Wire, frozen=True):
    """Whose part a slice is; only the newest generation of a pool holds."""

    name: str
    generation: int = 0


class SliceSpec(Wire, frozen=True):
    """The devices of a node that one driver publishes."""

    driver: str
    pool: SlicePool
    node_name: str = ""
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Wire, frozen=True):
    """A ResourceSlice."""

    metadata: Metadata
    spec: SliceSpec


class Cel(Wire, frozen=True):
    """An expression."""

    expression: str = ""


class DeviceSelector(Wire, frozen=True):
    """What chooses devices."""

    cel: Cel = Cel()


class DeviceClassSpec(Wire, frozen=True):
    """What a class chooses, and as what resource pods may ask for it."""

    selectors: tuple[DeviceSelector, ...] = ()
    extended_resource_name: str = ""


class DeviceClass(Wire, frozen=True):
    """A DeviceClass."""

    metadata: Metadata
    spec: DeviceClassSpec = DeviceClassSpec()


class ExactRequest(Wire, frozen=True):
    """So many devices of a class."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    capacity: dict[str, object] | None = None


class DeviceRequest(Wire, frozen=True):
    """Devices, or the first alternative that is there."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[ExactRequest, ...] = ()


class Constraint(Wire, frozen=True):
    """What all devices of a claim have to agree in, or to differ in."""

    match_attribute: str = ""
    distinct_attribute: str = ""
    requests: tuple[str, ...] = ()


class ClaimDevices(Wire, frozen=True):
    """What a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[Constraint, ...] = ()


class DeviceClaimSpec(Wire, frozen=True):
    """What a claim asks for."""

    devices: ClaimDevices = ClaimDevices()


class Result(Wire, frozen=True):
    """A device that a claim has."""

    driver: str
    pool: str
    device: str
    admin_access: bool = False


class Results(Wire, frozen=True):
    """The devices that a claim has."""

    results: tuple[Result, ...] = ()


class Allocation(Wire, frozen=True):
    """What a claim was given."""

    devices: Results = Results()


class Consumer(Wire, frozen=True):
    """Who uses a claim."""

    name: str = ""
    uid: str = ""


class DeviceClaimStatus(Wire, frozen=True):
    """How far it is."""

    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()


class ResourceClaim(Wire, frozen=True):
    """A ResourceClaim."""

    metadata: Metadata
    spec: DeviceClaimSpec = DeviceClaimSpec()
    status: DeviceClaimStatus = DeviceClaimStatus()


class TemplateSpec(Wire, frozen=True):
    """The claim to make."""

    spec: DeviceClaimSpec = DeviceClaimSpec()


class ResourceClaimTemplate(Wire, frozen=True):
    """A ResourceClaimTemplate."""

    metadata: Metadata
    spec: TemplateSpec = TemplateSpec()


class Devices(Wire, frozen=True):
    """All of it, by name; ``readable`` tells whether it could be listed."""

    slices: dict[str, ResourceSlice] = msgspec.field(default_factory=dict)
    classes: dict[str, DeviceClass] = msgspec.field(default_factory=dict)
    claims: dict[str, ResourceClaim] = msgspec.field(default_factory=dict)
    templates: dict[str, ResourceClaimTemplate] = msgspec.field(default_factory=dict)
    readable: bool = True


class OnNode(NamedTuple):
    """A node's devices by kind, how many of each kind's resource are free, and by what resource each is counted."""

    kinds: tuple[DeviceKind, ...]
    free: Mapping[str, int]
    resources: Mapping[DeviceId, str]


def asks_of(pod: Pod, request: Request, devices: Devices) -> Claimed | None:
    """What a pod wants by claim; None where it wants nothing so. Raises ``Unreadable``.

    A pod on a node is asked what it would want on another one.
    """
    if len(pod.spec.resource_claims) > CLAIMS.most:
        raise too_many("claims for devices", len(pod.spec.resource_claims), CLAIMS)
    implicit = [
        (_ask(ExactRequest(name=name, device_class_name=name.removeprefix(IMPLICIT), count=int(n)), devices, ""),)
        for name, n in request.items()
        if name.startswith(IMPLICIT) and n
    ]
    specs = [found for each in pod.spec.resource_claims if (found := _spec(pod, each, devices)) is not None]
    if not specs and not implicit:
        return None
    if not devices.readable:
        raise Unreadable(
            "claim-rights", "asks for devices by claim, which may not be read here: apply rbac/observe.yaml again"
        )
    asks = [
        tuple(_ask(one, devices, request.name) for one in (request.exactly, *request.first_available) if one)
        for spec in specs
        for request in spec.devices.requests
    ]
    constraints = [c for spec in specs for c in spec.devices.constraints]
    if distinct := next((c.distinct_attribute for c in constraints if c.distinct_attribute), ""):
        raise Unreadable(
            "claim", f"its claim wants devices that differ in {distinct}: which do, cannot be told: by hand"
        )
    alike = tuple(sorted({c.match_attribute for c in constraints if c.match_attribute}))
    wanted = tuple(a for a in (*asks, *implicit) if a)
    _within_bounds(wanted, alike)
    return Claimed(asks=wanted, alike=alike)


def _within_bounds(asks: Iterable[tuple[DeviceAsk, ...]], alike: Sequence[str]) -> None:
    """Raise ``Unreadable`` for more than can be tried on every kind of devices."""
    each = [ask for alternatives in asks for ask in alternatives]
    if (count := sum(1 + len(ask.selectors) for ask in each) + len(alike)) > DEVICE_ASKS.most:
        raise too_many("requests and selectors of devices", count, DEVICE_ASKS)
    if (text := sum(len(one) for ask in each for one in ask.selectors)) > DEVICE_TEXT.most:
        raise too_many("characters of selectors of devices", text, DEVICE_TEXT)


def _spec(pod: Pod, claim: Mapping[str, object], devices: Devices) -> DeviceClaimSpec | None:
    """What one of a pod's claims asks for; None for one that has its devices already or wants none."""
    name, space = str(claim.get("name", "?")), pod.metadata.namespace
    template = claim.get("resourceClaimTemplateName")
    made = claim.get("resourceClaimName") or _made_for(pod, name)
    found = devices.claims.get(f"{space}/{made}") if made else None
    if found is not None:
        if not pod.node and found.status.allocation is not None and found.status.allocation.devices.results:
            raise Unreadable(
                "claim-allocated",
                f"has its devices by ResourceClaim {made} already: it waits for their node, not for a new one",
            )
        return found.spec
    if template is not None:
        written = devices.templates.get(f"{space}/{template}")
        if written is None and devices.readable:
            raise Unreadable("claim-missing", f"its ResourceClaimTemplate {template} is not there: make it")
        return written.spec.spec if written is not None else DeviceClaimSpec()
    if devices.readable:
        raise Unreadable("claim-missing", f"its ResourceClaim {made or name} is not there: make it")
    return DeviceClaimSpec()


def _made_for(pod: Pod, name: str) -> str:
    """The claim that was made for a pod from a template."""
    found = (s for s in pod.status.resource_claim_statuses if s.get("name") == name)
    return str(next(found, {}).get("resourceClaimName") or "")


def _ask(one: ExactRequest, devices: Devices, request: str) -> DeviceAsk:
    known = devices.classes.get(one.device_class_name)
    named = f"{one.device_class_name}" + (f" ({request})" if request else "")
    if known is None and devices.readable:
        raise Unreadable("claim-missing", f"its DeviceClass {one.device_class_name} is not there: make it")
    if one.admin_access or one.capacity:
        what = "admin access to devices" if one.admin_access else "parts of a device's capacity"
        raise Unreadable("claim", f"its claim wants {what}: what a node has left of it cannot be told: buy by hand")
    if one.allocation_mode not in ("ExactCount", "All") or not 0 < one.count <= _MOST:
        raise Unreadable(
            "claim", f"its claim wants {one.count} devices, {one.allocation_mode}: no node is known for it"
        )
    both = (*(known.spec.selectors if known else ()), *one.selectors)
    return DeviceAsk(
        named=named,
        selectors=tuple(s.cel.expression for s in both),
        count=one.count,
        every=one.allocation_mode == "All",
    )


def by_sharing(pods: Iterable[Pod], devices: Devices) -> dict[str, str]:
    """Of pods that share a claim which has no devices yet: by uid of each but the first, that first one."""
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for pod in sorted(pods, key=lambda p: (p.metadata.created_at, p.name)):
        for claim in pod.spec.resource_claims:
            name = claim.get("resourceClaimName")
            if name:
                known = first.setdefault(f"{pod.metadata.namespace}/{name}", pod.name)
                if known != pod.name:
                    found[pod.metadata.uid or pod.name] = known
    return found


def on_nodes(devices: Devices) -> dict[str, list[tuple[SliceSpec, Sequence[CounterSet]]]]:
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


def taken(devices: Devices) -> set[DeviceId]:
    """The devices that claims have: driver, pool, device."""
    return {(r.driver, r.pool, r.device) for claim in devices.claims.values() for r in _results(claim)}


def _results(claim: ResourceClaim) -> Iterator[Result]:
    allocation = claim.status.allocation
    yield from (r for r in allocation.devices.results if not r.admin_access) if allocation is not None else ()


def held_by(pod: Pod, devices: Devices) -> list[DeviceId]:
    """The devices of the claims that a bound pod was the first to reserve."""
    claims = (
        devices.claims.get(f"{pod.metadata.namespace}/{name}")
        for each in pod.spec.resource_claims[: int(CLAIMS.most)]
        if (name := each.get("resourceClaimName") or _made_for(pod, str(each.get("name", "?"))))
    )
    return [
        (r.driver, r.pool, r.device)
        for claim in claims
        if claim is not None
        and claim.status.reserved_for[:1]
        and claim.status.reserved_for[0].name == pod.metadata.name
        for r in _results(claim)
    ]


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
    """How many of these devices can be had at once."""
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
    first, *rest = (_said(driver, device) for device in found)
    names = {name for said in (first, *rest) for name in said}
    common = {n: first[n] for n in names if n in first and all(said.get(n) == first[n] for said in rest)}
    capacity = [{_full(driver, n): str(c.value) for n, c in device.capacity.items()} for device in found]
    same = {n: v for n, v in capacity[0].items() if all(each.get(n) == v for each in capacity)}
    unlike = names - common.keys() | {n for each in capacity for n in each if n not in same}
    return DeviceKind(
        driver=driver,
        resource=resource,
        count=count,
        attributes={n: v for n, v in sorted(common.items()) if not isinstance(v, tuple)},
        versions={n: v[0] for n, v in sorted(common.items()) if isinstance(v, tuple)},
        capacity=dict(sorted(same.items())),
        differs=tuple(sorted(unlike)),
        plugin=plugin,
    )


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


def with_claims(asked: Sequence[Asked], by_node: Mapping[str, OnNode], devices: Devices) -> list[Asked]:
    """What pods ask for with their claims read: waiting ones what they want, those on nodes what they hold."""
    sharing = by_sharing((a.pod for a in asked if not a.pod.node and not a.pod.finished), devices)
    read = [_claims_read(a, by_node, devices, sharing) for a in asked]
    return _with_sharers(read, sharing) if sharing else read


def _claims_read(asked: Asked, by_node: Mapping[str, OnNode], devices: Devices, sharing: Mapping[str, str]) -> Asked:
    pod = asked.pod
    if not uses_claims(asked):
        return asked
    try:
        first = sharing.get(pod.metadata.uid or pod.name)
        if first is not None:
            raise Unreadable(
                "claim-shared", f"has its devices in one ResourceClaim with {first}: it comes where that is"
            )
        claimed = asks_of(pod, asked.request, devices)
    except Unreadable as problem:
        if not pod.node:
            return asked._replace(problem=asked.problem or problem, claims_read=True)
        claimed = None
    request = {name: amount for name, amount in asked.request.items() if not name.startswith(IMPLICIT)}
    gpu = asked.gpu if not pod.node else _held(pod, by_node.get(pod.node), devices) or asked.gpu
    return asked._replace(request=request, gpu=gpu, claimed=claimed, claims_read=True)


def uses_claims(asked: Asked) -> bool:
    """Whether a pod asks for devices by claim."""
    return bool(asked.pod.spec.resource_claims) or any(name.startswith(IMPLICIT) for name in asked.request)


def _held(pod: Pod, on: OnNode | None, devices: Devices) -> GpuRequest | None:
    """The GPUs that a pod on a node has by claim. Of a claim that pods share the first has all; in doubt it has one."""
    if on is None:
        return GpuRequest(count=1) if pod.spec.resource_claims else None
    names = [on.resources[each] for each in held_by(pod, devices) if each in on.resources]
    gpus = [name for name in names if is_gpu(name)]
    if gpus:
        return GpuRequest(count=gpus.count(gpus[0]), resource=gpus[0])
    shared = any(claim.get("resourceClaimName") for claim in pod.spec.resource_claims)
    return GpuRequest(count=0, resource=next((k.resource for k in on.kinds), NVIDIA)) if shared and not names else None


def _with_sharers(asked: Sequence[Asked], sharing: Mapping[str, str]) -> list[Asked]:
    """The first of pods that share a claim needs room for the others too."""
    more: dict[str, Request] = {}
    for a in asked:
        first = sharing.get(a.pod.metadata.uid or a.pod.name)
        if first is not None:
            more[first] = summed(more.get(first, {}), a.request)
    return [
        a._replace(request=summed(a.request, more[a.pod.name])) if a.pod.name in more and not a.pod.node else a
        for a in asked
    ]
