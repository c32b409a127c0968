"""The planner beside the world's scheduler, whose rules on pods near by and on volumes are written apart from it."""

from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cloud import CATALOG, pod, world

from pilotlight.decide.fit.fit import Neighbours, of_node, pods_that_fit
from pilotlight.decide.offers.offerings import offerings
from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import Taint
from pilotlight.facts.labels import HOSTNAME, ZONE
from pilotlight.facts.memory import Memory
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Near, NearRule, PodDemand, PodShape, Requirement, Toleration
from pilotlight.world.machines import WorldPool
from pilotlight.world.scheduling.nearby import Nearby
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_jobs import Workload
from pilotlight.world.world_pools import WorldPools

RACK = "example.test/rack"
DISKS = "attachable-volumes-csi-disk"
HELD = Taint(key="held", effect="NoSchedule")
ANYWHERE = Toleration(operator="Exists")


def rule(kind: Any, group: str, topology: str = ZONE, **fields: Any) -> NearRule:
    """A rule on the pods of a group; what it counts names it."""
    keys = (topology,) if kind == "spread" else ()
    named = f"{kind} {group} {topology} {sorted(fields.items(), key=str)}"
    return NearRule(kind=kind, key=named, group=group, topology=topology, **{"keys": keys, **fields})


def zone_in(*values: str) -> tuple[tuple[Requirement, ...], ...]:
    """Terms of nodes in these zones."""
    return ((Requirement(key=ZONE, operator="In", values=values),),)


POOLS = {
    "one-a": PoolPolicy(instance_type="one", zones=("a",)),
    "one-b": PoolPolicy(instance_type="one", zones=("b",), slices={DISKS: 1}),
    "four-a": PoolPolicy(instance_type="four", zones=("a",), labels={RACK: "r1"}),
    "four-b": PoolPolicy(instance_type="four", zones=("b",), slices={DISKS: 2}, labels={RACK: "r2"}, taints=(HELD,)),
}
POLICY = Policy(version=1, pools=POOLS, classes={"batch": ClassPolicy(gpu_models="any")})
SPEED = {"batch": {"T4": 1.0, "V100": 1.0}}


def cluster() -> World:
    """A cluster of four kinds of nodes, none of which is lit."""
    return world(tuple(WorldPool.from_policy(name, pool) for name, pool in POOLS.items()))


def lit(here: World, nodes: Mapping[str, int]) -> None:
    """Light so many nodes of each pool, and wait for them."""
    for pool, count in nodes.items():
        here.launch(pool, count)
    here.advance(here.now_s + 200)


def drawn_rules(draw: Random) -> tuple[NearRule, ...]:
    """Rules of pods of the group "train" on themselves and on those of "web"."""
    found = []
    for kind in draw.sample(("with", "apart", "spread", "spread"), draw.randint(1, 2)):
        group, topology = draw.choice(("train", "train", "web")), draw.choice((ZONE, HOSTNAME, RACK))
        more: dict[str, Any] = {} if kind == "apart" else {"own": group == "train"}
        if kind == "spread":
            more["max_skew"], more["min_domains"] = draw.choice((1, 1, 2)), draw.choice((1, 1, 2, 3))
            more["bears"] = draw.choice((None, (), (ANYWHERE,)))
            more["nodes"] = draw.choice(((), (), zone_in("a")))
        found.append(rule(kind, group, topology, **more))
    return tuple(found)


def disagreement(draw: Random) -> str:
    """Pods bound one after the other on lit nodes: the first node that the two readings do not agree on, or nothing."""
    here = cluster()
    lit(here, {name: draw.randint(0, 2) for name in POOLS})
    near = Near(rules=drawn_rules(draw), groups=("train",))
    nodes = list(here.nodes.values())
    for node in nodes:
        node.home = draw.choice(("", "", node.id))
        node.groups.update({"web": draw.choice((0, 0, 1)), "train": draw.choice((0, 0, 0, 1))})
    asking = pod("p", tolerations=(ANYWHERE,), near=near)
    if not nodes:
        return ""
    here.submit(pod("first", 8, near=near), 1)
    ours = Neighbours(WorldCluster(here).observe().around, [asking.shape])
    seen = {n.name: of_node(n) for n in WorldCluster(here).observe().nodes}
    for _ in range(4):
        for node in nodes:
            theirs = Nearby(near, nodes, (node.home,))
            told, bound = ours.allow(near, seen[node.id]), theirs.admit(node)
            if told != bound:
                return f"{node.id} of {node.pool}: the planner says {told}, the scheduler {bound}, by {near.rules}"
        at = draw.choice(nodes)
        ours.put(near, seen[at.id], 1)
        at.groups["train"] += 1
    return ""


@given(st.randoms(use_true_random=False))
def test_the_planner_and_the_worlds_scheduler_agree_on_who_may_be_near_whom(draw: Random) -> None:
    """Affinity, anti-affinity and spread, on every node, with every pod that is bound: counted twice, one answer."""
    assert disagreement(draw) == ""


def _blind(kind: str) -> Any:
    held = Neighbours._holds
    return lambda self, one, place, *, first: one.kind == kind or held(self, one, place, first=first)


def _skewed(**changed: Any) -> Any:
    held = Neighbours._holds
    return lambda self, one, place, *, first: held(self, msgspec.structs.replace(one, **changed), place, first=first)


PLANTED: dict[str, Any] = {
    "affinity is not looked at": _blind("with"),
    "anti-affinity is not looked at": _blind("apart"),
    "spread is not looked at": _blind("spread"),
    "a pod does not count itself": _skewed(own=False),
    "too few domains are enough": _skewed(min_domains=1),
    "the skew is one more": _skewed(max_skew=2),
}


