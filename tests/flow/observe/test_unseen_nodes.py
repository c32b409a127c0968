"""Instances that work though a look does not show their node: nothing that may work is given back as failed."""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from stage import Stage
from test_on_aws import on_aws

from pilotlight.errors import BadRequest
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.nodes.pool_state import Booting, PoolState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.observe.known_instances import kept_in_doubt
from pilotlight.world.faults import Faults
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster

ONE = {"one": PoolPolicy(instance_type="one", max=5)}


class NamedOtherwise(WorldCluster):
    """Nodes are called ``ip-n1`` for the instance ``n1``. ``missing`` are left out, ``nameless`` say no instance."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.missing: set[str] = set()
        self.nameless: set[str] = set()
        self.hidden_looks = 0

    def observe(self) -> ClusterView:
        """As the world shows it, but for names."""
        view = super().observe()
        self.hidden_looks -= 1
        if self.hidden_looks == 0:
            self.missing = set()
        return replace(view, nodes=tuple(self._shown(n) for n in view.nodes if n.name not in self.missing))

    def _shown(self, node: Node) -> Node:
        return replace(node, name=f"ip-{node.name}", instance="" if node.name in self.nameless else node.instance)

    def bound_pods(self, node: str) -> Sequence[BoundPod]:
        """The pods on the node of that name."""
        return super().bound_pods(_instance(node))

    def cordon(self, node: str, by: str = "") -> None:
        """By the node's name."""
        super().cordon(_instance(node), by)

    def uncordon(self, node: str) -> None:
        """By the node's name."""
        super().uncordon(_instance(node))

    def drain(self, node: str) -> None:
        """By the node's name."""
        super().drain(_instance(node))


def _instance(node: str) -> str:
    if not node.startswith("ip-"):
        raise BadRequest(f"no node {node}")
    return node.removeprefix("ip-")


@contextmanager
def named_otherwise(**options: Any) -> Iterator[tuple[Stage, NamedOtherwise]]:
    """A stage on EKS whose nodes are not called as their instances."""
    with on_aws(pools=ONE, **options) as (stage, _):
        cluster = NamedOtherwise(stage.world)
        stage.deps = dataclasses.replace(stage.deps, cluster=cluster)
        yield stage, cluster


def told(stage: Stage) -> list[str]:
    """What people heard of instances without a node."""
    return [alert.why for alert in stage.alerts if alert.kind == "finding-instance-without-node"]


@pytest.mark.parametrize("how", ["missing", "nameless"])
def test_a_working_node_that_looks_do_not_show_stays_and_is_told_of_once(how: str) -> None:
    """Three looks lack it, or its providerID: its pod goes on working, nothing else is bought, one alert says why."""
    with named_otherwise() as (stage, cluster):
        for name in ("a", "b"):
            stage.event(stage.submit(name, run_s=36_000))
        stage.minutes(30)
        setattr(cluster, how, {"n1"})
        stage.minutes(3)
        setattr(cluster, how, set())
        stage.minutes(3)
        assert (len(stage.world.running), stage.world.launches, stage.world.terminations) == (2, 2, 0)
        (why,) = told(stage)
        assert why.startswith("n1 (it was node ip-n1):" if how == "missing" else "n1 (node ip-n1 has no providerID):")


def test_in_a_cluster_whose_nodes_say_no_instance_work_goes_on_past_the_deadline() -> None:
    """No node has a providerID ever: what failed cannot be told from what works, and the job ends by itself."""
    with named_otherwise() as (stage, cluster):
        cluster.nameless = {"n1", "n2"}
        stage.event(stage.submit("a", run_s=2400))
        stage.minutes(50)
        assert (len(stage.world.finished), stage.world.launches, len(told(stage))) == (1, 1, 1)


def test_what_never_was_a_node_is_given_back_beside_nodes_that_work() -> None:
    """One node works; the next instance never comes: past the deadline that one ends, and nothing is in doubt."""
    with named_otherwise() as (stage, _):
        stage.event(stage.submit("a", run_s=36_000))
        stage.minutes(10)
        stage.world.set_faults(Faults(boot_s=7200.0))
        stage.event(stage.submit("b", run_s=600))
        stage.minutes(17)
        assert ("n1" in stage.world.nodes, "n2" in stage.world.nodes, told(stage)) == (True, False, [])


def test_an_instance_whose_node_is_gone_for_good_keeps_no_pod_waiting() -> None:
    """It stays and counts against the pool's max, but it is no room on its way: the next pod gets a node of its own."""
    with named_otherwise() as (stage, cluster):
        stage.event(stage.submit("a", run_s=36_000))
        stage.minutes(30)
        cluster.missing = {"n1"}
        stage.minutes(2)
        stage.event(stage.submit("b", run_s=36_000))
        stage.minutes(10)
        assert (stage.world.launches, len(stage.world.running), stage.world.terminations) == (2, 2, 0)


def test_an_instance_that_became_a_node_since_the_look_stays() -> None:
    """No look ever showed it; just before it is given back its node is there, under another name: it works on."""
    with named_otherwise() as (stage, cluster):
        stage.event(stage.submit("a", run_s=36_000))
        cluster.missing = {"n1"}
        stage.minutes(14)
        stage.wait(120)
        cluster.hidden_looks = 2
        answer = stage.tick()
        assert answer.did == ("release n1: revoked, it is node ip-n1 by now",)
        assert (len(stage.world.running), stage.world.terminations) == (1, 0)


def test_many_in_doubt_are_told_in_one_line() -> None:
    """Three are named and the others counted; what is young or in no doubt is not among them."""
    stage = Stage()
    now = stage.deps.now()
    late = [Booting(instance=f"i-{n}", requested_at=stage.world.moment(-60), doubt="it was node x") for n in range(5)]
    young = Booting(instance="i-young", requested_at=now, doubt="it was node y")
    sure = Booting(instance="i-sure", requested_at=stage.world.moment(-60))
    (found,) = kept_in_doubt([PoolState(name="one", desired=7, booting=(*late, young, sure))], now)
    assert found.message.startswith("i-0 (it was node x), i-1 (it was node x), i-2 (it was node x) and 2 more: ")
