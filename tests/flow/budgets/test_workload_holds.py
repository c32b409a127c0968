"""Queued work whose nodes another makes: let in on dollars alone, which are held until it ends.

The adapter is the real one over a stand-in API server; this script plays Kueue and the other autoscaler.
"""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from api_server import ApiServer, api_server
from stage import Stage

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.facts.labels import INSTANCE_TYPE, POOL
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.answer import Answer
from pilotlight.flow.budgets import budget_holds
from pilotlight.flow.reconcile import reconcile
from pilotlight.flow.records import brake_records

HOUR = 3600.0
CLASSES = {"batch": ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=4 * HOUR)}


class Site:
    """A pool of one-GPU nodes at $1 an hour that we only advise on, and a budget of so much a day."""

    def __init__(self, server: ApiServer, usd: str = "10", mode: Any = "advise", **pools: PoolPolicy) -> None:
        self.server = server
        for name in ("kueue", "kueue-flavors"):
            server.store.serve(name)
        pools = pools or {"one": PoolPolicy(instance_type="one", max=9, mode=mode)}
        budgets = (Budget(name="b", usd=Decimal(usd), period="day"),) if usd else ()
        self.stage = Stage(pools=pools, budgets=budgets, classes=CLASSES)
        api = Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda seconds: None)
        self.deps = replace(
            self.stage.deps, cluster=KubernetesCluster(api, self.stage.deps.policy, self.stage.deps.clock)
        )

    def queue(self, name: str, pods: int = 1, turn: str = "2026-11-20T11:59:00Z", longest_s: int = 0) -> None:
        """Kueue gives a Workload its quota and asks for our check."""
        limits = {"limits": {"nvidia.com/gpu": "1"}}
        template = {"spec": {"containers": [{"name": "c", "resources": limits}]}}
        spec: dict[str, Any] = {"podSets": [{"name": "main", "count": pods, "template": template}], "queueName": "q"}
        spec |= {"maximumExecutionTimeSeconds": longest_s} if longest_s else {}
        owner = {"kind": "Job", "name": name, "uid": f"job-{name}", "apiVersion": "batch/v1", "controller": True}
        meta = {"name": name, "namespace": "ml", "uid": name, "creationTimestamp": turn, "ownerReferences": [owner]}
        status = {"conditions": [_is("QuotaReserved", turn)], "admissionChecks": [_check("Pending")]}
        workload = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}
        self.server.add({**workload, "metadata": meta, "spec": spec, "status": status})

    def play(self, name: str, **status: Any) -> None:
        """Kueue writes a Workload's status."""
        store = self.server.store
        store.patch(store.resource("workloads"), ("ml", name), {"status": status})

    def node(self, name: str) -> None:
        """The other autoscaler makes a node."""
        room = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1"}
        at = f"{self.deps.clock.now():%Y-%m-%dT%H:%M:%SZ}"
        status = {
            "allocatable": room,
            "capacity": room,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}],
        }
        meta = {"name": name, "creationTimestamp": at, "labels": {POOL: "one", INSTANCE_TYPE: "one"}}
        self.server.add(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": meta,
                "spec": {"providerID": f"x://{name}"},
                "status": status,
            }
        )

    def tick(self, after_s: float = 0) -> Answer:
        """A look, so much later."""
        self.stage.wait(after_s)
        return reconcile(self.deps, Tick(cluster="c"))

    def check(self, name: str) -> dict[str, Any]:
        """Our check as it stands."""
        [found] = self.server.store.get("workloads", name, "ml")["status"]["admissionChecks"]
        return dict(found)

    @property
    def held(self) -> Decimal:
        """Settled and held in the budget, to the cent."""
        total = sum(
            (each.total for each in budget_holds.balances(self.deps, self.deps.state.now()).balances), Decimal(0)
        )
        return total.quantize(Decimal("0.01"))


