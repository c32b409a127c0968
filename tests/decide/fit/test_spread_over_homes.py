"""Topology spread that honours taints, over nodes with homes: counted as for a pod that tolerates its own."""

import json

import msgspec
import pytest
from test_neighbours import BIG, NOW, Object, cpu, outcome, pod, pods, spread

from pilotlight.codec.kubernetes.view import view_of
from pilotlight.decide.demand.classify import classify
from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.labels import POOL, ZONE
from pilotlight.facts.memory import Memory
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.tools.cli.kubectl_lists import read_nodes, read_objects, read_pods

HONOURS = spread(ZONE, nodeTaintsPolicy="Honor")
COUNTS = spread(ZONE)


def lit(name: str, zone: str, home: str) -> Object:
    """A ready node of four GPUs with a home."""
    made = cpu(name, zone, {"key": "pilotlight.dev/home", "value": home, "effect": "NoSchedule"})
    made["metadata"]["labels"] |= {POOL: "x4"}
    made["status"]["allocatable"] |= {"nvidia.com/gpu": "4", "memory": "16Gi", "pods": "30"}
    return made


def planned(waiting: list[Object], there: list[Object], nodes: list[Object]) -> tuple[dict[str, int], int]:
    """Nodes bought by zone, and pods refused, where nodes of the one pool are born closed; zone a alone is sold."""
    sold = BIG[:1]
    pools = {"x4": PoolPolicy(instance_type="x4", max=20, taints=(BIRTH_TAINT,))}
    policy = Policy(version=1, placement="homes", pools=pools, classes={"batch": ClassPolicy(gpu_models="any")})
    texts = [json.dumps({"kind": "List", "items": items}).encode() for items in ([*waiting, *there], nodes, [])]
    read = read_pods(texts[0], "pods"), read_nodes(texts[1], "nodes"), read_objects([(texts[2], "objects")])
    view = msgspec.structs.replace(
        view_of(*read, policy=policy, classify=classify, now=NOW), watched=True, limited=True
    )
    return outcome(plan_cluster(Look(view, (), sold, policy, Memory(), NOW, throughput={})))


OPEN_B = cpu("cpu-b", "b")
RUNS = pod("run", node="n-a")
ROWS = {
    "with an open zone each pod gets a node of its own": ((pods(3, **HONOURS), [], [OPEN_B]), ({"a": 3}, 0)),
    "where taints are ignored one pod of a zone is all": ((pods(3, **COUNTS), [], [OPEN_B]), ({"a": 1}, 2)),
    "without an open zone they share a node": ((pods(3, **HONOURS), [], []), ({"a": 1}, 0)),
    "a home with one of them takes no other beside an empty open zone": (
        (pods(1, **HONOURS), [RUNS], [lit("n-a", "a", "d-0-0"), OPEN_B]),
        ({"a": 1}, 0),
    ),
    "a home with one of them takes another where nothing is open": (
        (pods(1, **HONOURS), [RUNS], [lit("n-a", "a", "d-0-0")]),
        ({}, 0),
    ),
}


@pytest.mark.parametrize(("given", "expected"), ROWS.values(), ids=ROWS.keys())
def test_a_pod_counts_open_nodes_and_its_own_home(
    given: tuple[list[Object], list[Object], list[Object]], expected: tuple[dict[str, int], int]
) -> None:
    """Its domains are those of nodes that it tolerates: what runs in others' homes neither fills nor empties a zone."""
    assert planned(*given) == expected
