"""What a pod asks of a node, as the scheduler counts it."""

import re
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec.kubernetes.bounds import Unreadable
from pilotlight.codec.kubernetes.pods.requests import (
    Requests,
    effective_request,
    gpu_request,
    other_resources,
    read_request,
)
from pilotlight.codec.kubernetes.typed_objects import Pod, PodSpec
from pilotlight.facts.workload import GpuRequest
from pilotlight.units import quantity

GIB = 2**30


def spec(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **more: object) -> PodSpec:
    """A pod's spec of containers given as their resources."""
    body = {
        "containers": [{"resources": c} for c in containers],
        "initContainers": [
            {"resources": {k: v for k, v in c.items() if k != "restartPolicy"}, **_policy(c)} for c in init
        ],
        **more,
    }
    return msgspec.convert(body, PodSpec)


def _policy(container: dict[str, Any]) -> dict[str, Any]:
    return {"restartPolicy": "Always"} if "restartPolicy" in container else {}


def asks(cpu: str, **more: str) -> dict[str, Any]:
    """Requests of so much CPU."""
    return {"requests": {"cpu": cpu, **more}}


def sidecar(cpu: str) -> dict[str, Any]:
    """An init container that goes on running."""
    return {**asks(cpu), "restartPolicy": "Always"}


CPU_CASES = {
    "containers are summed": (spec(asks("1"), asks("500m")), "1.5"),
    "an init container larger than the rest decides": (spec(asks("1"), init=(asks("16"),)), "16"),
    "an init container smaller than the rest does not": (spec(asks("4"), init=(asks("2"),)), "4"),
    "init containers are not summed": (spec(asks("1"), init=(asks("2"), asks("3"))), "3"),
    "a sidecar runs beside the containers": (spec(asks("4"), init=(sidecar("1"),)), "5"),
    "a sidecar declared before an init container counts with it": (
        spec(asks("1"), init=(sidecar("2"), asks("8"))),
        "10",
    ),
    "a sidecar declared after an init container does not": (spec(asks("1"), init=(asks("8"), sidecar("2"))), "8"),
    "all sidecars count beside the containers": (spec(asks("4"), init=(sidecar("1"), asks("2"), sidecar("3"))), "8"),
    "overhead comes on top": (spec(asks("1"), init=(asks("3"),), overhead={"cpu": "250m"}), "3.25"),
    "limits stand in for absent requests": (spec({"limits": {"cpu": "2"}}), "2"),
    "a request goes before its limit": (spec({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}), "1"),
    "pod-level requests replace the sum": (spec(asks("1"), asks("1"), resources=asks("8")), "8"),
    "pod-level limits stand in too": (spec(asks("1"), resources={"limits": {"cpu": "6"}}), "6"),
}


@pytest.mark.parametrize(("pod", "cpu"), CPU_CASES.values(), ids=CPU_CASES.keys())
def test_effective_request(pod: PodSpec, cpu: str) -> None:
    """The effective request is the larger of running and starting, plus overhead."""
    assert effective_request(pod)["cpu"] == Decimal(cpu)


EQUAL_QUANTITIES = {
    "plain": ("1073741824", GIB),
    "binary suffix": ("1Gi", GIB),
    "fraction": ("32.5Gi", int(32.5 * GIB)),
    "decimal suffix": ("1G", 10**9),
    "exponent": ("1e9", 10**9),
    "exponent with sign": ("1E+9", 10**9),
    "JSON number": (65536, 65536),
    "many of a small unit": ("65536Mi", 64 * GIB),
    "thousandths": ("1500m", Decimal("1.5")),
}


@pytest.mark.parametrize(("text", "value"), EQUAL_QUANTITIES.values(), ids=EQUAL_QUANTITIES.keys())
def test_quantities_in_every_form(text: object, value: object) -> None:
    """A quantity is read in each form Kubernetes writes."""
    assert effective_request(spec({"requests": {"memory": text}}))["memory"] == value


@pytest.mark.parametrize("text", ["NaN", "-1", "lots", "", "1e999", "9Ei9", "1 Gi", "99999999999E"])
def test_an_absurd_quantity_names_its_path(text: str) -> None:
    """What is no quantity is refused with the path of the field."""
    with pytest.raises(Unreadable, match=r"spec\.initContainers\[1\]\.resources\.limits\[memory\]") as refused:
        effective_request(spec(init=(asks("1"), {"limits": {"memory": text}})))
    assert refused.value.code == "bad-quantity"


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_no_container_asks_for_more_than_the_pod(a: int, b: int, c: int) -> None:
    """The effective request covers every container, and is no more than all of them together."""
    total = effective_request(spec(asks(f"{a}m"), init=(sidecar(f"{b}m"), asks(f"{c}m"))))["cpu"] * 1000
    assert max(a + b, b + c) == total <= a + b + c


