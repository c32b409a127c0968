"""Pod shapes that are hard to plan for: what ``bench/agreement.py`` tries. One function makes one family."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agreement_bed import MARK, ONLY, POOLS

Object = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
BEAR: Object = {"key": ONLY["key"], "operator": "Exists"}
ONE_ZONE: Object = {"one": {**POOLS["one"], "zones": ["zone-a"]}}
TWO_ZONES: Object = {"one": {**POOLS["one"], "zones": ["zone-a", "zone-b"]}}
FOUR: Object = {"four": {**POOLS["four"], "zones": ["zone-a"]}}


class Shape(NamedTuple):
    """What waits, beside what. ``there`` is made first: namespaces, classes, nodes, pods with a node of their own.

    ``pools`` are what can be bought. ``alone``: its pods choose no nodes of their own, so that it sees the others'.
    ``claims``: a driver publishes the devices of nodes, and no device plugin runs.
    """

    family: str
    name: str
    pods: Sequence[Object]
    there: Sequence[Object] = ()
    pools: Object = POOLS
    alone: bool = False
    claims: bool = False


def pod(name: str, gpus: Any = 1, *, labels: Any = None, node: str = "", **spec: Any) -> Object:
    """A pod of one container that asks for GPUs; ``requests``, ``limits``, ``ports`` are its container's."""
    limits = {**({"nvidia.com/gpu": str(gpus)} if gpus else {}), **spec.pop("limits", {})}
    resources = {"limits": limits, "requests": {"cpu": "100m", **spec.pop("requests", {})}}
    container = {"name": "main", "image": "example.invalid/x", "resources": resources, "ports": spec.pop("ports", [])}
    meta: Object = {"name": name, "labels": labels or {}}
    if "namespace" in spec:
        meta["namespace"] = spec.pop("namespace")
    bears = [BEAR, *spec.pop("tolerations", [])]
    place = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], "tolerations": bears, "terminationGracePeriodSeconds": 0, **place, **spec},
    }


def pods(count: int, gpus: Any = 1, **rest: Any) -> list[Object]:
    """Pods alike."""
    return [pod(f"p{n}", gpus, **rest) for n in range(count)]


def node(name: str, zone: str = "zone-a", *, labels: Object | None = None, taints: Any = (), **room: str) -> Object:
    """A node without GPUs that is there; ``room`` is added to it."""
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: zone, **(labels or {})}},
        "room": {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", **room},
        "taints": list(taints),
    }


def other(kind: str, name: str, **rest: Any) -> Object:
    """Any other object."""
    version = {
        "StorageClass": "storage.k8s.io/v1",
        "CSINode": "storage.k8s.io/v1",
        "DaemonSet": "apps/v1",
        "PriorityClass": "scheduling.k8s.io/v1",
        "RuntimeClass": "node.k8s.io/v1",
    }.get(kind, "v1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **rest.pop("meta", {})}, **rest}


def required(*terms: Object) -> Object:
    """Required node affinity of any of some terms."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expr(key: str, operator: str, *values: str) -> Object:
    """One expression."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def term(*expressions: Object) -> Object:
    """A term of expressions."""
    return {"matchExpressions": list(expressions)}


def near(kind: str, topology: str, selector: Object | None, **rest: Any) -> Object:
    """Required pod affinity ("podAffinity") or anti-affinity ("podAntiAffinity")."""
    one = {"topologyKey": topology, **({"labelSelector": selector} if selector is not None else {}), **rest}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [one]}}


def app(value: str) -> Object:
    """A selector of one label."""
    return {"matchLabels": {"app": value}}


def spread(topology: str, selector: Object, **rest: Any) -> Object:
    """A topology spread constraint that forbids."""
    return {
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "topologyKey": topology,
        "labelSelector": selector,
        **rest,
    }