def _is(kind: str, at: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": at}


def _check(state: str) -> dict[str, str]:
    return {"name": "pilotlight", "state": state, "message": "", "lastTransitionTime": "2026-11-20T11:59:00Z"}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An empty cluster."""
    with api_server() as made:
        yield made


def test_work_is_let_in_once_its_dollars_are_held(server: ApiServer) -> None:
    """Ready without a node: nothing is bought, and all that two nodes may cost is held until then."""
    site = Site(server)
    site.queue("train", pods=2)
    site.tick()
    told = site.check("train")
    assert (told["state"], "held $8." in told["message"]) == ("Ready", True)
    assert "the mode of one is advise" in told["message"]
    assert Decimal(8) < site.held < Decimal(9)
    assert [pool.desired for pool in site.deps.pools.describe()] == [0]


def test_without_money_it_comes_again(server: ApiServer) -> None:
    """The second Workload finds the dollars gone: Retry with figures and no time, and nothing is held for it."""
    site = Site(server, usd="6")
    site.queue("train")
    site.tick()
    held = site.held
    site.queue("more")
    site.tick(60)
    told = site.check("more")
    assert (told["state"], "requeueAfterSeconds" in told, "of $6.00 a day" in told["message"]) == ("Retry", False, True)
    assert site.held == held


def test_no_budget_limits_nothing(server: ApiServer) -> None:
    """Without budgets the gate is open."""
    site = Site(server, usd="")
    site.queue("train")
    site.tick()
    assert (site.check("train")["state"], "no budget limits it" in site.check("train")["message"]) == ("Ready", True)


@pytest.mark.parametrize(
    "ends",
    [
        {"conditions": [_is("QuotaReserved", "2026-11-20T11:59:00Z"), _is("Finished", "2026-11-20T13:00:00Z")]},
        {"conditions": [_is("QuotaReserved", "2026-11-20T11:59:00Z"), _is("Evicted", "2026-11-20T13:00:00Z")]},
        {"conditions": []},
    ],
    ids=["it has finished", "it was evicted", "its quota is gone"],
)
def test_a_hold_ends_with_its_workload(server: ApiServer, ends: dict[str, Any]) -> None:
    """Its dollars stay held while it runs; where no node was ever seen an hour is charged by the clock."""
    site = Site(server)
    site.queue("train")
    site.tick()
    site.tick(HOUR)
    assert site.held > Decimal(4)
    site.play("train", **ends)
    site.tick()
    assert site.held == Decimal("1.00")


def test_a_hold_ends_after_the_longest_run(server: ApiServer) -> None:
    """maximumExecutionTimeSeconds of half an hour, and a boot of three minutes: more is not held, nor charged."""
    site = Site(server)
    site.queue("train", longest_s=1800)
    site.tick()
    assert Decimal("0.5") < site.held < Decimal("0.8")
    site.tick(2 * HOUR)
    assert site.held == Decimal("0.55")


def test_a_node_that_is_seen_takes_the_hold_over(server: ApiServer) -> None:
    """The other autoscaler's node is held for once, not twice, and it is settled as that node's when it goes."""
    site = Site(server)
    site.queue("train")
    site.tick()
    held = site.held
    site.node("n1")
    site.tick(60)
    assert site.held - held < Decimal("0.2")
    conditions = [_is("QuotaReserved", "2026-11-20T11:59:00Z"), _is("Finished", "2026-11-20T13:00:00Z")]
    site.play("train", conditions=conditions)
    site.tick(60)
    assert site.held >= held
    server.store.remove("nodes", "n1")
    site.tick(60)
    assert site.held == Decimal("0.05")


def test_work_that_used_a_node_which_was_there_is_charged_there(server: ApiServer) -> None:
    """A Workload whose own node never came, while nodes of its pool are seen, leaves nothing: those carry the cost."""
    site = Site(server, usd="20")
    site.node("n1")
    site.tick()
    alone = site.held
    site.queue("train", pods=2)
    site.tick(60)
    assert site.held > alone + Decimal(4)
    site.play("train", conditions=[])
    site.tick(60)
    assert site.held < alone + Decimal("0.5")


def test_an_answer_that_was_not_written_comes_with_the_next_look(server: ApiServer) -> None:
    """The dollars are held once: the look after a lost answer says Ready, though the budget has no room for twice."""
    site = Site(server, usd="6")
    site.queue("train")
    site.tick()
    held = site.held
    site.play("train", admissionChecks=[_check("Pending")])
    site.tick(60)
    assert (site.check("train")["state"], site.held) == ("Ready", held)


def test_its_pods_are_no_demand_then(server: ApiServer) -> None:
    """While the other autoscaler makes the node its pods are told nothing of a budget that they hold themselves."""
    site = Site(server, usd="6")
    site.queue("train")
    site.tick()
    owner = [{"kind": "Job", "name": "train", "uid": "job-train", "apiVersion": "batch/v1", "controller": True}]
    meta = {"name": "train-0", "namespace": "ml", "uid": "p", "ownerReferences": owner}
    limits = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
    refused = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0 nodes"}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "creationTimestamp": "2026-11-20T12:00:00Z"}}
    server.add(
        {
            **pod,
            "spec": {"containers": [{"name": "c", "image": "i", "resources": limits}]},
            "status": {"phase": "Pending", "conditions": refused},
        }
    )
    assert site.tick(60).why == "nothing to do"
    site.play("train", conditions=[])
    assert "train-0" in site.tick(60).why or site.tick(60).outcome != "nothing"


def test_a_person_who_paused_the_pool_is_waited_for(server: ApiServer) -> None:
    """Neither Ready nor Retry while the pool is paused."""
    site = Site(server)
    brake_records.pause(site.deps.state, "c", "one", "maintenance", site.deps.state.now())
    site.queue("train")
    site.tick()
    assert (site.check("train")["state"], site.held) == ("Pending", Decimal(0))


def test_where_another_autoscaler_is_at_work_dollars_are_enough(server: ApiServer) -> None:
    """In a pool of mode act that Karpenter makes nodes for, nothing is bought: the work is let in on its dollars."""
    site = Site(server, usd="40", mode="act")
    site.node("n1")
    labels = {**server.store.get("nodes", "n1")["metadata"]["labels"], "karpenter.sh/nodepool": "gpu"}
    server.store.patch(server.store.resource("nodes"), ("", "n1"), {"metadata": {"labels": labels}})
    site.queue("train", pods=2)
    site.tick()
    told = site.check("train")
    assert (told["state"], "Karpenter's NodePool gpu" in told["message"]) == ("Ready", True)
    assert [pool.desired for pool in site.deps.pools.describe()] == [0]


EIGHT = PoolPolicy(instance_type="eight", max=9, mode="advise")


def test_the_dearest_that_another_may_give_is_held_for(server: ApiServer) -> None:
    """Nodes of $1 and of $32 would do: another chooses, so $32 an hour is held, and nothing is pinned."""
    one = PoolPolicy(instance_type="one", max=9, mode="advise")
    site = Site(server, usd="500", one=one, eight=EIGHT)
    site.queue("train")
    site.tick()
    assert (site.check("train")["state"], "podSetUpdates" in site.check("train")) == ("Ready", False)
    assert Decimal(4 * 32) < site.held < Decimal(5 * 32)


def test_a_type_that_the_policy_names_is_held_for_and_pinned(server: ApiServer) -> None:
    """The pool's labels say of which type its nodes are: the pods go there, and the dollars of that are enough."""
    one = PoolPolicy(instance_type="one", max=9, mode="advise", labels={INSTANCE_TYPE: "one"})
    site = Site(server, usd="500", one=one, eight=EIGHT)
    site.queue("train")
    site.tick()
    pins = [{"name": "main", "nodeSelector": {INSTANCE_TYPE: "one"}}]
    assert (site.check("train")["podSetUpdates"], Decimal(4) < site.held < Decimal(5)) == (pins, True)
    site.play("train", admissionChecks=[_check("Pending")])
    site.tick(60)
    assert site.check("train")["podSetUpdates"] == pins
