"""Claims that their NodePool, their node or their provider leaves alone: their machines bill on."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from karpenter_claims import CLASS, KarpenterWorld, claim_pools, on_claims
from stage import Stage
from test_on_karpenter import BUDGET, DELETE, POST, holds, looks, on_karpenter, tries

from pilotlight.errors import BadRequest
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.labels import POOL
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.policy import PoolPolicy
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR
from pilotlight.world.faults import Faults


def without_node_pool(stage: Stage, server: KarpenterWorld) -> None:
    """A batch pod is bought for, and then somebody deletes the NodePool; claims have no owner, and stay."""
    stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
    server.store.remove("nodepools", "one")


def test_a_node_pool_that_is_deleted_while_its_claim_boots_buys_nothing_twice() -> None:
    """The machine is held for and counts as on its way: its pod runs there, and idle it goes back all the same."""
    with on_karpenter(budgets=(BUDGET,), faults=Faults(boot_s=600)) as (stage, server):
        without_node_pool(stage, server)
        looks(stage, server, 4)
        assert (holds(stage), tries(server)) == (["one"], {"one": 1})
        looks(stage, server, 20)
        assert sum(len(node.gpu_pods) for node in stage.deps.cluster.observe().nodes) == 1
        looks(stage, server, 60)
        assert (holds(stage), server.claims(), tries(server)) == ([], [], {"one": 1})
        assert len(server.lines(DELETE)) == 1


def test_what_is_idle_goes_back_though_its_node_pool_was_opened() -> None:
    """Its owner's tool raises the limit: Karpenter never ends a claim that is no NodePool's, so that we do."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
        server.node_pool("one", limit="8")
        looks(stage, server, 90)
        assert (len(stage.world.finished), holds(stage), server.claims()) == (1, [], [])
        assert tries(server) == {"one": 1}


def test_a_claim_that_boots_for_nobody_goes_back_without_its_node_pool() -> None:
    """Its pod is deleted too: nothing waits for Karpenter's deadline."""
    with on_karpenter(budgets=(BUDGET,), faults=Faults(boot_s=600)) as (stage, server):
        without_node_pool(stage, server)
        stage.world.delete(stage.world.pending["uid-a"])
        looks(stage, server, 4)
        assert (holds(stage), server.claims(), len(server.lines(DELETE))) == ([], [], 1)


def test_a_claim_whose_end_is_stuck_is_held_for_though_its_node_object_is_gone() -> None:
    """Somebody took the node's finalizer, and the cloud refuses to end its machine: it bills, and that is told; its pod
    gets another once it is gone."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        looks(stage, server, 5)
        server.draining = True
        server.give_up(server.claims()[0])
        (node,) = stage.world.nodes.values()
        node.joined = False
        looks(stage, server, 40)
        assert holds(stage) == ["one"]
        (told,) = {alert.why for alert in stage.alerts if alert.kind == "finding-end-stuck"}
        assert "goes on billing" in told
        server.end()
        looks(stage, server, 2)
        assert (holds(stage), tries(server)) == (["one"], {"one": 2})


def test_what_we_gave_back_is_held_for_until_karpenter_has_drained_it() -> None:
    """A pod of no GPU blocks its drain for hours: one release, told as stuck, and no advice to delete the node."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
        server.draining = True
        looks(stage, server, 180)
        assert (holds(stage), len(server.lines(DELETE))) == (["one"], 1)
        assert sum(alert.kind == "capacity-release" for alert in stage.alerts) == 1
        told = {alert.kind for alert in stage.alerts if alert.kind.startswith("finding-")}
        assert told == {"finding-end-stuck"}
        stage.event(stage.submit("b", workload_class="batch", run_s=HOUR))
        looks(stage, server, 5)
        assert (holds(stage), tries(server)) == (["one", "one"], {"one": 2})
        server.end()
        looks(stage, server, 2)
        assert holds(stage) == ["one"]


def test_azures_node_pools_are_not_bought_by() -> None:
    """Its provider would end a machine of ours, with its job, at the first minutes without a heartbeat."""
    with on_claims() as (server, pools):
        azure = CLASS | {"group": "karpenter.azure.com", "kind": "AKSNodeClass"}
        server.node_pool("one", template={"spec": {"nodeClassRef": azure, "requirements": []}})
        with pytest.raises(BadRequest, match="karpenter:one"):
            pools.grow("one", 1)
        assert server.lines(POST) == []