def affinity() -> Iterator[Shape]:
    """Node affinity with every operator."""
    tier = {"one": {**POOLS["one"], "labels": {"tier": "7", "team": "red"}}}
    for name, one in {
        "In": expr("team", "In", "red", "blue"),
        "In of none": expr("team", "In", "blue"),
        "NotIn": expr("team", "NotIn", "blue"),
        "NotIn of a label that is not there": expr("nobody", "NotIn", "blue"),
        "NotIn of its own": expr("team", "NotIn", "red"),
        "Exists": expr("team", "Exists"),
        "Exists of the host's name": expr(HOST, "Exists"),
        "DoesNotExist": expr("team", "DoesNotExist"),
        "DoesNotExist of the host's name": expr(HOST, "DoesNotExist"),
        "Gt": expr("tier", "Gt", "6"),
        "Gt of the same": expr("tier", "Gt", "7"),
        "Lt": expr("tier", "Lt", "8"),
        "Gt of no number": expr("team", "Gt", "1"),
    }.items():
        yield Shape("node affinity", name, pods(1, affinity=required(term(one))), pools=tier)
    several = required(term(expr("team", "In", "blue")), term(expr(ZONE, "In", "zone-b")))
    yield Shape("node affinity", "several terms, the second holds", pods(2, affinity=several), pools=tier)
    empty = required({}, term(expr(ZONE, "In", "zone-c")))
    yield Shape("node affinity", "an empty term holds nowhere", pods(1, affinity=empty), pools=tier)
    fields = required({"matchFields": [expr("metadata.name", "In", "no-such-node")]})
    yield Shape("node affinity", "matchFields of a node that is not there", pods(1, affinity=fields))
    but = required({"matchFields": [expr("metadata.name", "NotIn", "some-node")]})
    yield Shape("node affinity", "matchFields of any other node", pods(1, affinity=but))
    both = {"affinity": required(term(expr(ZONE, "In", "zone-a", "zone-b"))), "nodeSelector": {ZONE: "zone-b"}}
    yield Shape("node affinity", "with a node selector", pods(2, **both))
    yield Shape("node affinity", "a selector of the host's name", pods(1, nodeSelector={HOST: "no-such-node"}))
    beta = {"nodeSelector": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}
    yield Shape("node affinity", "well-known labels", pods(1, **beta))


