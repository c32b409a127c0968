"""Pod shapes that choose nodes by labels and by the pods near by: affinity, anti-affinity, topology spread."""

from collections.abc import Iterator

from agreement_bed import POOLS
from agreement_objects import (
    FOUR,
    HOST,
    ONE_ZONE,
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
