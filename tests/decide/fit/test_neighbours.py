"""Pods that mind who is near them: what is bought for pods as kubectl prints them, on zones a and b.

Each row is what a real scheduler of 1.36 did with the same pods; ``bench/scheduler/agreement.py`` asks it again.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from pilotlight.codec.kubernetes.view import view_of
from pilotlight.decide.demand.classify import classify
from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import Offering, Resources
from pilotlight.facts.decisions import Plan
from pilotlight.facts.labels import HOSTNAME, ZONE
from pilotlight.facts.memory import Memory
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.tools.cli.kubectl_lists import read_nodes, read_objects, read_pods

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ROOM = Resources(cpu_milli=4_000, memory=2**34, ephemeral=2**36, pods=29)
Object = dict[str, Any]


def offered(gpus: int, zone: str) -> Offering:
    """A node of so many GPUs in a zone, a dollar a GPU and an eighth more for each zone."""
    usd = Decimal(gpus) + Decimal("0.125") * (zone == "b")
    return Offering(
        pool=f"x{gpus}",
        instance_type=f"x{gpus}",
        capacity_type="on-demand",
        gpu_model="T4",
        gpus=gpus,
        usd_per_hour=usd,
        zone=zone,
        resources=ROOM,
        labels={ZONE: zone, HOSTNAME: ""},
    )


SOLD = (offered(1, "a"), offered(1, "b"))
BIG = (offered(4, "a"), offered(4, "b"))


def pod(name: str, app: str = "train", *, node: str = "", gpus: int = 1, **spec: Any) -> Object:
    """A pod that waits, or runs on a node; ``ports`` are its container's, ``meta`` is about it."""
    resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    meta = {"name": name, "namespace": "ml", "uid": name, "labels": {"app": app}, **spec.pop("meta", {})}
    containers = [{"name": "c", "resources": resources, "ports": spec.pop("ports", [])}]
    where = {"nodeName": node} if node else {}
    return {"kind": "Pod", "metadata": meta, "spec": {"containers": containers, **where, **spec}}


def pods(count: int, **rest: Any) -> list[Object]:
    """Pods alike."""
    return [pod(f"p{n}", **rest) for n in range(count)]


def cpu(name: str, zone: str, *taints: Object) -> Object:
    """A node without GPUs."""
    labels = {ZONE: zone, HOSTNAME: name}
    status = {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": status}


def near(kind: str, topology: str, app: str = "train", **rest: Any) -> Object:
    """Required affinity ("podAffinity") or anti-affinity ("podAntiAffinity") to pods of an app."""
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}, **rest}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(topology: str, app: str = "train", **rest: Any) -> Object:
    """A topology spread constraint of an app."""
    selector = {"labelSelector": {"matchLabels": {"app": app}}}
    one = {"topologyKey": topology, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **selector, **rest}
    return {"topologySpreadConstraints": [one]}


def port(number: int, **rest: Any) -> Object:
    """A container's port on its host."""
    return {"ports": [{"containerPort": number, "hostPort": number, **rest}]}


def planned(
    waiting: Sequence[Object],
    there: Sequence[Object] = (),
    nodes: Sequence[Object] = (),
    sold: Sequence[Offering] = SOLD,
    objects: Sequence[Object] = (),
) -> Plan:
    """The plan for pods that wait, with others and nodes that are there."""
    pools = {o.pool: PoolPolicy(instance_type=o.instance_type, max=20) for o in sold}
    policy = Policy(version=1, pools=pools, classes={"batch": ClassPolicy(gpu_models="any")})
    texts = [json.dumps({"kind": "List", "items": items}).encode() for items in ([*waiting, *there], [*nodes], objects)]
    read = read_pods(texts[0], "pods"), read_nodes(texts[1], "nodes"), read_objects([(texts[2], "objects")])
    view = view_of(*read, policy=policy, classify=classify, now=NOW)
    return plan_cluster(Look(view, (), sold, policy, Memory(), NOW, throughput={}))


def outcome(plan: Plan) -> tuple[dict[str, int], int]:
    """The nodes bought by zone, and how many pods are refused."""
    refused = sum(len(group.uids) for group in plan.pods if group.verdict not in ("fits", "booting", "bought"))
    return {buy.zone: buy.count for buy in plan.buys}, refused