def among() -> Iterator[Shape]:
    """Pod affinity and anti-affinity."""
    web, cpu = pod("web", None, labels={"app": "web"}, node="agreement-cpu"), node("agreement-cpu", "zone-b")
    far = pod("web", None, labels={"app": "web"}, node="agreement-cpu")
    away = near("podAntiAffinity", ZONE, app("train"))
    me = {"labels": {"app": "train"}}
    family = "pod affinity"
    self_ = near("podAffinity", ZONE, app("train"))
    yield Shape(family, "a group beside itself, by zone", pods(4, affinity=self_, **me))
    yield Shape(
        family, "a group beside itself, by host", pods(4, affinity=near("podAffinity", HOST, app("train")), **me)
    )
    five = pods(5, affinity=near("podAffinity", HOST, app("train")), **me)
    yield Shape(family, "a group beside itself that no host holds", five)
    beside = near("podAffinity", ZONE, app("web"))
    yield Shape(family, "beside a pod on a CPU node, by zone", pods(2, affinity=beside), [cpu, web])
    only_a = pods(1, affinity=beside)
    yield Shape(family, "beside a pod in a zone that is not sold", only_a, [cpu, web], ONE_ZONE)
    yield Shape(
        family,
        "beside a pod on a CPU node, by host",
        pods(1, affinity=near("podAffinity", HOST, app("web"))),
        [cpu, web],
    )
    yield Shape(family, "beside nobody", pods(1, affinity=near("podAffinity", ZONE, app("nobody")), **me))
    spaces = [
        other("Namespace", "agreement-other", meta={"labels": {"team": "red"}}),
        cpu,
        {**far, "metadata": {**far["metadata"], "namespace": "agreement-other"}},
    ]
    yield Shape(
        family,
        "beside a pod of a named namespace",
        pods(1, affinity=near("podAffinity", ZONE, app("web"), namespaces=["agreement-other"])),
        spaces,
    )
    red = near("podAffinity", ZONE, app("web"), namespaceSelector={"matchLabels": {"team": "red"}})
    yield Shape(family, "beside a pod of a selected namespace", pods(1, affinity=red), spaces, alone=True)
    yield Shape(family, "a pod of another namespace is not beside", pods(1, affinity=beside), spaces)
    every = near("podAffinity", ZONE, app("web"), namespaceSelector={})
    yield Shape(family, "an empty namespace selector is all", pods(1, affinity=every), spaces, alone=True)
    keys = near("podAffinity", ZONE, app("train"), matchLabelKeys=["version"])
    old = pod("old", None, labels={"app": "train", "version": "1"}, node="agreement-cpu")
    yield Shape(
        family,
        "matchLabelKeys: another version is not beside",
        pods(2, labels={"app": "train", "version": "2"}, affinity=keys),
        [cpu, old],
        ONE_ZONE,
    )
    two = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": ZONE, "labelSelector": app("web")},
                {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"tier": "x"}}},
            ]
        }
    }
    yield Shape(family, "two terms, no pod has both", pods(1, affinity=two), [cpu, web])
    yield Shape(
        family,
        "a label that nodes do not carry",
        pods(1, affinity=near("podAffinity", "example.test/rack", app("train")), **me),
    )
    family = "pod anti-affinity"
    yield Shape(
        family,
        "a group apart from itself, by host",
        pods(3, affinity=near("podAntiAffinity", HOST, app("train")), **me),
    )
    yield Shape(
        family,
        "a group apart from itself, by host, on big nodes",
        pods(3, affinity=near("podAntiAffinity", HOST, app("train")), **me),
        pools=FOUR,
    )
    yield Shape(
        family,
        "a group apart from itself, by zone",
        pods(2, affinity=near("podAntiAffinity", ZONE, app("train")), **me),
    )
    yield Shape(
        family,
        "more pods apart than there are zones",
        pods(3, affinity=near("podAntiAffinity", ZONE, app("train")), **me),
        pools=TWO_ZONES,
    )
    yield Shape(
        family,
        "apart from a pod on a CPU node, by zone",
        pods(1, affinity=near("podAntiAffinity", ZONE, app("web"))),
        [cpu, web],
        TWO_ZONES,
    )
    yield Shape(
        family,
        "apart from all that is sold",
        pods(1, affinity=near("podAntiAffinity", ZONE, app("web"))),
        [node("agreement-cpu"), web],
        ONE_ZONE,
    )
    keeper = pod("web", None, labels={"app": "web"}, node="agreement-cpu", affinity=away)
    yield Shape(family, "a pod on a CPU node keeps it away, by zone", pods(1, **me), [cpu, keeper], TWO_ZONES)
    yield Shape(
        family,
        "a pod on a CPU node keeps it away from all that is sold",
        pods(1, **me),
        [node("agreement-cpu"), keeper],
        ONE_ZONE,
    )
    yield Shape(
        family,
        "a waiting pod keeps another away, by host",
        [pod("a", 1, affinity=near("podAntiAffinity", HOST, app("b"))), *pods(2, labels={"app": "b"})],
        pools=FOUR,
    )
    notin = near("podAntiAffinity", HOST, {"matchExpressions": [expr("app", "NotIn", "train")]})
    yield Shape(family, "apart from all but its own kind", [*pods(2, affinity=notin, **me), pod("x", 1)], pools=FOUR)
    nothing = near("podAntiAffinity", HOST, None)
    yield Shape(family, "no selector is nobody", pods(2, affinity=nothing), pools=FOUR)
    both = {**self_, **near("podAntiAffinity", HOST, app("train"))}
    yield Shape(family, "one zone, but apart by host", pods(3, affinity=both, **me))


