"""Requests of pods to a node: one's its effective request and its GPUs.

Effective request, as the scheduler counts it (KEP-753 sidecars, KEP-2837 pod-level resources): the larger of all
containers with all sidecars, and of each init container with the sidecars declared before it; plus overhead.
Limits stand in for absent requests. A container that is resized where it runs takes the larger of what it asks for and
what it has; where its node cannot do it, what it has. Pod-level requests replace the sum of the containers.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from pilotlight.codec.kubernetes import bounds
from pilotlight.codec.kubernetes.bounds import Unreadable
from pilotlight.codec.kubernetes.typed_objects import Container, Pod, PodSpec, ResourceLists
from pilotlight.facts import labels
from pilotlight.facts.fit.claimed_devices import Claimed
from pilotlight.facts.workload import NVIDIA, WHOLE_DEVICES, GpuRequest, is_gpu
from pilotlight.units import MILLI_PER_GPU, milli, quantity

Request = dict[str, Decimal]
"""Amounts by resource name: cores, bytes or devices."""

POD_LEVEL, HUGE_PAGES = ("cpu", "memory"), "hugepages-"
"""What may be asked for on a pod's own level (Kubernetes 1.34)."""


UNREAD = "unreadable-object"
"""The code of a finding about a pod or node that is not what its kind is."""

IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""A resource of this name, less this, is a DeviceClass by which a container asks for devices."""


NOTHING_HELD: Mapping[str, Request] = {}
RESIZE = "PodResizePending"
"""A condition of a pod on a node: it asks for other amounts than it has."""


class Asked(NamedTuple):
    """A pod with what it asks for. ``problem`` is why its GPUs, or all of it, cannot be read.

    ``claimed`` are devices that it asks for by claim; ``claims_read`` tells whether that was looked up.
    """

    pod: Pod
    request: Request
    gpu: GpuRequest | None
    problem: Unreadable | None = None
    claimed: Claimed | None = None
    claims_read: bool = False

    @property
    def holds_gpu(self) -> bool:
        """True where it has GPUs once placed. In doubt it has: its node is never given back."""
        return bool(self.gpu or self.problem or (self.pod.spec.resource_claims and not self.claims_read))

    @property
    def wants_gpu(self) -> bool:
        """True where it asks for GPUs, or for devices that may be some."""
        return self.gpu is not None or self.claimed is not None


def read_request(pod: Pod) -> Asked:
    """Request of a pod; never raises."""
    request: Request = {}
    if pod.unread:
        return Asked(pod, request, None, Unreadable(UNREAD, f"the pod cannot be read: {pod.unread}; mend it"))
    try:
        share = pod.metadata.annotations.get(labels.GPU_SHARE)
        if _has_what_it_asks_for(pod):
            request, gpu, wrong = _requests_of(_amounts_of(pod.spec), share)
            return Asked(pod, request, gpu, Unreadable(*wrong) if wrong else None)
        stuck = any(c.type == RESIZE and c.reason == "Infeasible" for c in pod.status.conditions)
        request = effective_request(pod.spec, _held(pod), stuck=stuck)
        return Asked(pod, request, gpu_request(request, share))
    except Unreadable as problem:
        return Asked(pod, request, None, problem)


class Requests:
    """Requests of the pods of one look: of those that have their containers in one object, read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str | None], Asked] = {}

    def read(self, pod: Pod) -> Asked:
        """As ``read_request`` reads it."""
        spec, request = pod.spec, pod.spec.resources
        if spec.init_containers or spec.overhead or request.limits or request.requests or pod.unread:
            return read_request(pod)
        for status in pod.status.container_statuses:
            if status.resources is not None:
                return read_request(pod)
        of = id(spec.containers), pod.metadata.annotations.get(labels.GPU_SHARE)
        like = self._known.get(of)
        if like is None:
            like = self._known[of] = read_request(pod)
            return like
        return Asked(pod, like.request, like.gpu, like.problem)