def test_a_purchase_makes_no_more_claims_than_it_holds_dollars_for() -> None:
    """Karpenter gives up the first claim between the look and the second's purchase: one is asked for, not two."""
    pools = {"one": PoolPolicy(instance_type="one", max=4)}
    with on_karpenter(budgets=(BUDGET,), pools=pools, faults=Faults(boot_s=600)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        server.draining = True
        (first,) = server.claims()
        stage.deps = replace(stage.deps, pools=After(stage.deps.pools, lambda: server.give_up(first)))
        stage.event(stage.submit("b", workload_class="batch", run_s=2 * HOUR))
        assert (len(stage.world.nodes), holds(stage), tries(server)) == (2, ["one", "one"], {"one": 2})
        looks(stage, server, 5)
        assert (len(stage.world.nodes), holds(stage)) == (3, ["one", "one", "one"])


class After:
    """Pools to which something happens once, after the look that a purchase is planned by."""

    def __init__(self, inner: Any, happen: Callable[[], object]) -> None:
        self._inner, self._happen = inner, happen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def grow(self, *args: Any, **options: Any) -> Any:
        """It happens, and the cloud is asked."""
        self._happen()
        self._happen = bool
        return self._inner.grow(*args, **options)


@pytest.mark.parametrize("minutes", [-6, 6], ids=["behind", "ahead"])
def test_a_clock_that_is_minutes_off_calls_no_claim_off(minutes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims are dated by their API server: one that is launched after four minutes is waited for, by our own time."""
    off = timedelta(minutes=minutes)
    with on_karpenter(budgets=(BUDGET,), faults=Faults(boot_s=600)) as (stage, server):
        monkeypatch.setattr(server, "stamp", lambda: f"{server.world.clock.now() + off:%Y-%m-%dT%H:%M:%SZ}")
        server.slow = server.idle = True
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
        looks(stage, server, 4)
        server.stuck.clear()
        server.launch()
        looks(stage, server, 14)
        assert (server.lines(DELETE), len(server.kept), len(stage.world.running)) == ([], 1, 1)


def relabelled(server: KarpenterWorld, labels: Mapping[str, str]) -> None:
    """Another hand takes our label off every claim, or writes another in its place."""
    for claim in server.claims():
        meta = {**claim["metadata"], "labels": labels}
        server.store.write(server.store.resource("nodeclaims"), {**claim, "metadata": meta})


@pytest.mark.parametrize("labels", [{}, {POOL: "eight"}, {POOL: "x"}], ids=["off", "another's", "nobody's"])
@pytest.mark.parametrize("after", [1, 10], ids=["while it boots", "once it is a node"])
def test_a_claim_whose_label_is_not_ours_any_more_is_ours_by_its_proof(after: int, labels: Mapping[str, str]) -> None:
    """Its name is the hash of the step that it names: it is counted, bought once, held for, and given back."""
    with on_karpenter(budgets=(BUDGET,), faults=Faults(boot_s=300)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
        looks(stage, server, after)
        relabelled(server, labels)
        looks(stage, server, 15)
        assert (holds(stage), len(server.kept), len(stage.world.running)) == (["one"], 1, 1)
        looks(stage, server, 90)
        assert (len(stage.world.finished), holds(stage), server.claims()) == (1, [], [])
        assert "finding-node-without-instance" not in [alert.kind for alert in stage.alerts]


def test_a_claim_without_label_stays_ours_where_its_pool_has_another_name_by_now() -> None:
    """The policy's pool is renamed over the same NodePool, and somebody took the label off: its size counts it, and no
    other is bought in its place."""
    with on_karpenter(budgets=(BUDGET,), faults=Faults(boot_s=300)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
        relabelled(server, {})
        pools = claim_pools(server, {"uno": PoolPolicy(instance_type="one", cluster_pool="one")})
        assert [(state.name, state.desired) for state in pools.describe()] == [("uno", 1)]


def test_a_pool_that_left_the_policy_with_a_node_lit_is_told_once() -> None:
    """People learn of it, for Karpenter never ends our claim, and we give back no node of a pool that is not named."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
        looks(stage, server, 10)
        policy = stage.deps.policy
        others = {name: pool for name, pool in policy.pools.items() if name != "one"}
        left = msgspec.structs.replace(policy, pools=others)
        stage.deps = replace(stage.deps, policy=left, pools=claim_pools(server, others))
        looks(stage, server, 90)
        (node,) = stage.deps.cluster.observe().nodes
        assert len(server.claims()) == 1
        (told,) = [alert.why for alert in stage.alerts if alert.kind == "finding-pool-left"]
        assert f"1 node that we bought for it is lit: {node.name}." in told


class Relabelled:
    """A cluster whose nodes are another pool's by their labels, or nobody's."""

    def __init__(self, inner: Any, pool: str) -> None:
        self._inner, self._pool = inner, pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def observe(self) -> ClusterView:
        """All of it."""
        view: ClusterView = self._inner.observe()
        return msgspec.structs.replace(
            view, nodes=tuple(msgspec.structs.replace(node, pool=self._pool) for node in view.nodes)
        )


@pytest.mark.parametrize("pool", ["", "eight"], ids=["nobody's", "another's"])
def test_a_node_whose_label_was_gone_as_it_joined_goes_back_as_its_claim_s(pool: str) -> None:
    """Karpenter copies a claim's labels to its node once: what another hand wrote there keeps no idle machine lit."""
    with on_karpenter(budgets=(BUDGET,), faults=Faults(boot_s=300)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
        stage.deps = replace(stage.deps, cluster=Relabelled(stage.deps.cluster, pool))
        looks(stage, server, 20)
        assert (holds(stage), len(stage.world.running)) == (["one"], 1)
        looks(stage, server, 85)
        assert (len(stage.world.finished), holds(stage), server.claims(), len(server.kept)) == (1, [], [], 1)


def test_a_claim_that_only_looks_like_ours_is_left_alone() -> None:
    """It has such a name and another's step, or none: it is no machine of the pool, and is not deleted."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        for n, step in enumerate(["c/1-x/0000/one/1", ""]):
            meta = {"name": f"one-0123456{n}", "annotations": {"pilotlight.dev/step": step}}
            made = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": {}}
            server.store.write(server.store.resource("nodeclaims"), made)
        server.idle = True
        looks(stage, server, 30)
        assert {state.name: state.desired for state in stage.deps.pools.describe()} == {"one": 0, "eight": 0}
        assert (len(server.claims()), server.lines(DELETE)) == (2, [])


def test_a_claim_that_nobody_saw_for_minutes_costs_since_its_launch() -> None:
    """It was bought, and a call of a dead worker made another; no look came meanwhile: both are held for all their
    time, and neither is called off for it."""
    with on_karpenter(budgets=(BUDGET,), faults=Faults(boot_s=900)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
        stage.deps.pools.grow("eight", 1, token="late")
        begun = stage.deps.clock.now()
        server.idle = True
        stage.wait(12 * 60)
        looks(stage, server, 1)
        since = {entry.value.terms.pool: entry.value.since for entry in HOLD.scan(stage.deps.state, "")}
        assert {pool for pool, at in since.items() if at <= begun + timedelta(seconds=2)} == {"one", "eight"}
        assert [pool for state in stage.deps.pools.describe() for pool in state.refused] == []


def test_a_node_that_another_hand_drains_hides_no_machine_that_boots() -> None:
    """Somebody deletes a claim, and its pod may not be evicted: another pod's machine is bought once, both count
    against the cap, and nobody is told to delete the node."""
    pools = {"one": PoolPolicy(instance_type="one", max=5)}
    with on_karpenter(budgets=(BUDGET,), pools=pools, caps=Caps(nodes=2)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=20 * HOUR))
        looks(stage, server, 10)
        server.draining = True
        server.give_up(server.claims()[0])
        stage.world.set_faults(Faults(boot_s=600))
        stage.event(stage.submit("b", workload_class="batch", run_s=2 * HOUR))
        looks(stage, server, 5)
        stage.event(stage.submit("c", workload_class="batch", run_s=2 * HOUR))
        looks(stage, server, 20)
        assert (tries(server), holds(stage), len(stage.world.running)) == ({"one": 2}, ["one", "one"], 2)
        assert [alert.kind for alert in stage.alerts if "node-without-instance" in alert.kind] == []