def spreads() -> Iterator[Shape]:
    """Topology spread."""
    family, me = "topology spread", {"labels": {"app": "train"}}
    mine = app("train")

    def by(*each: Object) -> Object:
        return {"topologySpreadConstraints": list(each), **me}

    yield Shape(family, "by host", pods(3, **by(spread(HOST, mine))), pools=FOUR)
    yield Shape(family, "by host, two a host", pods(4, **by(spread(HOST, mine, maxSkew=2))), pools=FOUR)
    yield Shape(family, "by zone", pods(4, **by(spread(ZONE, mine))))
    yield Shape(family, "by zone and host", pods(4, **by(spread(ZONE, mine), spread(HOST, mine))))
    yield Shape(
        family,
        "minDomains of more zones than are sold",
        pods(3, **by(spread(ZONE, mine, minDomains=3))),
        pools=TWO_ZONES,
    )
    yield Shape(family, "minDomains of the zones that are sold", pods(3, **by(spread(ZONE, mine, minDomains=3))))
    cpus = [node("agreement-cpu-a", "zone-a"), node("agreement-cpu-c", "zone-c")]
    yield Shape(
        family, "by zone, CPU nodes in a zone that is not sold", pods(2, **by(spread(ZONE, mine))), cpus, ONE_ZONE
    )
    run = pod("there", None, labels={"app": "train"}, node="agreement-cpu-a")
    yield Shape(family, "by zone, pods on CPU nodes counted", pods(1, **by(spread(ZONE, mine))), [*cpus, run])
    tainted = [node("agreement-cpu-c", "zone-c", taints=[{"key": "full", "value": "x", "effect": "NoSchedule"}])]
    yield Shape(family, "by zone, tainted nodes counted", pods(2, **by(spread(ZONE, mine))), tainted, ONE_ZONE)
    honor = spread(ZONE, mine, nodeTaintsPolicy="Honor")
    yield Shape(family, "by zone, tainted nodes not counted", pods(2, **by(honor)), tainted, ONE_ZONE)
    picks = {"nodeSelector": {"team": "red"}}
    red = {"one": {**ONE_ZONE["one"], "labels": {"team": "red"}}}
    yield Shape(
        family, "nodes its selector leaves out not counted", pods(2, **by(spread(ZONE, mine)), **picks), cpus, red
    )
    ignore = spread(ZONE, mine, nodeAffinityPolicy="Ignore")
    yield Shape(family, "nodes its selector leaves out counted", pods(2, **by(ignore), **picks), cpus, red, alone=True)
    keyed = spread(ZONE, mine, matchLabelKeys=["version"])
    old = pod("old", None, labels={"app": "train", "version": "1"}, node="agreement-cpu-a")
    new = {"labels": {"app": "train", "version": "2"}, "topologySpreadConstraints": [keyed]}
    yield Shape(family, "matchLabelKeys: another version is not counted", pods(1, **new), [*cpus, old], ONE_ZONE)
    yield Shape(family, "a label that nodes do not carry", pods(1, **by(spread("example.test/rack", mine))))
    anyway = spread(ZONE, mine, whenUnsatisfiable="ScheduleAnyway")
    yield Shape(family, "ScheduleAnyway forbids nothing", pods(2, **by(anyway)), cpus, ONE_ZONE)
    yield Shape(family, "a selector that is not its own", pods(3, **by(spread(HOST, app("web")))), pools=FOUR)


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