WEB_IN_B = {"there": [pod("web", "web", node="cpu-b", gpus=0)], "nodes": [cpu("cpu-b", "b")]}
TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
BOTH = {"podAffinity": {TERMS: [near("podAffinity", ZONE, app)["podAffinity"][TERMS][0] for app in ("web", "db")]}}
KEEPS = pod("web", "web", node="cpu-a", gpus=0, affinity=near("podAntiAffinity", ZONE))
FULL = {"key": "full", "effect": "NoSchedule", "value": "x"}
KEPT = {"key": "pilotlight.dev/home", "effect": "NoSchedule", "value": "d-0-0"}
OLD = pod("old", node="cpu-b", gpus=0, meta={"labels": {"app": "train", "version": "1"}})
NEW = {"meta": {"labels": {"app": "train", "version": "2"}}}

ROWS: dict[str, tuple[Object, tuple[dict[str, int], int]]] = {
    "a group beside itself stays in the cheaper zone": (
        {"waiting": pods(3, affinity=near("podAffinity", ZONE))},
        ({"a": 3}, 0),
    ),
    "a group on one host takes a node that holds all of it": (
        {"waiting": pods(3, affinity=near("podAffinity", HOSTNAME)), "sold": (*SOLD, *BIG)},
        ({"a": 1}, 0),
    ),
    "beside a pod on a CPU node goes to its zone": (
        {"waiting": pods(1, affinity=near("podAffinity", ZONE, "web")), **WEB_IN_B},
        ({"b": 1}, 0),
    ),
    "beside a pod on a CPU node, on its host, is no new node": (
        {"waiting": pods(1, affinity=near("podAffinity", HOSTNAME, "web")), **WEB_IN_B},
        ({}, 1),
    ),
    "beside a pod of another namespace needs it named": (
        {"waiting": pods(1, affinity=near("podAffinity", ZONE, "web", namespaces=["elsewhere"])), **WEB_IN_B},
        ({}, 1),
    ),
    "an empty namespace selector is every namespace": (
        {"waiting": pods(1, affinity=near("podAffinity", ZONE, "web", namespaceSelector={})), **WEB_IN_B},
        ({"b": 1}, 0),
    ),
    "two terms want one pod that meets both": ({"waiting": pods(1, affinity=BOTH), **WEB_IN_B}, ({}, 1)),
    "another version is not beside": (
        {
            "waiting": pods(1, affinity=near("podAffinity", ZONE, matchLabelKeys=["version"]), **NEW),
            "there": [OLD],
            "nodes": [cpu("cpu-b", "b")],
        },
        ({"a": 1}, 0),
    ),
    "beside nobody and not one of them": ({"waiting": pods(1, affinity=near("podAffinity", ZONE, "no"))}, ({}, 1)),
    "a label that no node carries": ({"waiting": pods(1, affinity=near("podAffinity", "rack"))}, ({}, 1)),
    "apart by host are as many big nodes": (
        {"waiting": pods(3, affinity=near("podAntiAffinity", HOSTNAME)), "sold": BIG},
        ({"a": 3}, 0),
    ),
    "apart by zone are no more than zones": (
        {"waiting": pods(3, affinity=near("podAntiAffinity", ZONE))},
        ({"a": 1, "b": 1}, 1),
    ),
    "apart from a pod on a CPU node": (
        {"waiting": pods(1, affinity=near("podAntiAffinity", ZONE, "web")), **WEB_IN_B},
        ({"a": 1}, 0),
    ),
    "a pod on a CPU node keeps others out of its zone": (
        {"waiting": pods(1), "there": [KEEPS], "nodes": [cpu("cpu-a", "a")]},
        ({"b": 1}, 0),
    ),
    "a pod that waits keeps another off its node": (
        {"waiting": [pod("x", affinity=near("podAntiAffinity", HOSTNAME, "b")), *pods(2, app="b")], "sold": BIG},
        ({"a": 2}, 0),
    ),
    "spread by host fills the one host there is": (
        {"waiting": pods(3, **spread(HOSTNAME)), "sold": BIG},
        ({"a": 1}, 0),
    ),
    "spread by zone, where no other zone has a node yet": ({"waiting": pods(3, **spread(ZONE))}, ({"a": 3}, 0)),
    "spread by zone alternates where both have nodes": (
        {"waiting": pods(4, **spread(ZONE)), "nodes": [cpu("cpu-a", "a"), cpu("cpu-b", "b")]},
        ({"a": 2, "b": 2}, 0),
    ),
    "fewer zones than minDomains hold one each": (
        {"waiting": pods(3, **spread(ZONE, minDomains=3))},
        ({"a": 1, "b": 1}, 1),
    ),
    "spread by zone counts a smaller pod that has no rule, which may be bound first": (
        {"waiting": [*pods(1, gpus=2, **spread(ZONE, minDomains=2)), pod("plain")], "sold": BIG},
        ({"a": 1, "b": 1}, 0),
    ),
    "a zone of CPU nodes that is not sold counts": (
        {"waiting": pods(3, **spread(ZONE)), "nodes": [cpu("cpu-c", "c")]},
        ({"a": 1, "b": 1}, 1),
    ),
    "tainted nodes count": (
        {"waiting": pods(3, **spread(ZONE)), "nodes": [cpu("cpu-c", "c", FULL)]},
        ({"a": 1, "b": 1}, 1),
    ),
    "tainted nodes do not count where taints are honoured": (
        {"waiting": pods(3, **spread(ZONE, nodeTaintsPolicy="Honor")), "nodes": [cpu("cpu-c", "c", FULL)]},
        ({"a": 3}, 0),
    ),
    "nodes of others' homes do not count where taints are honoured": (
        {
            "waiting": pods(2, **spread(ZONE, nodeTaintsPolicy="Honor")),
            "there": [pod("run", node="cpu-a", gpus=0)],
            "nodes": [cpu("cpu-a", "a", KEPT), cpu("cpu-b", "b")],
        },
        ({"a": 1, "b": 1}, 0),
    ),
    "they do where taints are ignored": (
        {
            "waiting": pods(1, **spread(ZONE)),
            "there": [pod("run", node="cpu-a", gpus=0)],
            "nodes": [cpu("cpu-a", "a", KEPT), cpu("cpu-b", "b")],
        },
        ({"b": 1}, 0),
    ),
    "nodes that its selector leaves out do not count": (
        {"waiting": pods(3, nodeSelector={ZONE: "a"}, **spread(ZONE)), "nodes": [cpu("cpu-c", "c")]},
        ({"a": 3}, 0),
    ),
    "they do where affinity is ignored": (
        {
            "waiting": pods(3, nodeSelector={ZONE: "a"}, **spread(ZONE, nodeAffinityPolicy="Ignore")),
            "nodes": [cpu("cpu-c", "c")],
        },
        ({"a": 1}, 2),
    ),
    "pods on CPU nodes count": (
        {
            "waiting": pods(1, **spread(ZONE)),
            "there": [pod("run", node="cpu-a", gpus=0)],
            "nodes": [cpu("cpu-a", "a"), cpu("cpu-b", "b")],
        },
        ({"b": 1}, 0),
    ),
    "pods that are being deleted do not count": (
        {
            "waiting": pods(1, **spread(ZONE)),
            "there": [pod("run", node="cpu-a", gpus=0, meta={"deletionTimestamp": "2026-11-22T00:00:00Z"})],
            "nodes": [cpu("cpu-a", "a"), cpu("cpu-b", "b")],
        },
        ({"a": 1}, 0),
    ),
    "ScheduleAnyway forbids nothing": (
        {"waiting": pods(3, **spread(ZONE, whenUnsatisfiable="ScheduleAnyway")), "nodes": [cpu("cpu-c", "c")]},
        ({"a": 3}, 0),
    ),
    "a host port is one pod a node": ({"waiting": pods(3, **port(80)), "sold": BIG}, ({"a": 3}, 0)),
    "a port on two addresses is two ports": (
        {"waiting": [pod(f"p{n}", **port(80, hostIP=f"10.0.0.{n}")) for n in (1, 2)], "sold": BIG},
        ({"a": 1}, 0),
    ),
    "a port on all addresses is taken on each": (
        {"waiting": [pod("p1", **port(80)), pod("p2", **port(80, hostIP="10.0.0.2"))], "sold": BIG},
        ({"a": 2}, 0),
    ),
    "the host's network takes its containers' ports": (
        {"waiting": pods(2, hostNetwork=True, ports=[{"containerPort": 80}]), "sold": BIG},
        ({"a": 2}, 0),
    ),
}


