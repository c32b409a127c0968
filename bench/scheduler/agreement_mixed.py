"""Shapes of several rules at once, and of rules beside nodes that are there."""

from collections.abc import Iterator

from agreement_bed import MARK, ONLY, POOLS
from agreement_objects import (
    FOUR,
    HOST,
    TWO_ZONES,
    ZONE,
    Object,
    Shape,
    app,
    expr,
    near,
    node,
    other,
    pod,
    pods,
    required,
    spread,
    term,
)

RACK = "example.test/rack"
TYPE = "node.kubernetes.io/instance-type"
RACKS: Object = {
    "one": {**POOLS["one"], "labels": {RACK: "r1"}},
    "four": {**POOLS["four"], "labels": {RACK: "r2"}},
}
ME: Object = {"labels": {"app": "train"}}
FAMILY = "mixed"


def gpu(name: str, count: int, zone: str = "zone-a", **room: str) -> Object:
    """A GPU node that is there."""
    room = {"nvidia.com/gpu": str(count), **room}
    return node(f"agreement-{name}", zone, labels={MARK: "SHAPE"}, taints=[ONLY], **room)


def mixed() -> Iterator[Shape]:
    """All of them."""
    yield from _pods_near()
    yield from _beside_nodes()
    yield from _with_volumes()


def _pods_near() -> Iterator[Shape]:
    even, odd = {"app": "train", "version": "1"}, {"app": "train", "version": "2"}
    unlike = near("podAntiAffinity", HOST, app("train"), mismatchLabelKeys=["version"])
    two = [pod(f"a{n}", labels=even, affinity=unlike) for n in range(2)]
    yield Shape(
        FAMILY,
        "apart from other versions, by mismatchLabelKeys",
        [*two, pod("b", labels=odd, affinity=unlike)],
        pools=FOUR,
    )
    by_rack = {"topologySpreadConstraints": [spread(RACK, app("train"))], **ME}
    yield Shape(FAMILY, "spread by a label of pools", pods(4, **by_rack), pools=RACKS)
    apart = near("podAntiAffinity", TYPE, app("train"))
    yield Shape(FAMILY, "apart by instance type, more pods than types", pods(3, affinity=apart, **ME))
    beside = {**near("podAffinity", ZONE, app("web")), **near("podAntiAffinity", HOST, app("train"))}
    web = [node("agreement-cpu", "zone-b"), pod("web", None, labels={"app": "web"}, node="agreement-cpu")]
    yield Shape(FAMILY, "beside a pod by zone, apart by host", pods(3, affinity=beside, **ME), web)
    least = {"topologySpreadConstraints": [spread(ZONE, app("train"), maxSkew=2, minDomains=3)], **ME}
    yield Shape(FAMILY, "minDomains of more zones than are sold, by two", pods(5, **least), pools=TWO_ZONES)
    one_zone = {"topologySpreadConstraints": [spread(ZONE, app("train"))], "nodeSelector": {ZONE: "zone-a"}, **ME}
    yield Shape(FAMILY, "spread by zone, but one zone is chosen", pods(3, **one_zone))
    both = {
        "affinity": near("podAffinity", ZONE, app("train")),
        "topologySpreadConstraints": [spread(HOST, app("train"))],
    }
    yield Shape(FAMILY, "one zone, spread by host", pods(3, **both, **ME))
    with_cpu = {"topologySpreadConstraints": [spread(HOST, app("train"))], **ME}
    yield Shape(FAMILY, "spread by host, a CPU node is a host", pods(2, **with_cpu), [node("agreement-cpu")], FOUR)
    gang = pods(3, affinity=near("podAffinity", ZONE, app("train")), **ME)
    for each in gang:
        each["metadata"]["annotations"] = {"pilotlight.dev/gang": "g", "pilotlight.dev/gang-size": "3"}
    yield Shape(FAMILY, "a gang beside itself by zone", gang)
    port = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    ported = {"topologySpreadConstraints": [spread(ZONE, app("train"))], **port, **ME}
    yield Shape(FAMILY, "a host port, spread by zone", pods(4, **ported), pools=FOUR | TWO_ZONES)
    kept = near("podAntiAffinity", ZONE, app("train"), namespaces=["agreement-far"])
    far = [
        other("Namespace", "agreement-far"),
        node("agreement-cpu", "zone-a"),
        pod(
            "web",
            None,
            node="agreement-cpu",
            affinity=near("podAntiAffinity", ZONE, app("train"), namespaces=["SPACE"]),
        ),
    ]
    far[2]["metadata"]["namespace"] = "agreement-far"
    yield Shape(
        FAMILY, "a pod of another namespace keeps it away, by zone", pods(1, affinity=kept, **ME), far, TWO_ZONES
    )