def volumes() -> Iterator[Shape]:
    """Volumes."""
    family = "volumes"

    def kind(name: str, **rest: Any) -> Object:
        return other(
            "StorageClass",
            f"agreement-{name}",
            provisioner=rest.pop("provisioner", "disk.example.test"),
            volumeBindingMode=rest.pop("mode", "WaitForFirstConsumer"),
            **rest,
        )

    def claim(name: str, of: str, mode: str = "ReadWriteOnce", **rest: Any) -> Object:
        spec = {
            "storageClassName": f"agreement-{of}",
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
            **rest,
        }
        return other("PersistentVolumeClaim", name, spec=spec)

    def volume(name: str, of: str, zone: str, claims: str = "", mode: str = "ReadWriteOnce", **rest: Any) -> Object:
        spec: Object = {
            "capacity": {"storage": "1Gi"},
            "accessModes": [mode],
            "storageClassName": f"agreement-{of}",
            "csi": {"driver": "disk.example.test", "volumeHandle": name},
        }
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term(expr(ZONE, "In", zone))]}}
        if claims:
            spec["claimRef"] = {"kind": "PersistentVolumeClaim", "name": claims, "namespace": "SPACE"}
        return other("PersistentVolume", f"agreement-{name}", spec={**spec, **rest})

    def uses(name: str) -> Object:
        return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}}]}

    by_hand = {"provisioner": "kubernetes.io/no-provisioner"}
    yield Shape(
        family,
        "a volume in zone-b",
        pods(1, **uses("data")),
        [kind("disk"), volume("pv1", "disk", "zone-b", "data"), claim("data", "disk", volumeName="agreement-pv1")],
    )
    yield Shape(
        family,
        "a volume in a zone that is not sold",
        pods(1, **uses("data")),
        [kind("disk"), volume("pv1", "disk", "zone-z", "data"), claim("data", "disk", volumeName="agreement-pv1")],
    )
    yield Shape(family, "a claim of the first consumer", pods(1, **uses("data")), [kind("disk"), claim("data", "disk")])
    topo = {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-c"]}]}]}
    yield Shape(
        family, "allowedTopologies of one zone", pods(1, **uses("data")), [kind("disk", **topo), claim("data", "disk")]
    )
    none = {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-z"]}]}]}
    yield Shape(
        family,
        "allowedTopologies of a zone that is not sold",
        pods(1, **uses("data")),
        [kind("disk", **none), claim("data", "disk")],
    )
    yield Shape(
        family,
        "no provisioner, a free volume in zone-b",
        pods(1, **uses("data")),
        [kind("local", **by_hand), volume("pv1", "local", "zone-b"), claim("data", "local")],
    )
    yield Shape(
        family,
        "no provisioner and no volume",
        pods(1, **uses("data")),
        [kind("local", **by_hand), claim("data", "local")],
    )
    yield Shape(
        family,
        "no provisioner, one volume for two claims",
        [pod("a", **uses("one")), pod("b", **uses("two"))],
        [kind("local", **by_hand), volume("pv1", "local", "zone-b"), claim("one", "local"), claim("two", "local")],
    )
    yield Shape(
        family,
        "ReadWriteOncePod that another pod has",
        pods(1, **uses("data")),
        [
            kind("disk"),
            volume("pv1", "disk", "zone-a", "data", "ReadWriteOncePod"),
            claim("data", "disk", "ReadWriteOncePod", volumeName="agreement-pv1"),
            node("agreement-cpu"),
            pod("holder", None, node="agreement-cpu", **uses("data")),
        ],
    )
    yield Shape(
        family,
        "ReadWriteOncePod of two pods that wait",
        [pod("a", **uses("data")), pod("b", **uses("data"))],
        [
            kind("disk"),
            volume("pv1", "disk", "zone-a", "data", "ReadWriteOncePod"),
            claim("data", "disk", "ReadWriteOncePod", volumeName="agreement-pv1"),
        ],
    )
    yield Shape(family, "a claim that is not there", pods(1, **uses("nothing")))
    yield Shape(
        family,
        "a claim that nobody binds",
        pods(1, **uses("data")),
        [kind("now", mode="Immediate"), claim("data", "now")],
    )
    yield Shape(family, "a claim without a class", pods(1, **uses("data")), [claim("data", "", storageClassName="")])
    apart = [
        kind("disk"),
        volume("pv1", "disk", "zone-a", "one"),
        claim("one", "disk", volumeName="agreement-pv1"),
        volume("pv2", "disk", "zone-b", "two"),
        claim("two", "disk", volumeName="agreement-pv2"),
    ]
    both = {"volumes": [*uses("one")["volumes"], *uses("two")["volumes"]]}
    yield Shape(family, "two volumes in two zones", pods(1, **both), apart)
    yield Shape(
        family,
        "an ephemeral volume of one zone",
        pods(1, volumes=[{"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": claim("x", "disk")["spec"]}}}]),
        [kind("disk", **topo)],
    )
    full = node("agreement-full", labels={MARK: "SHAPE"}, **{"nvidia.com/gpu": "4"}, taints=[ONLY])
    limit = other(
        "CSINode",
        "agreement-full",
        spec={"drivers": [{"name": "disk.example.test", "nodeID": "x", "allocatable": {"count": 1}}]},
    )
    used = [
        kind("disk"),
        full,
        limit,
        volume("pv1", "disk", "zone-a", "one"),
        claim("one", "disk", volumeName="agreement-pv1"),
        pod("holder", node="agreement-full", **uses("one")),
    ]
    yield Shape(
        family,
        "a node that can attach no more",
        pods(1, **uses("two")),
        [*used, volume("pv2", "disk", "zone-a", "two"), claim("two", "disk", volumeName="agreement-pv2")],
    )
    local = volume(
        "pv1",
        "local",
        "zone-a",
        "data",
        nodeAffinity={"required": {"nodeSelectorTerms": [term(expr(HOST, "In", "agreement-gone"))]}},
    )
    yield Shape(
        family,
        "a local volume of a node that is gone",
        pods(1, **uses("data")),
        [kind("local", **by_hand), local, claim("data", "local", volumeName="agreement-pv1")],
    )