GPU_CASES = {
    "limits of one GPU as text": ({"nvidia.com/gpu": "1"}, GpuRequest(count=1)),
    "limits of one GPU as a number": ({"nvidia.com/gpu": 1}, GpuRequest(count=1)),
    "AMD": ({"amd.com/gpu": "2"}, GpuRequest(count=2, resource="amd.com/gpu")),
    "a MIG slice": ({"nvidia.com/mig-1g.10gb": 1}, GpuRequest(count=1, resource="nvidia.com/mig-1g.10gb")),
    "a shared replica": ({"nvidia.com/gpu.shared": 1}, GpuRequest(count=1, resource="nvidia.com/gpu.shared")),
    "a whole GPU beside a MIG profile": ({"nvidia.com/mig-1g.5gb": 2, "nvidia.com/gpu": 1}, GpuRequest(count=1)),
    "two MIG profiles": (
        {"nvidia.com/mig-3g.20gb": 1, "nvidia.com/mig-1g.5gb": 2},
        GpuRequest(count=2, resource="nvidia.com/mig-1g.5gb"),
    ),
    "zero GPUs are none": ({"nvidia.com/gpu": "0"}, None),
    "CPU and memory alone": ({"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi"}, None),
    "a CPU pod's own device is nobody's business": ({"smarter-devices/fuse": 1}, None),
    "what Kubernetes itself counts is no device": (
        {"nvidia.com/gpu": 1, "attachable-volumes.kubernetes.io/ebs": 1},
        GpuRequest(count=1),
    ),
}


@pytest.mark.parametrize(("limits", "gpu"), GPU_CASES.values(), ids=GPU_CASES.keys())
def test_gpus_of_a_pod(limits: dict[str, Any], gpu: GpuRequest | None) -> None:
    """Each GPU resource is read from limits alone."""
    assert gpu_request(effective_request(spec({"limits": limits}))) == gpu