@pytest.mark.parametrize("wrong", PLANTED.values(), ids=PLANTED.keys())
def test_a_planners_rule_that_is_wrong_is_found(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each planted fault is seen within the examples that the law draws."""
    monkeypatch.setattr(Neighbours, "_holds", wrong)
    assert any(disagreement(Random(seed)) for seed in range(100))


def wanted(draw: Random) -> list[PodDemand]:
    """Pods of one kind: rules, a volume's zone, disks, a host port, taints."""
    near = Near(
        rules=drawn_rules(draw) if draw.random() < 0.7 else (),
        groups=("train",),
        ports=("TCP/80",) if draw.random() < 0.2 else (),
    )
    reach = draw.choice(((), (), zone_in("b"), zone_in("c")))
    traits: dict[str, Any] = {
        "near": near,
        "other": draw.choice(((), (), ((DISKS, 1),), ((DISKS, 2),))),
        "terms": reach,
        "reach": (reach,) if reach else (),
        "tolerations": draw.choice(((), (ANYWHERE,))),
    }
    gpus = draw.choice((1, 1, 1, 2))
    return [pod(f"p{n}", gpus, **traits) for n in range(draw.randint(1, 5))]


def outcome(draw: Random) -> tuple[str, str]:
    """What the plan said and what the world's scheduler did, as (who has a node, nodes without a pod).

    It binds when all that was bought is ready: nodes that come one after the other may be taken otherwise.
    """
    here = cluster()
    lit(here, {name: draw.choice((0, 0, 1)) for name in POOLS})
    web = Near(groups=("web",))
    for n in range(draw.randint(0, 2)):
        here.submit(pod(f"web-{n}", near=web, tolerations=(ANYWHERE,)), 1e9)
    before = set(here.nodes)
    for each in wanted(draw):
        here.submit(each, 1e9)
    sold, _ = offerings(POLICY, CATALOG)
    view, states = WorldCluster(here).observe(), WorldPools(here).describe()
    plan = plan_cluster(Look(view, states, sold, POLICY, Memory(), here.clock.now(), throughput=SPEED, releases=False))
    for buy in plan.buys:
        here.launch(buy.pool, buy.count, buy.zone)
    with pytest.MonkeyPatch.context() as standing_still:
        standing_still.setattr(Workload, "bind", lambda *_: None)
        here.advance(here.now_s + 200)
    here._workload.bind(here.now_s)
    told = {uid for group in plan.pods if group.verdict in ("fits", "bought") for uid in group.uids}
    waits = {one.uid for one in view.pending} & set(here.pending)
    wrong = sorted(told & waits), sorted({one.uid for one in view.pending} - told - waits)
    idle = [node.pool for name, node in here.nodes.items() if name not in before and not node.jobs]
    return f"{wrong}", f"{idle}"


@given(st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_what_is_bought_is_bound(draw: Random) -> None:
    """Every node bought gets a pod, every pod that was told so has one, and whoever was refused finds no place."""
    assert outcome(draw) == ("([], [])", "[]")


@pytest.mark.parametrize("rule_of", ["allow", "room"])
def test_a_purchase_by_a_wrong_rule_is_found(rule_of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that is blind to neighbours, or to volumes, buys what the world's scheduler does not use."""
    if rule_of == "allow":
        monkeypatch.setattr(Neighbours, "allow", lambda *_: True)
    else:
        monkeypatch.setattr("pilotlight.decide.fit.fit.pods_that_fit", _without_disks)
    assert any(outcome(Random(seed)) != ("([], [])", "[]") for seed in range(60))


def _without_disks(shape: PodShape, *rest: Any) -> int:
    return pods_that_fit(msgspec.structs.replace(shape, other=()), *rest)


def test_a_node_attaches_as_many_volumes_as_its_driver_says() -> None:
    """The third disk of a node of two waits until one has gone; a driver that tells no limit has none."""
    here = cluster()
    lit(here, {"four-b": 1})
    disk: dict[str, Any] = {"other": ((DISKS, 1),), "tolerations": (ANYWHERE,)}
    for n in range(3):
        here.submit(pod(f"p{n}", **disk), 100 + n)
    assert set(here.pending) == {"p2"}
    here.advance(here.now_s + 101)
    assert not here.pending
    bare = cluster()
    lit(bare, {"four-a": 1})
    for n in range(3):
        bare.submit(pod(f"p{n}", **disk), 100)
    assert not bare.pending


def test_a_pod_binds_when_its_company_comes_and_when_its_rival_goes() -> None:
    """Affinity waits for a pod of the other group; anti-affinity waits for one to end, on another node than its own."""
    here = cluster()
    lit(here, {"four-a": 2})
    here.submit(pod("beside", near=Near(rules=(rule("with", "web"),), groups=("train",))), 1e9)
    assert set(here.pending) == {"beside"}
    here.submit(pod("web", 4, near=Near(groups=("web",))), 50)
    assert not here.pending
    here.submit(pod("apart", near=Near(rules=(rule("apart", "web"),))), 1e9)
    assert set(here.pending) == {"apart"}
    here.advance(here.now_s + 51)
    assert not here.pending


def test_pods_of_a_node_that_goes_are_no_rivals_of_their_own() -> None:
    """Two that keep apart by zone: each finds room where its own node is gone, and none in the other's zone."""
    here = cluster()
    alone = Near(rules=(rule("apart", "train"),), groups=("train",))
    lit(here, {"one-a": 2, "one-b": 1})
    for n in range(2):
        here.submit(pod(f"p{n}", near=alone), 1e9)
    assert not here.pending
    where = {node.zone: node for node in here.nodes.values() if node.jobs}
    assert sorted(where) == ["a", "b"]
    assert here.fits_elsewhere(where["a"].id)
    assert not here.fits_elsewhere(where["b"].id)
