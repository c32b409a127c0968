"""Pod shapes that are short of ports, resources or room beside DaemonSets."""

from collections.abc import Iterator
from typing import Any

from agreement_bed import POOLS
from agreement_objects import FOUR, TWO_ZONES, ZONE, Object, Shape, app, other, pod, pods


def room() -> Iterator[Shape]:
    """Ports, resources, containers."""

    def port(number: int, **rest: Any) -> Object:
        return {"ports": [{"containerPort": number, "hostPort": number, **rest}]}

    family = "host ports"
    yield Shape(family, "one port, three pods", pods(3, **port(8080)), pools=FOUR)
    yield Shape(
        family,
        "one port on two addresses",
        [pod("a", **port(8080, hostIP="10.0.0.1")), pod("b", **port(8080, hostIP="10.0.0.2"))],
        pools=FOUR,
    )
    yield Shape(
        family,
        "one port on all addresses and on one",
        [pod("a", **port(8080)), pod("b", **port(8080, hostIP="10.0.0.2"))],
        pools=FOUR,
    )
    yield Shape(
        family,
        "one number of two protocols",
        [pod("a", **port(8080)), pod("b", **port(8080, protocol="UDP"))],
        pools=FOUR,
    )
    network = pods(2, hostNetwork=True, ports=[{"containerPort": 9000}])
    yield Shape(family, "the host's network", network, pools=FOUR)
    exporter = daemons("exporter", ports=[{"containerPort": 9400, "hostPort": 9400}])
    yield Shape(family, "a port that a DaemonSet has", pods(1, **port(9400)), [exporter])
    sidecar = [{"name": "s", "image": "x", "restartPolicy": "Always", "ports": [{"containerPort": 7, "hostPort": 7}]}]
    yield Shape(family, "a sidecar's port", pods(2, initContainers=sidecar), pools=FOUR)
    family = "resources"
    rdma = {"one": {**POOLS["one"], "slices": {"rdma/hca": 1}}, "four": POOLS["four"]}
    yield Shape(family, "an extended resource of one pool", pods(2, limits={"rdma/hca": "1"}), pools=rdma)
    yield Shape(family, "an extended resource that nobody has", pods(1, limits={"example.test/fpga": "1"}))
    huge = {"four": {**POOLS["four"], "slices": {"hugepages-2Mi": 2**30}}, "one": POOLS["one"]}
    pages = {"limits": {"hugepages-2Mi": "512Mi", "memory": "1Gi"}}
    yield Shape(family, "huge pages of one pool", pods(2, **pages), pools=huge)
    yield Shape(
        family,
        "huge pages of a size that nobody has",
        pods(1, limits={"hugepages-1Gi": "1Gi", "memory": "1Gi"}),
        pools=huge,
    )
    mig = {"one": {**POOLS["one"], "slices": {"nvidia.com/mig-1g.10gb": 7}}, "four": POOLS["four"]}
    yield Shape(family, "MIG profiles", pods(9, None, limits={"nvidia.com/mig-1g.10gb": "1"}), pools=mig)
    yield Shape(
        family, "a MIG profile that nobody has", pods(1, None, limits={"nvidia.com/mig-3g.20gb": "1"}), pools=mig
    )
    yield Shape(family, "just as much CPU as a node has left", pods(2, requests={"cpu": "3920m"}))
    yield Shape(family, "a little more CPU than a small node has", pods(1, requests={"cpu": "3921m"}))
    yield Shape(family, "more memory than any node has", pods(1, requests={"memory": "200Gi"}))
    yield Shape(family, "more disk than a small node has", pods(1, requests={"ephemeral-storage": "95Gi"}))
    yield Shape(
        family,
        "pod-level CPU and memory",
        pods(1, resources={"requests": {"cpu": "5", "memory": "20Gi"}, "limits": {"cpu": "5", "memory": "20Gi"}}),
    )
    level = {"requests": {"cpu": "1"}, "limits": {"cpu": "3", "memory": "8Gi"}}
    yield Shape(family, "pod-level limits without requests of memory", pods(2, resources=level))
    init = [{"name": "i", "image": "x", "resources": {"requests": {"cpu": "6"}}}]
    yield Shape(family, "an init container that needs more", pods(1, initContainers=init))
    side = [{"name": "s", "image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}]
    yield Shape(family, "a sidecar beside its containers", pods(1, initContainers=side, requests={"cpu": "2"}))
    yield Shape(
        family,
        "a sidecar before an init container",
        pods(1, initContainers=[*side, {**init[0], "resources": {"requests": {"cpu": "2"}}}]),
    )
    runtime = other(
        "RuntimeClass",
        "agreement-sandbox",
        handler="x",
        overhead={"podFixed": {"cpu": "4", "memory": "1Gi"}},
        scheduling={"nodeSelector": {ZONE: "zone-b"}},
    )
    yield Shape(
        family, "overhead and a place of its RuntimeClass", pods(1, runtimeClassName="agreement-sandbox"), [runtime]
    )
    many = [{"name": f"c{n}", "image": "x", "resources": {"requests": {"cpu": "1"}}} for n in range(4)]
    crowd = pod("p0")
    crowd["spec"]["containers"] += many
    yield Shape(family, "many containers together", [crowd])
    yield Shape(family, "more GPUs than any node has", pods(1, 8))
    yield Shape(family, "GPUs of two small nodes are not one of two", pods(1, 2), pools=TWO_ZONES)


def daemons(name: str, **rest: Any) -> Object:
    """A DaemonSet of the shape's own nodes."""
    made = pod("x", rest.pop("gpus", None), labels={"app": name}, **rest)
    template = {"metadata": {"labels": {"app": name}}, "spec": made["spec"]}
    template["spec"].pop("terminationGracePeriodSeconds")
    return other("DaemonSet", name, spec={"selector": app(name), "template": template})


def daemonsets() -> Iterator[Shape]:
    """DaemonSets that take room on small nodes."""
    family = "DaemonSets"
    exporter = daemons("exporter", requests={"cpu": "1", "memory": "2Gi"})
    yield Shape(family, "a small node is too small beside them", pods(1, requests={"cpu": "3500m"}), [exporter])
    yield Shape(family, "a small node is large enough beside them", pods(1, requests={"cpu": "2500m"}), [exporter])
    yield Shape(family, "one that holds a GPU", pods(1), [daemons("holder", gpus=1)])
    elsewhere = daemons("elsewhere", requests={"cpu": "2"}, nodeSelector={ZONE: "zone-b"})
    yield Shape(
        family,
        "one of another zone takes nothing here",
        pods(1, requests={"cpu": "3"}, nodeSelector={ZONE: "zone-a"}),
        [elsewhere],
    )
    stiff = daemons("stiff", requests={"cpu": "2"})
    stiff["spec"]["template"]["spec"]["tolerations"] = []
    yield Shape(family, "one that does not bear the taint takes nothing", pods(1, requests={"cpu": "3"}), [stiff])
