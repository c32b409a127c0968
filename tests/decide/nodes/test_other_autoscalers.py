"""Who else scales a pool: what counts as evidence of it, and what does not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight.decide.nodes.other_autoscalers import other_autoscalers
from pilotlight.facts.capacity import ClusterView, Node, Scaler
from pilotlight.facts.labels import AUTO_MODE, KARPENTER_NODE_POOL
from pilotlight.facts.nodes.pool_state import PoolRules, PoolState
from pilotlight.facts.policy import Policy, PoolPolicy

NOW = datetime(2026, 11, 22, 8, tzinfo=UTC)
GROUP = "eks-gpu-a-0a1b2c3d-1111-2222-3333-444455556666"
POLICY = Policy(
    version=1,
    pools={
        "gpu": PoolPolicy(instance_type="g5.xlarge", cluster_pool="gpu-a"),
        "other": PoolPolicy(instance_type="g5.xlarge"),
    },
)


def found(*scalers: Scaler, labels: dict[str, str] | None = None, claimed: bool = False) -> dict[str, str]:
    """The pools with another owner, of a cluster with one node in the pool "gpu"."""
    node = Node(
        name="n", pool="gpu", instance_type="g5.xlarge", capacity_type="on-demand", created_at=NOW, ready=True,
        labels=labels or {},
    )  # fmt: skip
    rules = PoolRules(group=GROUP, claimed=claimed)
    pools = (PoolState(name="gpu", desired=1, rules=rules), PoolState(name="other", desired=0))
    return dict(other_autoscalers(POLICY, ClusterView(nodes=(node,), scalers=scalers), pools, NOW))


def alive(ago_s: float = 10, groups: tuple[str, ...] = ()) -> Scaler:
    """cluster-autoscaler, seen so long ago."""
    return Scaler(name="cluster-autoscaler", seen_at=NOW - timedelta(seconds=ago_s), groups=groups)


def test_a_pool_that_nobody_else_scales_is_ours() -> None:
    """No evidence, no rival."""
    assert found() == {}


@pytest.mark.parametrize("group", [GROUP, "gpu-a"], ids=["as AWS calls it", "as the policy calls it"])
def test_an_autoscaler_that_lists_the_group_owns_it(group: str) -> None:
    """Its fresh status is the evidence; the line says when, what and how to hand it over."""
    (why,) = found(alive(groups=("eks-cpu-1", group))).values()
    assert why == (
        f"cluster-autoscaler was alive at 07:59 UTC and scales its group {group}: "
        'see "Hand a pool over" of pilotlight show docs/guides/eks.md'
    )


def test_a_pool_that_was_handed_back_is_not_ours() -> None:
    """By our own tag alone, and with the command that takes it again."""
    pools = [PoolState(name="gpu", desired=1, rules=PoolRules(group=GROUP, handed_back="2026-11-20T12:00:00Z"))]
    assert other_autoscalers(POLICY, ClusterView(), pools, NOW) == {
        "gpu": "it was handed back at 2026-11-20T12:00:00Z: pilotlight takeover --pool gpu takes it again"
    }


def test_a_pool_that_its_cloud_works_on_is_left_alone() -> None:
    """For as long as it says so, in its own words."""
    why = "GKE works on node pool gpu (RECONCILING): nothing is asked of it until that is over"
    pools = [PoolState(name="gpu", desired=1, rules=PoolRules(group=GROUP, closed=why))]
    assert other_autoscalers(POLICY, ClusterView(), pools, NOW) == {"gpu": why}


def test_a_pool_whose_zones_are_not_named_is_left_alone() -> None:
    """Where each purchase must name its zone: the policy says which; one zone needs no name."""
    rules = PoolRules(group=GROUP, zones=("a", "b"), names_zone=True)
    pools = [PoolState(name="gpu", desired=1, rules=rules)]
    why = "its node pool has zones a, b: name those to buy in, in pools.gpu.zones"
    assert other_autoscalers(POLICY, ClusterView(), pools, NOW) == {"gpu": why}
    named = replace(POLICY, pools={"gpu": replace(POLICY.pools["gpu"], zones=("b",))})
    assert other_autoscalers(named, ClusterView(), pools, NOW) == {}


def test_old_evidence_and_other_groups_prove_nothing() -> None:
    """One that has gone, and one that scales only CPU groups."""
    assert found(alive(301, (GROUP,))) == {}
    assert found(alive(299, (GROUP,))) != {}
    assert found(alive(groups=("eks-cpu-1",))) == {}


def test_a_lease_counts_with_the_groups_tag_and_a_tag_alone_does_not() -> None:
    """A Lease names no groups: the tag by which they are found says which. EKS sets it on every node group."""
    assert found(claimed=True) == {}
    assert found(alive()) == {}
    assert list(found(alive(), claimed=True)) == ["gpu"]


def test_a_status_says_more_than_a_lease() -> None:
    """Where its groups are told, a tag adds none."""
    assert found(alive(groups=("eks-cpu-1",)), alive(), claimed=True) == {}


NODES: dict[str, tuple[dict[str, str], str]] = {
    "Karpenter": ({KARPENTER_NODE_POOL: "default"}, "Karpenter's NodePool default made its node n"),
    "EKS Auto Mode": (dict([AUTO_MODE]), "EKS Auto Mode made its node n"),
}


@pytest.mark.parametrize(("labels", "why"), NODES.values(), ids=NODES)
def test_nodes_that_another_made_are_evidence(labels: dict[str, Any], why: str) -> None:
    """A pool with such a node in it is not only ours."""
    assert found(labels=labels)["gpu"].startswith(why)