def effective_request(spec: PodSpec, held: Mapping[str, Request] = NOTHING_HELD, *, stuck: bool = False) -> Request:
    """Effective request of a pod, as the scheduler counts it. Raises Unreadable("bad-quantity") naming the path.

    ``held`` is by name of a container what it has on its node; ``stuck``: that node cannot give it what it asks for.
    """
    sidecars: Request = {}
    largest_init: Request = {}
    for i, container in enumerate(spec.init_containers):
        own = _own(container, f"spec.initContainers[{i}]")
        if container.restart_policy == "Always":
            sidecars = sum_requests(sidecars, own)
        else:
            largest_init = _max(largest_init, sum_requests(sidecars, own))
    running = sidecars
    for i, container in enumerate(spec.containers):
        own = _own(container, f"spec.containers[{i}]")
        has = held.get(container.name, {})
        running = sum_requests(running, own | has if stuck else _max(own, has))
    total = _max(running, largest_init)
    pod_level = _amounts(spec.resources, "spec.resources")
    total |= {name: amount for name, amount in pod_level.items() if name in POD_LEVEL or name.startswith(HUGE_PAGES)}
    return sum_requests(total, _read(spec.overhead, "spec.overhead"))


def _has_what_it_asks_for(pod: Pod) -> bool:
    """True where what its containers have on their node changes nothing in its request."""
    there = {s.name: s for s in pod.status.container_statuses if s.resources is not None} if pod.spec.node_name else {}
    return not there or all(
        has.resources.requests == c.resources.requests == (has.allocated_resources or c.resources.requests)
        for c in pod.spec.containers
        if (has := there.get(c.name)) is not None and has.resources is not None
    )


_Amounts = tuple[tuple[str, str | int | float], ...]
_Asks = tuple[str, _Amounts, _Amounts]
"""Requests of a container, or of the pod's own level: restart policy, limits, requests."""


def _asks(lists: ResourceLists, restart_policy: str = "") -> _Asks:
    return restart_policy, tuple(lists.limits.items()), tuple(lists.requests.items())


def _amounts_of(spec: PodSpec) -> tuple[tuple[_Asks, ...], tuple[_Asks, ...], _Asks, _Amounts]:
    """All that an effective request goes by: pods of one template have it alike."""
    init = tuple(_asks(c.resources, c.restart_policy) for c in spec.init_containers)
    return tuple(_asks(c.resources) for c in spec.containers), init, _asks(spec.resources), tuple(spec.overhead.items())


@lru_cache(maxsize=1024)
def _requests_of(
    of: tuple[tuple[_Asks, ...], tuple[_Asks, ...], _Asks, _Amounts], share: str | None
) -> tuple[Request, GpuRequest | None, tuple[str, str] | None]:
    """Effective request of pods that ask alike, and their GPUs, or why these cannot be read. Raises ``Unreadable``."""
    containers, init, pod_level, overhead = of
    request = effective_request(
        PodSpec(
            containers=tuple(map(_container, containers)),
            init_containers=tuple(map(_container, init)),
            resources=_container(pod_level).resources,
            overhead=dict(overhead),
        )
    )
    try:
        return request, gpu_request(request, share), None
    except Unreadable as problem:
        return request, None, (problem.code, str(problem))


def _container(asks: _Asks) -> Container:
    restart_policy, limits, requests = asks
    return Container(
        restart_policy=restart_policy, resources=ResourceLists(limits=dict(limits), requests=dict(requests))
    )


def _held(pod: Pod) -> Mapping[str, Request]:
    """What the containers of a pod have on their node."""
    found = [(s.name, s.resources, s.allocated_resources) for s in pod.status.container_statuses if pod.spec.node_name]
    return {
        name: _max(_read(has.requests, "status.resources"), _read(let, "status.allocatedResources"))
        for name, has, let in found
        if has is not None
    }


def resource_names(containers: Iterable[Container]) -> set[str]:
    """The names of all resources that containers speak of."""
    return {name for c in containers for name in (*c.resources.requests, *c.resources.limits)}


def claims_devices(specs: Iterable[PodSpec]) -> bool:
    """True where a pod asks for devices by claim, or by the name of a class of them."""
    seen: dict[int, tuple[Container, ...]] = {}
    for spec in specs:
        if spec.resource_claims:
            return True
        seen[id(spec.containers)] = spec.containers
        if spec.init_containers:
            seen[id(spec.init_containers)] = spec.init_containers
    return any(IMPLICIT in name for containers in seen.values() for name in resource_names(containers))


