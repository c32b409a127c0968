"""Devices by claim (DRA): what pods ask for, what drivers publish of nodes, and what is taken of it."""

from datetime import datetime
from typing import Any

import pytest
from kubernetes_objects import NOW, node, only_node, pod, view

from pilotlight.facts.fit.claimed_devices import Claimed, DeviceAsk
from pilotlight.facts.workload import GpuRequest

GPU = "gpu.nvidia.com"
WHOLE = "claim:nvidia.com/gpu"
POOL = {"pilotlight.dev/pool": "t4"}


def named(kind: str, name: str, **rest: Any) -> dict[str, Any]:
    """An object of resource.k8s.io."""
    meta: dict[str, Any] = {"name": name, "namespace": "team-a"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta, **rest}


def device_class(name: str = "gpu", **spec: Any) -> dict[str, Any]:
    """A DeviceClass that chooses by one expression."""
    return named("DeviceClass", name, spec={"selectors": [{"cel": {"expression": "true"}}], **spec})


def request(name: str = "r", of: str = "gpu", **rest: Any) -> dict[str, Any]:
    """One request of a claim."""
    return {"name": name, "exactly": {"deviceClassName": of, **rest}}


def template(*requests: dict[str, Any], name: str = "t", **rest: Any) -> dict[str, Any]:
    """A ResourceClaimTemplate."""
    return named("ResourceClaimTemplate", name, spec={"spec": {"devices": {"requests": requests, **rest}}})


def claim(name: str = "c", *devices: str, of: str = "n1", by: str = "p") -> dict[str, Any]:
    """A ResourceClaim, with the devices that it has."""
    results = [{"driver": GPU, "pool": of, "device": each, "request": "r"} for each in devices]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [{"name": by}]} if devices else {}
    return named("ResourceClaim", name, spec={"devices": {"requests": [request()]}}, status=status)


def device(name: str, kind: str = "gpu", **rest: Any) -> dict[str, Any]:
    """A device as NVIDIA's driver publishes it."""
    said = {"type": {"string": kind}, "uuid": {"string": name}, "driverVersion": {"version": "580.0.0"}}
    return {
        "name": name,
        "attributes": said | rest.pop("attributes", {}),
        "capacity": {"memory": {"value": "15Gi"}},
        **rest,
    }


def slice_of(of: str, *devices: dict[str, Any], generation: int = 1, name: str = "", **spec: Any) -> dict[str, Any]:
    """A ResourceSlice of a node."""
    pool = {"name": of, "generation": generation, "resourceSliceCount": 1}
    given = {"driver": GPU, "nodeName": of, "pool": pool, "devices": devices, **spec}
    return named("ResourceSlice", name or f"{of}-{generation}", spec=given)


def bound(name: str = "p", **rest: Any) -> dict[str, Any]:
    """A pod on n1."""
    return pod(name, nodeName="n1", status={"phase": "Running"}, **rest)


def asking(name: str = "p", template: str = "t", **rest: Any) -> dict[str, Any]:
    """A pod that waits for devices of a template."""
    return pod(name, gpus=0, resourceClaims=[{"name": "g", "resourceClaimTemplateName": template}], **rest)


def bare(name: str = "n1") -> dict[str, Any]:
    """A node of ours without a device plugin."""
    return node(name, allocatable={"cpu": "4", "memory": "16Gi", "pods": "110"}, labels=POOL)


def test_a_template_is_demand() -> None:
    """A pod with a claim of a template asks for what class and request choose, beside its CPU and memory."""
    chosen = request(selectors=[{"cel": {"expression": "device.driver == 'x'"}}], count=2)
    (waiting,) = view([asking()], objects=[device_class(), template(chosen)]).pending
    ask = DeviceAsk(named="gpu (r)", selectors=("true", "device.driver == 'x'"), count=2)
    assert (waiting.shape.gpu.count, waiting.shape.claimed) == (0, Claimed(asks=((ask,),)))


def test_alternatives_and_all() -> None:
    """Alternatives keep their order, and a request may want all devices of a node."""
    first = [{"name": "a", "deviceClassName": "big"}, {"name": "b", "deviceClassName": "gpu", "allocationMode": "All"}]
    objects = [device_class(), device_class("big"), template({"name": "r", "firstAvailable": first})]
    (waiting,) = view([asking()], objects=objects).pending
    assert waiting.shape.claimed is not None
    assert [(a.named, a.every) for a in waiting.shape.claimed.asks[0]] == [("big (r)", False), ("gpu (r)", True)]


def test_a_class_as_a_resource() -> None:
    """A container may ask for a class as a resource of its name."""
    resources = {"limits": {"deviceclass.resource.kubernetes.io/gpu": "2"}}
    one = pod(gpus=0, containers=[{"name": "c", "resources": resources}])
    (waiting,) = view([one], objects=[device_class()]).pending
    assert waiting.shape.claimed is not None
    assert [a.count for a in waiting.shape.claimed.asks[0]] == [2]
    assert waiting.shape.other == ()


