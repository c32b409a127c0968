"""Pod shapes of taints, gates and priority, and shapes beside GPU nodes that are there already."""

from collections.abc import Iterator

from agreement_bed import MARK, ONLY, POOLS
from agreement_objects import FOUR, HOST, ZONE, Object, Shape, app, near, node, other, pod, pods, spread
from agreement_room import daemons


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
