"""Shapes of devices by claim (DRA), and the ResourceSlices of nodes as a driver would publish them.

No driver runs: this script publishes what the plan expects of a type's driver, with what differs from device to device
beside it. Nodes of these shapes have no device plugin.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agreement_bed import ONLY, POOLS
from agreement_objects import Shape, node, pod, pods
from pilotlight.decide.fit.expected_devices import expected_devices
from pilotlight.facts.capacity import Offering
from pilotlight.facts.fit.claimed_devices import DeviceKind
from pilotlight.facts.labels import POOL

Object = dict[str, Any]
NVIDIA = "gpu.nvidia.com"
DRA: Object = {
    "one": POOLS["one"],
    "four": POOLS["four"],
    "a100": {"instance_type": "two.a100", "zones": ["zone-a"]},
}
MIG: Object = {"mig": {"instance_type": "two.a100", "zones": ["zone-a"], "slices": {"nvidia.com/mig-1g.5gb": 14}}}
FAMILY = "devices by claim"


def slices_of(node: str, offering: Offering) -> Iterator[Object]:
    """A ResourceSlice for each driver of a node of an offering."""
    kinds = expected_devices(offering)
    for driver in sorted({kind.driver for kind in kinds}):
        yield slice_of(node, driver, [device for kind in kinds if kind.driver == driver for device in _devices(kind)])


def slice_of(node: str, driver: str, devices: Sequence[Object]) -> Object:
    """A ResourceSlice of a node."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": list(devices),
        },
    }


def _devices(kind: DeviceKind) -> Iterator[Object]:
    for n in range(kind.count):
        said: Object = {name.removeprefix(f"{kind.driver}/"): _value(value) for name, value in kind.attributes.items()}
        said |= {name.removeprefix(f"{kind.driver}/"): {"version": text} for name, text in kind.versions.items()}
        said |= {"uuid": {"string": f"GPU-{n}"}, "index": {"int": n}}
        capacity = {name.removeprefix(f"{kind.driver}/"): {"value": text} for name, text in kind.capacity.items()}
        name = kind.resource.rpartition("/")[2].replace(".", "-")
        yield {"name": f"{name}-{n}", "attributes": said, "capacity": capacity}


def _value(value: str | int | bool) -> Object:
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": value}


def device_class(name: str, *selectors: str, **rest: Any) -> Object:
    """A DeviceClass."""
    chosen = [{"cel": {"expression": text}} for text in selectors]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": chosen, **rest},
    }


GPU = device_class("agreement-gpu", f"device.driver == '{NVIDIA}' && device.attributes['{NVIDIA}'].type == 'gpu'")
PART = device_class("agreement-mig", f"device.driver == '{NVIDIA}' && device.attributes['{NVIDIA}'].type == 'mig'")


def exactly(*selectors: str, of: Object = GPU, **rest: Any) -> Object:
    """Devices that one request wants."""
    chosen = [{"cel": {"expression": text}} for text in selectors]
    return {"deviceClassName": of["metadata"]["name"], "selectors": chosen, **rest}


def claim(*requests: Any, kind: str = "ResourceClaimTemplate", name: str = "gpus", **rest: Any) -> Object:
    """A claim, or a template of one; each request is an ``exactly``, or the list of its alternatives."""
    named = []
    for n, one in enumerate(requests):
        if isinstance(one, list):
            named.append({"name": f"r{n}", "firstAvailable": [{"name": f"a{k}", **each} for k, each in enumerate(one)]})
        else:
            named.append({"name": f"r{n}", "exactly": one})
    spec: Object = {"devices": {"requests": named, **rest}}
    spec = {"spec": spec} if kind == "ResourceClaimTemplate" else spec
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def claiming(count: int, name: str = "gpus", **rest: Any) -> list[Object]:
    """Pods that each have a claim of a template."""
    wants = [{"name": "gpus", "resourceClaimTemplateName": name}]
    return pods(count, None, resourceClaims=wants, **rest)


