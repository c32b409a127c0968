"""A law: nodes bought for pods of one kind that mind others are all used, by a scheduler that knows labels alone.

The scheduler here is written from the rules of Kubernetes, over objects as kubectl prints them, and shares nothing with
the planner's: no digest, no count that is kept. Where two kinds mind each other the order of binding decides, which no
plan knows; ``bench/scheduler/agreement.py`` tries some of those on a real one.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from test_neighbours import BIG, SOLD, TERMS, cpu, near, planned, pod, port, spread

from pilotlight.facts.labels import HOSTNAME, ZONE

Object = dict[str, Any]


class Host(NamedTuple):
    """A node, and the GPUs it has."""

    labels: dict[str, str]
    gpus: int


Placed = list[tuple[Object, Host]]


def meets(term: Object, one: Object) -> bool:
    """Whether a pod has the labels of a term."""
    wanted = term["labelSelector"]["matchLabels"]
    return bool(wanted.items() <= one["metadata"]["labels"].items())


def terms(one: Object, kind: str) -> Sequence[Object]:
    """A pod's required terms."""
    found: Sequence[Object] = one["spec"].get("affinity", {}).get(kind, {}).get(TERMS, [])
    return found


def together(term: Object, a: Host, b: Host) -> bool:
    """Whether two nodes are in one domain of a term."""
    return a.labels[term["topologyKey"]] == b.labels[term["topologyKey"]]


def may_bind(one: Object, host: Host, hosts: Sequence[Host], placed: Placed) -> bool:
    """Whether the scheduler would bind a pod to a node now."""
    here = [other for other, at in placed if at is host]
    if len(here) >= host.gpus or (one["spec"]["containers"][0]["ports"] and here):
        return False
    for term in terms(one, "podAntiAffinity"):
        if any(meets(term, other) and together(term, at, host) for other, at in placed):
            return False
    for other, at in placed:
        if any(meets(term, one) and together(term, at, host) for term in terms(other, "podAntiAffinity")):
            return False
    beside = terms(one, "podAffinity")
    found = [at for other, at in placed if all(meets(term, other) for term in beside)]
    if found and not all(any(together(term, at, host) for at in found) for term in beside):
        return False
    if not found and not all(meets(term, one) for term in beside):
        return False
    return all(even(one, rule, host, hosts, placed) for rule in one["spec"].get("topologySpreadConstraints", []))


def even(one: Object, rule: Object, host: Host, hosts: Sequence[Host], placed: Placed) -> bool:
    """Whether a topology spread constraint allows one more pod on a node."""
    domains = {at.labels[rule["topologyKey"]]: 0 for at in hosts}
    for other, at in placed:
        domains[at.labels[rule["topologyKey"]]] += meets(rule, other)
    least = min(domains.values()) if len(domains) >= rule.get("minDomains", 1) else 0
    return bool(domains[host.labels[rule["topologyKey"]]] + meets(rule, one) - least <= rule["maxSkew"])


def rules(draw: Random) -> Object:
    """The rules of one kind of pods, app "train"."""
    app, topology = draw.choice(("train", "train", "web")), draw.choice((ZONE, HOSTNAME))
    found: Object = {}
    if draw.random() < 0.5:
        found["affinity"] = near(draw.choice(("podAffinity", "podAntiAffinity")), topology, app)
    if draw.random() < 0.5:
        least = {"minDomains": draw.choice((2, 3))} if draw.random() < 0.3 else {}
        found |= spread(draw.choice((ZONE, HOSTNAME)), app, maxSkew=draw.choice((1, 2)), **least)
    return found | (port(80) if draw.random() < 0.2 else {})


@given(st.randoms(use_true_random=False))
def test_every_node_that_is_bought_gets_a_pod_and_every_pod_that_was_told_so_a_node(draw: Random) -> None:
    """Whatever the rules, the pods on CPU nodes and the sizes sold."""
    given_rules = rules(draw)
    waiting = [pod(f"p{n}", **given_rules) for n in range(draw.randint(1, 5))]
    zones = draw.sample("abc", draw.randint(0, 2))
    away = {"affinity": near("podAntiAffinity", ZONE)} if draw.random() < 0.3 else {}
    there = [pod(f"on-{z}", draw.choice(("web", "train")), node=f"cpu-{z}", gpus=0, **away) for z in zones]
    nodes = [cpu(f"cpu-{z}", z) for z in zones]
    sold = draw.choice((SOLD, BIG, (*SOLD, *BIG)))
    plan = planned(waiting, there, nodes, sold)
    hosts = [Host(node["metadata"]["labels"], 0) for node in nodes]
    placed: Placed = list(zip(there, hosts, strict=True))
    offered = {one.name: one for one in sold}
    for buy in plan.buys:
        for n in range(buy.count):
            one = offered[buy.offering]
            hosts.append(Host({**one.labels, HOSTNAME: f"{buy.offering}-{n}"}, one.gpus))
    left = list(waiting)
    while bound := next(((p, h) for p in left for h in hosts if may_bind(p, h, hosts, placed)), None):
        placed.append(bound)
        left.remove(bound[0])
    told = sum(len(group.uids) for group in plan.pods if group.verdict == "bought")
    used = [any(at is host for _, at in placed) for host in hosts[len(nodes) :]]
    assert (all(used), len(waiting) - len(left)) == (True, told)