@pytest.mark.parametrize(("given", "wanted"), ROWS.values(), ids=ROWS.keys())
def test_what_is_bought_for_pods_that_mind_others(given: Object, wanted: tuple[dict[str, int], int]) -> None:
    """No node is bought that the scheduler would not bind to, and none is refused that it would."""
    assert outcome(planned(**given)) == wanted


def test_a_rule_that_no_node_could_meet_is_a_finding_that_names_it() -> None:
    """Before money is spent a person reads which rule it is, and of which pods."""
    plan = planned(pods(1, affinity=near("podAffinity", ZONE, "web")))
    assert [(f.code, "beside pods with app=web" in f.message) for f in plan.findings] == [("neighbours", True)]


def daemons(**spec: Any) -> Object:
    """A DaemonSet whose pods take half a small node's CPU, on any node that it bears."""
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}, "ports": spec.pop("ports", [])}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [container], **spec}}
    return {"kind": "DaemonSet", "metadata": {"name": "d", "namespace": "ml"}, "spec": {"template": template}}


@pytest.mark.parametrize(
    ("spec", "bought"),
    [
        pytest.param({}, {}, id="its pods take what a node to come would have"),
        pytest.param({"nodeSelector": {ZONE: "a"}}, {"b": 1}, id="not where it selects no node"),
        pytest.param({"ports": [{"hostPort": 80}], "nodeSelector": {ZONE: "b"}}, {"a": 1}, id="in its zone alone"),
    ],
)
def test_daemon_sets_take_their_room_first(spec: Object, bought: dict[str, int]) -> None:
    """A pod of 3 of a node's 4 CPUs fits beside no DaemonSet of 2."""
    waiting = pod("p")
    waiting["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "3"}
    assert outcome(planned([waiting], objects=[daemons(**spec)]))[0] == bought


def test_a_port_that_a_daemon_set_has_is_taken_on_every_node() -> None:
    """Nothing is bought for a pod that wants it."""
    exporter = daemons(ports=[{"containerPort": 9400, "hostPort": 9400}])
    plan = planned(pods(1, **port(9400)), objects=[exporter])
    assert (outcome(plan), [f.code for f in plan.findings]) == (({}, 1), ["neighbours"])


BY_DAEMONS: dict[str, tuple[Object, Object, tuple[dict[str, int], int]]] = {
    "apart from them by host nobody ever is": ({"affinity": near("podAntiAffinity", HOSTNAME, "agent")}, {}, ({}, 1)),
    "apart from them by host where they are not": (
        {"affinity": near("podAntiAffinity", HOSTNAME, "agent")},
        {"nodeSelector": {ZONE: "a"}},
        ({"b": 1}, 0),
    ),
    "beside them by host everybody is": ({"affinity": near("podAffinity", HOSTNAME, "agent")}, {}, ({"a": 1}, 0)),
    "beside them by zone": (
        {"affinity": near("podAffinity", ZONE, "agent")},
        {"nodeSelector": {ZONE: "b"}},
        ({"b": 1}, 0),
    ),
    "they keep it away": ({}, {"affinity": near("podAntiAffinity", HOSTNAME)}, ({}, 1)),
    "spread with them by host": (spread(HOSTNAME, "agent"), {}, ({"a": 1}, 0)),
}


@pytest.mark.parametrize(("rules", "spec", "wanted"), BY_DAEMONS.values(), ids=BY_DAEMONS.keys())
def test_pods_of_daemon_sets_are_near(rules: Object, spec: Object, wanted: tuple[dict[str, int], int]) -> None:
    """A node to come has its DaemonSets' pods before any other: rules on pods of its host count them."""
    waiting = pods(1, **rules)
    assert outcome(planned(waiting, objects=[daemons(**spec)])) == wanted


def test_more_of_a_spread_than_the_hosts_that_are_there_allow() -> None:
    """A host whose DaemonSet's pod counts has one more than an empty host: a skew of one is passed."""
    waiting = pods(1, **spread(HOSTNAME, "train"))
    agent = daemons()
    agent["spec"]["template"]["metadata"]["labels"] = {"app": "train"}
    assert outcome(planned(waiting, nodes=[cpu("cpu-a", "a")], objects=[agent])) == ({}, 1)