REFUSED = {
    "an accelerator we do not know": ({"aws.amazon.com/neuron": 1}, None, "unknown-device"),
    "a vendor's own GPU resource": ({"nvidia.com/gpu-h100": 1}, None, "unknown-device"),
    "GPUs of two vendors": ({"nvidia.com/gpu": 1, "amd.com/gpu": 1}, None, "mixed-devices"),
    "a share beside a MIG profile": ({"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 1}, "0.5", "mixed-devices"),
    "part of a second profile": ({"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": "500m"}, None, "bad-quantity"),
    "half a device": ({"nvidia.com/gpu": "500m"}, None, "bad-quantity"),
    "more GPUs than any node has": ({"nvidia.com/gpu": "1e9"}, None, "bad-quantity"),
    "a share of two GPUs": ({"nvidia.com/gpu": 2}, "0.5", "bad-quantity"),
    "a share above one": ({}, "1.5", "bad-quantity"),
    "a share that is no number": ({}, "half", "bad-quantity"),
    "a share that is not a number at all": ({}, "NaN", "bad-quantity"),
}


@pytest.mark.parametrize(("limits", "share", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_devices_that_are_refused(limits: dict[str, Any], share: str | None, code: str) -> None:
    """A device that cannot be bought is refused with a reason, never ignored."""
    with pytest.raises(Unreadable) as refused:
        gpu_request(effective_request(spec({"limits": limits})), share)
    assert refused.value.code == code


def test_what_is_asked_for_beside_a_gpu_is_part_of_the_demand() -> None:
    """Hugepages and further devices are amounts by name; CPU, memory, disk and the GPU have their own places."""
    limits = {"nvidia.com/gpu": 1, "rdma/hca": 2, "hugepages-2Mi": "4Mi", "cpu": 1, "vpc.amazonaws.com/efa": 0}
    request = effective_request(spec({"limits": limits}))
    assert other_resources(request, gpu_request(request)) == (("hugepages-2Mi", 4 << 20), ("rdma/hca", 2))


def test_a_share_of_a_gpu() -> None:
    """The share annotation asks for thousandths of one device."""
    assert gpu_request({}, "0.25") == GpuRequest(count=1, milli=250)


def test_a_share_of_a_device_that_is_asked_for_whole() -> None:
    """The scheduler gives a pod that asks for a device the whole of it, whatever the annotation says."""
    assert gpu_request({"nvidia.com/gpu": Decimal(1)}, "0.5") == GpuRequest(count=1)


RESIZED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a shrink that its kubelet has not made": ("1", {"resources": {"requests": {"cpu": "3"}}}, "", "3"),
    "a shrink that was made": ("1", {"resources": {"requests": {"cpu": "1"}}}, "", "1"),
    "a shrink that was let, not made": (
        "1",
        {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"}},
        "",
        "2",
    ),
    "a growth that waits": ("4", {"resources": {"requests": {"cpu": "3"}}}, "Deferred", "4"),
    "a growth that its node cannot give": ("9", {"resources": {"requests": {"cpu": "3"}}}, "Infeasible", "3"),
    "a kubelet that says nothing": ("2", {}, "", "2"),
}


@pytest.mark.parametrize(("asked", "has", "pending", "cores"), RESIZED.values(), ids=RESIZED.keys())
def test_a_pod_that_is_resized_where_it_runs(asked: str, has: dict[str, Any], pending: str, cores: str) -> None:
    """The larger of what it asks for and what it has counts, and what it has where it gets no more; its GPU stays."""
    limits = {"requests": {"cpu": asked, "nvidia.com/gpu": 1}}
    conditions = [{"type": "PodResizePending", "status": "True", "reason": pending}] if pending else []
    found = msgspec.convert(
        {
            "metadata": {"name": "p"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": limits}]},
            "status": {"conditions": conditions, "containerStatuses": [{"name": "c", **has}]},
        },
        Pod,
    )
    assert read_request(found).request == {"cpu": Decimal(cores), "nvidia.com/gpu": Decimal(1)}


AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "nvidia.com/gpu", "amd.com/gpu"]), st.sampled_from(["1", "2000m", "1500m"])
)
LISTS = st.fixed_dictionaries({"requests": AMOUNTS, "limits": AMOUNTS})
HAS = st.fixed_dictionaries({"resources": st.fixed_dictionaries({"requests": AMOUNTS}), "allocatedResources": AMOUNTS})


@given(
    asks=st.lists(LISTS, min_size=1, max_size=3),
    init=st.lists(LISTS, max_size=2),
    has=st.lists(HAS | st.just(None), min_size=3, max_size=3),
    stuck=st.booleans(),
    share=st.sampled_from([None, "0.25", "7"]),
)
def test_pods_that_ask_alike_are_read_alike(
    asks: list[dict[str, Any]],
    init: list[dict[str, Any]],
    has: list[dict[str, Any] | None],
    stuck: bool,
    share: str | None,
) -> None:
    """What is remembered of pods that asked the same, or have on their node what they ask for, changes nothing."""
    containers = [{"name": f"c{n}", "resources": one} for n, one in enumerate(asks)]
    there = [one or {"resources": containers[n % len(asks)]["resources"]} for n, one in enumerate(has)]
    held = [
        {name: max(quantity(one["resources"]["requests"].get(name, 0)), quantity(let.get(name, 0))) for name in names}
        for one in there
        for let in (one.get("allocatedResources", {}),)
        for names in ({*one["resources"]["requests"], *let},)
    ]
    reason = {"type": "PodResizePending", "status": "True", "reason": "Infeasible" if stuck else "Deferred"}
    body = {
        "metadata": {"name": "p", "annotations": {"pilotlight.dev/gpu-share": share} if share else {}},
        "spec": {"nodeName": "n", "containers": containers, "initContainers": [{"resources": one} for one in init]},
        "status": {
            "conditions": [reason],
            "containerStatuses": [{"name": f"c{n}", **one} for n, one in enumerate(there)],
        },
    }
    pod = msgspec.convert(body, Pod)
    expected = effective_request(pod.spec, {f"c{n}": one for n, one in enumerate(held)}, stuck=stuck)
    for found in (read_request(pod), read_request(pod)):
        assert {k: v for k, v in found.request.items() if v} == {k: v for k, v in expected.items() if v}
        if found.problem is None:
            assert found.gpu == gpu_request(expected, share)
        else:
            with pytest.raises(Unreadable, match=re.escape(str(found.problem))):
                gpu_request(expected, share)


def test_pods_that_share_containers_are_read_as_each_alone() -> None:
    """A share of a GPU, overhead, an init container and a resize stay the pod's own where its containers are shared."""
    containers = [{"name": "c", "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}}}]
    has = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}
    plain: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"containers": containers, "nodeName": "n"}}
    shared = {**plain, "metadata": {"name": "b", "annotations": {"pilotlight.dev/gpu-share": "0.5"}}}
    init = {"initContainers": [{"name": "i", "resources": {"limits": {"cpu": "5"}}}]}
    more: list[dict[str, Any]] = [{"overhead": {"cpu": "1"}}, {"resources": {"limits": {"cpu": "9"}}}, init]
    written = [plain, shared, {**plain, "status": has}, *({**plain, "spec": {**plain["spec"], **one}} for one in more)]
    pods = [msgspec.convert(one, Pod) for one in written]
    alike = [msgspec.structs.replace(p.spec, containers=pods[0].spec.containers) for p in pods]
    pods = [msgspec.structs.replace(p, spec=spec) for p, spec in zip(pods, alike, strict=True)]
    reads = Requests()
    assert [reads.read(pod) for pod in pods] == [read_request(pod) for pod in pods]
    assert len({str(reads.read(pod)[1:]) for pod in pods}) == 5