def gpu_request(request: Request, share: str | None = None) -> GpuRequest | None:
    """The GPUs in a request, or None when it has none: whole ones, or of several MIG profiles the first by name.

    ``share`` is the gpu-share annotation: a part of one device; of a pod that asks for one the scheduler counts it
    whole. Raises Unreadable for accelerators that are unknown,
    devices that are mixed or not whole. What is asked for beside a GPU is ``other_resources``'s.
    """
    asked = {name: amount for name, amount in request.items() if amount and _is_device(name)}
    known = [name for name in asked if is_gpu(name)]
    whole = [name for name in known if name in WHOLE_DEVICES]
    unknown = sorted(asked.keys() - set(known))
    if unknown and not known and (share or any(map(_looks_like_accelerator, unknown))):
        raise Unreadable("unknown-device", f"asks for {', '.join(unknown)}, a device Pilotlight cannot buy")
    if len(known) > 1 and (share is not None or len(whole) > 1):
        raise Unreadable("mixed-devices", f"asks for {' and '.join(sorted(known))} at once: no node type offers both")
    if share is not None:
        return _shared(share, asked)
    if not known:
        return None
    main = whole[0] if whole else min(known)
    counts = {name: _devices(name, asked[name]) for name in known}
    return GpuRequest(count=counts[main], resource=main)


def _devices(resource: str, amount: Decimal) -> int:
    if amount != int(amount):
        raise Unreadable("bad-quantity", f"asks for {amount} {resource}: devices come whole")
    if not bounds.DEVICES.takes(amount):
        raise Unreadable("bad-quantity", f"asks for {amount} {resource}: no node has that many")
    return int(amount)


def other_resources(request: Request, gpu: GpuRequest | None) -> tuple[tuple[str, int], ...]:
    """Resources of a request beside GPUs, CPU, memory and disk, by name, in whole units: hugepages, other devices."""
    mine = gpu.resource if gpu else ""
    return tuple(
        sorted(
            (name, whole_units(amount))
            for name, amount in request.items()
            if amount and name not in _COMMON and name != mine
        )
    )


_COMMON = ("cpu", "memory", "ephemeral-storage", "pods")


def whole_units(amount: Decimal, scale: int = 1) -> int:
    """An amount in whole units of 1/scale, rounded up."""
    scaled = amount * scale
    return int(scaled) + (scaled > int(scaled))


def read_amounts(amounts: Mapping[str, object], path: str) -> Request:
    """Amounts by resource name. Raises Unreadable("bad-quantity") naming the path."""
    return _read(amounts, path)


def _shared(share: str, asked: Request) -> GpuRequest:
    try:
        part = milli(share)
    except ValueError:
        part = 0
    if not 0 < part <= MILLI_PER_GPU:
        raise Unreadable("bad-quantity", f"gpu-share is {bounds.quote_value(share)}: give a part of one GPU, as 0.25")
    if any(amount > 1 for name, amount in asked.items() if is_gpu(name)) or any(
        is_gpu(name) and name not in WHOLE_DEVICES for name in asked
    ):
        raise Unreadable("bad-quantity", "gpu-share goes with at most one whole GPU")
    whole = next((name for name in asked if is_gpu(name)), "")
    return GpuRequest(count=1, milli=MILLI_PER_GPU if whole else part, resource=whole or NVIDIA)


def _own(container: Container, path: str) -> Request:
    return _amounts(container.resources, f"{path}.resources")


def _amounts(lists: ResourceLists, path: str) -> Request:
    return _read(lists.limits, f"{path}.limits") | _read(lists.requests, f"{path}.requests")


def _read(amounts: Mapping[str, object], path: str) -> Request:
    return dict(_each(amounts, path))


def _each(amounts: Mapping[str, object], path: str) -> Iterator[tuple[str, Decimal]]:
    for name, text in amounts.items():
        try:
            yield name, known_quantity(text)
        except ValueError as error:
            raise Unreadable("bad-quantity", f"{path}[{name}]: {error}") from None


known_quantity = lru_cache(maxsize=4096)(quantity)


def sum_requests(a: Request, b: Request) -> Request:
    """Both together."""
    return {**a, **{name: a.get(name, Decimal(0)) + amount for name, amount in b.items()}}


def _max(a: Request, b: Request) -> Request:
    return {**a, **{name: max(a.get(name, Decimal(0)), amount) for name, amount in b.items()}}


def _is_device(name: str) -> bool:
    """Extended resources have a domain of their own; ``*.kubernetes.io/`` is Kubernetes's."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def _looks_like_accelerator(name: str) -> bool:
    return any(
        part in name.lower() for part in ("gpu", "nvidia.com/", "amd.com/", "tpu", "neuron", "gaudi", "i915", "mig")
    )
