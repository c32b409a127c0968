"""Claims for devices (DRA) of pods: the devices that a waiting pod asks for, and those that one on a node holds."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce

from msgspec.structs import replace

from pilotlight.codec.kubernetes.bounds import CLAIMS, DEVICE_ASKS, DEVICE_TEXT, Unreadable, too_many
from pilotlight.codec.kubernetes.device_objects import (
    DeviceClaimSpec,
    Devices,
    ExactRequest,
)
from pilotlight.codec.kubernetes.nodes.devices import DeviceId, OnNode, claim_results
from pilotlight.codec.kubernetes.pods.requests import IMPLICIT, Asked, Request, read_amounts, sum_requests, whole_units
from pilotlight.codec.kubernetes.typed_objects import Pod
from pilotlight.facts.fit.claimed_devices import Claimed, DeviceAsk
from pilotlight.facts.workload import NVIDIA, GpuRequest, is_gpu

DISK, ZERO = "ephemeral-storage", Decimal(0)
_MOST = 64
"""So many devices a claim can have."""


def with_claims(asked: Sequence[Asked], by_node: Mapping[str, OnNode], devices: Devices) -> list[Asked]:
    """Requests of pods with their claims read: waiting ones what they want, those on nodes what they hold."""
    sharing = by_sharing((a.pod for a in asked if not a.pod.node and not a.pod.is_finished), devices)
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
    gpu = asked.gpu if not pod.node else _held(asked, by_node.get(pod.node), devices)
    return asked._replace(request=request, gpu=gpu, claimed=claimed, claims_read=True)


def uses_claims(asked: Asked) -> bool:
    """True where a pod asks for devices by claim."""
    return bool(asked.pod.spec.resource_claims) or any(name.startswith(IMPLICIT) for name in asked.request)


def _held(asked: Asked, on: OnNode | None, devices: Devices) -> GpuRequest | None:
    """The GPUs that a pod on a node has: by claim, else those that it asks a device plugin for. Where it asks for none,
    of a claim that pods share the first has all; in doubt it has one."""
    pod = asked.pod
    names = [on.resources[each] for each in held_by(pod, devices) if each in on.resources] if on is not None else []
    gpus = [name for name in names if is_gpu(name)]
    if gpus:
        return GpuRequest(count=gpus.count(gpus[0]), resource=gpus[0])
    if asked.gpu is not None or on is None:
        return asked.gpu or (GpuRequest(count=1) if pod.spec.resource_claims else None)
    shared = any(claim.get("resourceClaimName") for claim in pod.spec.resource_claims)
    return GpuRequest(count=0, resource=next((k.resource for k in on.kinds), NVIDIA)) if shared and not names else None


def _with_sharers(asked: Sequence[Asked], sharing: Mapping[str, str]) -> list[Asked]:
    """The first of pods that share a claim needs room for the others too, or for as many of them as a node holds."""
    others: dict[str, list[Request]] = {}
    for a in asked:
        first = sharing.get(a.pod.metadata.uid or a.pod.name)
        if first is not None:
            others.setdefault(first, []).append(a.request)
    return [_for_all(a, others[a.pod.name]) if a.pod.name in others and not a.pod.node else a for a in asked]


def _for_all(a: Asked, others: Sequence[Request]) -> Asked:
    each = tuple(
        (
            whole_units(one.get("cpu", ZERO), 1000),
            whole_units(one.get("memory", ZERO)),
            whole_units(one.get(DISK, ZERO)),
        )
        for one in others[:_MOST]
    )
    claimed = replace(a.claimed, sharers=each) if a.claimed is not None else None
    return a._replace(request=reduce(sum_requests, others, a.request), claimed=claimed)


def asks_of(pod: Pod, request: Request, devices: Devices) -> Claimed | None:
    """Devices that a pod wants by claim; None where it wants nothing so. Raises ``Unreadable``.

    A pod on a node is asked what it would want on another one.
    """
    if len(pod.spec.resource_claims) > CLAIMS.most:
        raise too_many("claims for devices", len(pod.spec.resource_claims), CLAIMS)
    implicit = _implicit(request, devices)
    specs = [found for each in pod.spec.resource_claims if (found := _spec(pod, each, devices)) is not None]
    if not specs and not implicit:
        return None
    if not devices.readable:
        raise Unreadable(
            "claim-rights", "asks for devices by claim, which may not be read here: run pilotlight connect again"
        )
    asks = [
        tuple(
            _ask(one, devices, request.name, _differs(spec, request.name))
            for one in (request.exactly, *request.first_available)
            if one
        )
        for spec in specs
        for request in spec.devices.requests
    ]
    alike = _alike(specs)
    wanted = tuple(a for a in (*asks, *implicit) if a)
    _within_bounds(wanted, alike)
    return Claimed(asks=wanted, alike=alike)


def _implicit(request: Request, devices: Devices) -> list[tuple[DeviceAsk]]:
    """Devices that a pod asks for as it does for other resources, by the name of their class."""
    return [
        (_ask(ExactRequest(name=name, device_class_name=name.removeprefix(IMPLICIT), count=int(n)), devices, "", ""),)
        for name, n in request.items()
        if name.startswith(IMPLICIT) and n
    ]


def _alike(specs: Iterable[DeviceClaimSpec]) -> tuple[str, ...]:
    """Attributes in which the devices of a claim are to be alike."""
    constraints = [c for spec in specs for c in spec.devices.constraints]
    return tuple(sorted({c.match_attribute for c in constraints if c.match_attribute}))


def _differs(spec: DeviceClaimSpec, request: str) -> str:
    """Why nobody can tell which devices a request gets whose devices are to differ; else empty."""
    found = (c.distinct_attribute for c in spec.devices.constraints if not c.requests or request in c.requests)
    distinct = next((name for name in found if name), "")
    return f"its claim wants devices that differ in {distinct}: which do, cannot be told: by hand" if distinct else ""


def _within_bounds(asks: Iterable[tuple[DeviceAsk, ...]], alike: Sequence[str]) -> None:
    """Raise ``Unreadable`` for more than can be tried on every kind of devices."""
    each = [ask for alternatives in asks for ask in alternatives]
    if (count := sum(1 + len(ask.selectors) for ask in each) + len(alike)) > DEVICE_ASKS.most:
        raise too_many("requests and selectors of devices", count, DEVICE_ASKS)
    if (text := sum(len(one) for ask in each for one in ask.selectors)) > DEVICE_TEXT.most:
        raise too_many("characters of selectors of devices", text, DEVICE_TEXT)


def _spec(pod: Pod, claim: Mapping[str, object], devices: Devices) -> DeviceClaimSpec | None:
    """Spec of one of a pod's claims; None for one that has its devices already or wants none."""
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


def _ask(one: ExactRequest, devices: Devices, request: str, untold: str) -> DeviceAsk:
    known = devices.classes.get(one.device_class_name)
    named = f"{one.device_class_name}" + (f" ({request})" if request else "")
    if known is None and devices.readable:
        raise Unreadable("claim-missing", f"its DeviceClass {one.device_class_name} is not there: make it")
    if one.admin_access:
        untold = "its claim wants admin access to devices: which it gets cannot be told: buy by hand"
    if one.allocation_mode not in ("ExactCount", "All") or not 0 < one.count <= _MOST:
        raise Unreadable(
            "claim", f"its claim wants {one.count} devices, {one.allocation_mode}: no node is known for it"
        )
    amounts = read_amounts((one.capacity.requests if one.capacity else None) or {}, f"its claim: {named}: capacity")
    both = (*(known.spec.selectors if known else ()), *one.selectors)
    return DeviceAsk(
        named=named,
        selectors=tuple(s.cel.expression for s in both),
        count=one.count,
        every=one.allocation_mode == "All",
        amounts=tuple((name, str(n)) for name, n in sorted(amounts.items())),
        untold=untold,
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
        for r in claim_results(claim)
    ]