PROBLEMS: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "no such class": ([template(request(of="none"))], "claim-missing", "DeviceClass none"),
    "no such template": ([device_class()], "claim-missing", "ResourceClaimTemplate t"),
    "an amount that is none": (
        [device_class(), template(request(capacity={"requests": {"memory": "much"}}))],
        "bad-quantity",
        "capacity[memory]",
    ),
    "a mode of later": ([device_class(), template(request(allocationMode="Half"))], "claim", "Half"),
}


@pytest.mark.parametrize(("objects", "code", "words"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_what_cannot_be_told_is_a_finding(objects: list[dict[str, Any]], code: str, words: str) -> None:
    """A claim that cannot be worked out is a finding before money."""
    seen = view([asking()], objects=objects)
    assert seen.pending == ()
    assert [(f.code, words in f.message) for f in seen.findings] == [(code, True)]


UNTOLD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "admin access": (template(request("a", adminAccess=True), request("b")), ["admin access", ""]),
    "devices that differ": (
        template(request("a"), request("b"), constraints=[{"distinctAttribute": "x/y"}]),
        ["differ in x/y", "differ in x/y"],
    ),
    "those of one request differ": (
        template(request("a"), request("b"), constraints=[{"distinctAttribute": "x/y", "requests": ["b"]}]),
        ["", "differ in x/y"],
    ),
}


@pytest.mark.parametrize(("asked", "words"), UNTOLD.values(), ids=UNTOLD.keys())
def test_requests_of_which_nobody_can_tell_the_devices_say_why(asked: dict[str, Any], words: list[str]) -> None:
    """They are for the plan to judge: of a driver that nobody knows they keep no GPU from being wanted."""
    (waiting,) = view([asking()], objects=[device_class(), asked]).pending
    assert waiting.shape.claimed is not None
    untold = [ask.untold for asks in waiting.shape.claimed.asks for ask in asks]
    assert [bool(told) for told in untold] == [bool(said) for said in words]
    assert all(said in told for said, told in zip(words, untold, strict=True))


def test_pods_that_share_a_claim() -> None:
    """Of pods that share a claim the first asks for room for all of them and names each; the others are told."""
    cpu = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    shared = [{"name": "g", "resourceClaimName": "c"}]
    pods = [pod(name, gpus=0, containers=cpu, resourceClaims=shared) for name in ("a", "b", "c")]
    seen = view(pods, objects=[device_class(), claim()])
    assert [(p.name, p.shape.cpu_milli) for p in seen.pending] == [("a", 6000)]
    assert [p.shape.claimed.sharers for p in seen.pending if p.shape.claimed] == [((2000, 0, 0), (2000, 0, 0))]
    assert [(f.subject, f.code) for f in seen.findings] == [("team-a/b", "claim-shared"), ("team-a/c", "claim-shared")]


def test_a_claim_that_has_its_devices() -> None:
    """A pod that waits though its claim has its devices is helped by no new node."""
    one = pod(gpus=0, resourceClaims=[{"name": "g", "resourceClaimName": "c"}])
    seen = view([one], objects=[device_class(), claim("c", "gpu-0")])
    assert [f.code for f in seen.findings] == ["claim-allocated"]


def test_a_node_whose_driver_publishes_devices() -> None:
    """A node without a device plugin has the GPUs that its driver publishes, less those that claims have."""
    objects = [device_class(), slice_of("n1", *(device(f"gpu-{n}") for n in range(4))), claim("c", "gpu-1", "gpu-3")]
    on = bound("p", gpus=0, resourceClaims=[{"name": "g", "resourceClaimName": "c"}])
    seen = only_node(view([on], [bare()], objects=objects))
    assert (seen.ready, seen.resource, sorted(seen.devices)) == (True, WHOLE, [0, 0, 1000, 1000])
    assert [p.gpu for p in seen.gpu_pods] == [GpuRequest(count=2, resource=WHOLE)]
    (kind,) = seen.kinds
    assert (kind.count, kind.attributes, kind.versions) == (
        4,
        {f"{GPU}/type": "gpu"},
        {f"{GPU}/driverVersion": "580.0.0"},
    )
    assert (kind.capacity, kind.differs, kind.seen) == ({f"{GPU}/memory": "15Gi"}, (f"{GPU}/uuid",), True)


def test_a_node_without_slices_yet() -> None:
    """A node of ours of which nothing is published yet takes no pods."""
    other = slice_of("n2", device("gpu-0"))
    assert not only_node(view([], [bare()], objects=[other])).ready


def test_parts_of_gpus() -> None:
    """MIG devices are counted by their profile."""
    parts = [device(f"mig-{n}", "mig", attributes={"profile": {"string": "1g.5gb"}}) for n in range(7)]
    objects = [device_class(), slice_of("n1", *parts), claim("c", "mig-0")]
    seen = only_node(view([], [bare()], objects=objects))
    assert (seen.devices, dict(seen.slices)) == ((), {"claim:nvidia.com/mig-1g.5gb": 6})


def test_partitions_of_one_gpu_are_counted_as_many_as_can_be_had() -> None:
    """A GPU that is offered whole and in parts is one or the other: what a claim has of it leaves the rest."""
    takes = [{"counterSet": "gpu-0", "counters": {"memory": {"value": amount}}} for amount in ("40Gi", "20Gi")]
    half = {"profile": {"string": "3g.20gb"}}
    devices = [device("gpu-0", consumesCounters=takes[:1])]
    devices += [device(f"half-{n}", "mig", attributes=half, consumesCounters=takes[1:]) for n in range(3)]
    counters = [{"name": "gpu-0", "counters": {"memory": {"value": "40Gi"}}}]
    objects = [device_class(), slice_of("n1", *devices, sharedCounters=counters), claim("c", "half-2")]
    seen = only_node(view([], [bare()], objects=objects))
    assert (seen.devices, dict(seen.slices)) == ((0,), {"claim:nvidia.com/mig-3g.20gb": 1})
    assert {kind.resource: kind.count for kind in seen.kinds} == {WHOLE: 1, "claim:nvidia.com/mig-3g.20gb": 2}


def test_only_the_newest_slices_hold() -> None:
    """Slices of an older generation of a pool, and devices with a taint, are no room."""
    shut = device("gpu-1", taints=[{"key": "broken", "effect": "NoSchedule"}])
    slices = [
        slice_of("n1", *(device(f"old-{n}") for n in range(8))),
        slice_of("n1", device("gpu-0"), shut, generation=2),
    ]
    assert only_node(view([], [bare()], objects=[device_class(), *slices])).devices == (1000, 0)


def test_a_mapped_class() -> None:
    """Where a class stands for nvidia.com/gpu, pods that ask for that run where its driver publishes devices."""
    objects = [device_class(extendedResourceName="nvidia.com/gpu"), slice_of("n1", device("gpu-0"))]
    seen = only_node(view([], [bare()], objects=objects))
    assert (seen.resource, seen.devices) == ("nvidia.com/gpu", (1000,))


def test_devices_that_are_no_gpus() -> None:
    """Devices of another driver are room beside GPUs, and a pod that holds only those keeps no node."""
    cards = slice_of("n1", {"name": "nic-0"}, {"name": "nic-1"}, name="nics", driver="net.example.test")
    results = [{"driver": "net.example.test", "pool": "n1", "device": "nic-0", "request": "r"}]
    held = named("ResourceClaim", "c", spec={}, status={"allocation": {"devices": {"results": results}}})
    held["status"]["reservedFor"] = [{"name": "p"}]
    on = bound("p", gpus=0, resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}])
    on["status"]["resourceClaimStatuses"] = [{"name": "g", "resourceClaimName": "c"}]
    seen = only_node(view([on], [node(labels=POOL)], objects=[device_class(), template(request()), cards, held]))
    assert dict(seen.free.other)["claim:net.example.test"] == 1
    assert seen.gpu_pods == ()
    assert seen.idle_since == datetime.fromisoformat(NOW)