def claims() -> Iterator[Shape]:
    """Devices by claim."""
    of = f"device.attributes['{NVIDIA}']"

    def one(name: str, count: int, *there: Object, pools: Object = DRA, alone: bool = False) -> Shape:
        return Shape(FAMILY, name, claiming(count), [GPU, PART, *there], pools, alone, claims=True)

    yield one("one GPU", 1, claim(exactly()))
    yield one("GPUs that share a node", 5, claim(exactly()), pools={"four": DRA["four"]})
    yield one("four GPUs of one node", 2, claim(exactly(count=4)))
    yield one("five GPUs of nodes that have four", 1, claim(exactly(count=5)))
    yield one("a product", 2, claim(exactly(f"{of}.productName == 'NVIDIA A100-SXM4-40GB'")))
    yield one("a product by pattern", 1, claim(exactly(f"{of}.productName.lowerAscii().matches('^.*a100.*$')")))
    yield one("a product that nobody sells", 1, claim(exactly(f"{of}.productName.contains('H100')")))
    large = f"device.capacity['{NVIDIA}'].memory.compareTo(quantity('40Gi')) >= 0"
    yield one("memory", 1, claim(exactly(large)))
    yield one("more memory than any has", 1, claim(exactly(large.replace("40Gi", "80Gi"))))
    yield one("a compute capability", 1, claim(exactly(f"{of}.cudaComputeCapability.isGreaterThan(semver('7.9.0'))")))
    yield one("not an architecture", 1, claim(exactly(f"!({of}.architecture in ['Turing', 'Volta'])")))
    yield one("an attribute that nobody publishes", 1, claim(exactly(f"{of}.rack == 'r7'")))
    yield one("an attribute that is asked for only where it is", 1, claim(exactly(f"!has({of}.rack)", of=GPU)))
    yield one("what is not read: a comprehension", 1, claim(exactly(f"[1, 2].exists(n, n == 1) && {of}.type == 'gpu'")))
    yield one("all GPUs of a node", 1, claim(exactly(allocationMode="All")), pools={"four": DRA["four"]})
    wanted = [exactly(f"{of}.productName.contains('H100')"), exactly(f"{of}.architecture == 'Ampere'")]
    yield one("the first alternative that is there", 1, claim(wanted))
    yield one("two requests of one claim", 1, claim(exactly(), exactly()))
    yield one("two requests of different products", 1, claim(exactly(large), exactly(f"{of}.architecture == 'Turing'")))
    same = [{"matchAttribute": f"{NVIDIA}/productName"}]
    yield one("GPUs of one product", 1, claim(exactly(count=2), constraints=same))
    root = [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]
    yield one("GPUs of one root that nobody publishes", 1, claim(exactly(count=2), constraints=root))
    profile = f"{of}.profile == '1g.5gb'"
    yield one("a MIG profile", 15, claim(exactly(profile, of=PART)), pools=MIG)
    yield one(
        "a MIG profile that nobody has", 1, claim(exactly(profile.replace("1g.5gb", "3g.20gb"), of=PART)), pools=MIG
    )
    shared = claim(exactly(), kind="ResourceClaim", name="shared")
    wants = [{"name": "gpus", "resourceClaimName": "shared"}]
    yield Shape(FAMILY, "two pods with one claim", pods(2, None, resourceClaims=wants), [GPU, shared], DRA, claims=True)
    yield Shape(FAMILY, "a class that is not there", claiming(1), [claim(exactly(of=PART))], DRA, claims=True)
    yield Shape(FAMILY, "a template that is not there", claiming(1), [GPU], DRA, claims=True)
    full = node("agreement-g1", labels={POOL: "four"}, **{"example.test/none": "1"})
    there = slice_of("agreement-g1", NVIDIA, [_plain(n) for n in range(3)])
    yield one("room on a node that is there", 4, claim(exactly()), full, there, pools={"one": DRA["one"]})
    mapped = {**GPU, "spec": {**GPU["spec"], "extendedResourceName": "nvidia.com/gpu"}}
    yield Shape(FAMILY, "nvidia.com/gpu by its class", pods(3, 1), [mapped], DRA, alone=True, claims=True)
    implicit = pod("p0", None, limits={"deviceclass.resource.kubernetes.io/agreement-gpu": "1"})
    yield Shape(FAMILY, "a class as a resource", [implicit], [GPU], DRA, claims=True)
    plugin = node("agreement-g1", labels={POOL: "one"}, taints=[ONLY], **{"nvidia.com/gpu": "1"})
    without = [GPU, claim(exactly()), plugin]
    yield Shape(FAMILY, "a node is there and no driver on it", claiming(1), without, {"one": DRA["one"]})


def _plain(n: int) -> Object:
    said = {"type": {"string": "gpu"}, "uuid": {"string": f"GPU-{n}"}, "architecture": {"string": "Turing"}}
    return {"name": f"gpu-{n}", "attributes": said, "capacity": {"memory": {"value": "15360Mi"}}}