def order() -> Iterator[Shape]:
    """Tolerations, gates, priority."""
    family = "taints"
    taint = {"key": "dedicated", "value": "red", "effect": "NoSchedule"}

    def pool(*taints: Object) -> Object:
        return {"one": {**POOLS["one"], "taints": list(taints)}}

    for name, one in {
        "Equal": {"key": "dedicated", "operator": "Equal", "value": "red", "effect": "NoSchedule"},
        "Equal of another value": {"key": "dedicated", "operator": "Equal", "value": "blue"},
        "Equal without an operator": {"key": "dedicated", "value": "red"},
        "Exists": {"key": "dedicated", "operator": "Exists"},
        "Exists of all keys": {"operator": "Exists"},
        "another effect": {"key": "dedicated", "operator": "Exists", "effect": "NoExecute"},
        "none": {"key": "else", "operator": "Exists"},
    }.items():
        yield Shape(family, f"toleration: {name}", pods(1, tolerations=[one]), pools=pool(taint))
    yield Shape(family, "NoExecute", pods(1), pools=pool({**taint, "effect": "NoExecute"}))
    yield Shape(
        family, "PreferNoSchedule keeps nobody off", pods(1), pools=pool({**taint, "effect": "PreferNoSchedule"})
    )
    family = "order"
    yield Shape(family, "a scheduling gate", pods(1, schedulingGates=[{"name": "example.test/wait"}]))
    yield Shape(family, "another scheduler's pod", pods(1, schedulerName="example-scheduler"))
    high = other("PriorityClass", "agreement-high", value=1000)
    never = other("PriorityClass", "agreement-never", value=1000, preemptionPolicy="Never")
    gpu = node("agreement-gpu", labels={MARK: "SHAPE"}, taints=[ONLY], **{"nvidia.com/gpu": "1"})
    low = pod("low", node="agreement-gpu")
    yield Shape(
        family,
        "a pod of higher priority takes a lower one's place",
        pods(1, priorityClassName="agreement-high"),
        [high, gpu, low],
    )
    yield Shape(family, "one that never preempts", pods(1, priorityClassName="agreement-never"), [never, gpu, low])
    batch = pod("filler", None, node="agreement-gpu", requests={"cpu": "7500m"})
    yield Shape(
        family,
        "a CPU pod of lower priority makes room",
        pods(1, priorityClassName="agreement-high", requests={"cpu": "1"}),
        [high, gpu, batch],
    )
    yield Shape(
        family,
        "higher and lower priority wait together",
        [pod("high", priorityClassName="agreement-high"), pod("low", 1)],
        [high],
    )
    cordoned = node(
        "agreement-gpu",
        labels={MARK: "SHAPE"},
        taints=[ONLY, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        **{"nvidia.com/gpu": "1"},
    )
    yield Shape(family, "a cordoned node takes nobody", pods(1), [cordoned])


def standing() -> Iterator[Shape]:
    """Beside GPU nodes that are there already."""
    family, me = "GPU nodes there", {"labels": {"app": "train"}}

    def gpu(name: str, count: int, zone: str = "zone-a") -> Object:
        return node(f"agreement-{name}", zone, labels={MARK: "SHAPE"}, taints=[ONLY], **{"nvidia.com/gpu": str(count)})

    run = pod("run", node="agreement-g1", **me)
    apart = near("podAntiAffinity", HOST, app("train"))
    yield Shape(family, "room on one, but apart from its pod", pods(1, affinity=apart, **me), [gpu("g1", 4), run])
    away = pod("run", node="agreement-g1", labels={"app": "x"}, affinity=apart)
    yield Shape(family, "room on one, but its pod keeps it away", pods(1, **me), [gpu("g1", 4), away])
    port = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    taken = pod("run", node="agreement-g1", **port)
    yield Shape(family, "room on one, but its port is taken", pods(1, **port), [gpu("g1", 4), taken])
    two = [gpu("g1", 4), gpu("g2", 4, "zone-b"), run]
    even = {"topologySpreadConstraints": [spread(HOST, app("train"))], **me}
    yield Shape(family, "spread by host over two", pods(3, **even), two)
    by_zone = {"topologySpreadConstraints": [spread(ZONE, app("train"))], **me}
    yield Shape(
        family,
        "spread by zone, the emptier one is full",
        pods(2, **by_zone),
        [gpu("g1", 4), gpu("g2", 0, "zone-b"), run],
    )
    beside = near("podAffinity", HOST, app("train"))
    yield Shape(family, "beside its pod, more than fit", pods(4, affinity=beside, **me), [gpu("g1", 4), run])
    yield Shape(
        family,
        "beside its pod, in a zone that is sold",
        pods(5, affinity=near("podAffinity", ZONE, app("train")), **me),
        [gpu("g1", 4), run],
    )
    filler = pod("filler", None, node="agreement-g1", requests={"cpu": "7500m"})
    yield Shape(family, "room for its GPU, not for its CPU", pods(1, requests={"cpu": "1"}), [gpu("g1", 4), filler])
    family = "several kinds"
    mutual = [
        pod("a", labels={"app": "a"}, affinity=near("podAntiAffinity", HOST, app("b"))),
        pod("b", labels={"app": "b"}, affinity=near("podAntiAffinity", HOST, app("a"))),
    ]
    yield Shape(family, "each apart from the other", mutual, pools=FOUR)
    follow = [
        pod("b", labels={"app": "b"}, affinity=near("podAffinity", ZONE, app("a"))),
        pod("a", labels={"app": "a"}),
    ]
    yield Shape(family, "one beside another that waits too", follow)
    gang = {"metadata": {"annotations": {"pilotlight.dev/gang": "g", "pilotlight.dev/gang-size": "3"}}}
    members = pods(3, affinity=apart, **me)
    for one in members:
        one["metadata"] |= gang["metadata"]
    yield Shape(family, "a gang apart from itself by host", members, pools=FOUR)
    soft = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": {"topologyKey": HOST, "labelSelector": app("train")}}
            ]
        }
    }
    yield Shape(family, "a preference forbids nothing", pods(4, affinity=soft, **me), pools=FOUR)
    init = [{"name": "i", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]
    yield Shape(family, "an init container of more GPUs", pods(1, initContainers=init))
    network = daemons("net", hostNetwork=True, ports=[{"containerPort": 9100}])
    yield Shape(
        family,
        "a port of a DaemonSet on the host's network",
        pods(1, ports=[{"containerPort": 9100, "hostPort": 9100}]),
        [network],
    )


def every() -> list[Shape]:
    """All shapes."""
    from agreement_claims import claims
    from agreement_mixed import mixed

    families = (affinity, among, spreads, room, daemonsets, volumes, order, standing, mixed, claims)
    return [shape for family in families for shape in family()]