@pytest.mark.parametrize("published", [True, False], ids=["published", "not published"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "its own"])
def test_a_card_by_claim_hides_no_gpu_of_a_device_plugin(published: bool, shared: bool) -> None:
    """Pods with GPUs by resource hold all of them, also where they claim another driver's device too, share that,
    or nobody has published any."""
    results = [{"driver": "net.example.test", "pool": "n1", "device": "nic-0", "request": "r"}]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [{"name": "p"}, {"name": "q"}]}
    held = named("ResourceClaim", "c", spec={"devices": {"requests": [request()]}}, status=status)
    by = {"resourceClaimName": "c"} if shared else {"resourceClaimTemplateName": "t"}
    on = [bound(name, gpus=gpus, resourceClaims=[{"name": "g", **by}]) for name, gpus in (("p", 2), ("q", 1))]
    for each in on:
        each["status"]["resourceClaimStatuses"] = [{"name": "g", "resourceClaimName": "c"}]
    cards = [slice_of("n1", {"name": "nic-0"}, name="nics", driver="net.example.test")] if published else []
    four = node(allocatable={"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "4"})
    seen = only_node(view(on, [four], objects=[device_class(), template(request()), held, *cards]))
    assert {each.name: each.gpu for each in seen.gpu_pods} == {"p": GpuRequest(count=2), "q": GpuRequest(count=1)}
    assert sorted(seen.devices) == [0, 0, 0, 1000]