def _beside_nodes() -> Iterator[Shape]:
    run = pod("run", node="agreement-g1", **ME)
    yield Shape(FAMILY, "room for its GPU, but no pod more", pods(1), [gpu("g1", 4, pods="1"), run])
    full = [gpu("g1", 1), run]
    yield Shape(FAMILY, "a selector of a host that is full", pods(1, nodeSelector={HOST: "agreement-g1"}), full)
    there = required(term(expr(HOST, "In", "agreement-g1")), term(expr(ZONE, "In", "zone-b")))
    yield Shape(FAMILY, "a host that is full, or another zone", pods(1, affinity=there), full)
    high = other("PriorityClass", "agreement-high", value=1000)
    low = [pod(f"low-{n}", node="agreement-g1") for n in range(2)]
    first = {"priorityClassName": "agreement-high"}
    yield Shape(FAMILY, "two of lower priority make room", pods(1, 2, **first), [high, gpu("g1", 2), *low])
    yield Shape(FAMILY, "priority that does not help", pods(1, 2, **first), [high, gpu("g1", 1), low[0]])
    same = [pod("x"), pod("y")]
    same[0]["spec"]["containers"].append({**same[0]["spec"]["containers"][0], "name": "second", "ports": []})
    yield Shape(FAMILY, "GPUs of two containers", same[:1])
    stays = {"key": "dedicated", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 600}
    taints = {"one": {**POOLS["one"], "taints": [{"key": "dedicated", "value": "x", "effect": "NoExecute"}]}}
    yield Shape(FAMILY, "NoExecute, borne for a while", pods(1, tolerations=[stays]), pools=taints)
    address = {"ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}]}
    other_one = pod("run", node="agreement-g1", ports=[{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.2"}])
    yield Shape(FAMILY, "its port on another address is taken", pods(1, **address), [gpu("g1", 4), other_one])


def _with_volumes() -> Iterator[Shape]:
    disk = other(
        "StorageClass", "agreement-disk", provisioner="disk.example.test", volumeBindingMode="WaitForFirstConsumer"
    )

    def volume(name: str, key: str, value: str) -> list[Object]:
        spec: Object = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "agreement-disk",
        }
        place = {"required": {"nodeSelectorTerms": [term(expr(key, "In", value))]}}
        held = {"kind": "PersistentVolumeClaim", "name": name, "namespace": "SPACE"}
        csi = {"driver": "disk.example.test", "volumeHandle": name}
        claim = {**spec, "resources": {"requests": spec["capacity"]}, "volumeName": f"agreement-{name}"}
        claim.pop("capacity")
        return [
            other(
                "PersistentVolume",
                f"agreement-{name}",
                spec={**spec, "csi": csi, "nodeAffinity": place, "claimRef": held},
            ),
            other("PersistentVolumeClaim", name, spec=claim),
        ]

    def uses(*names: str) -> Object:
        return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]}

    one, two = volume("one", ZONE, "zone-b"), volume("two", ZONE, "zone-b")
    yield Shape(FAMILY, "two pods with one volume", pods(2, **uses("one")), [disk, *one])
    apart = near("podAntiAffinity", ZONE, app("train"))
    pair = [pod("a", affinity=apart, **uses("one"), **ME), pod("b", affinity=apart, **uses("two"), **ME)]
    yield Shape(FAMILY, "volumes in one zone, pods apart by zone", pair, [disk, *one, *two])
    limit = other(
        "CSINode", "agreement-g1",
        spec={"drivers": [{"name": "disk.example.test", "nodeID": "x", "allocatable": {"count": 1}}]},
    )  # fmt: skip
    near_by = [disk, gpu("g1", 4, "zone-b"), limit, *one, *two]
    yield Shape(FAMILY, "two volumes, a node that attaches one", pods(1, **uses("one", "two")), near_by)
    local = volume("one", HOST, "agreement-g1")
    yield Shape(
        FAMILY,
        "a local volume of a node that is full",
        pods(1, **uses("one")),
        [disk, gpu("g1", 1), pod("run", node="agreement-g1"), *local],
    )
    yield Shape(FAMILY, "a local volume of a node that has room", pods(1, **uses("one")), [disk, gpu("g1", 1), *local])
    fresh = [
        disk,
        other(
            "PersistentVolumeClaim",
            "new",
            spec={
                "storageClassName": "agreement-disk",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        ),
    ]
    yield Shape(FAMILY, "an old volume and a new one", pods(1, **uses("one", "new")), [*fresh, *one])
    alone = [fresh[0], {**fresh[1], "spec": {**fresh[1]["spec"], "accessModes": ["ReadWriteOncePod"]}}]
    yield Shape(FAMILY, "ReadWriteOncePod of two pods, not there yet", pods(2, **uses("new")), alone)
