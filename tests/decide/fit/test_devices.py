"""A device is what its resource name says: no vendor's, no part and no further resource stands in for another."""

from decimal import Decimal
from typing import Any

import pytest
from small_fleet import NOW, bought, node, plan, pod, pods, policy, verdict

from pilotlight.decide.offers.offerings import offerings
from pilotlight.facts.capacity import Offering, Resources
from pilotlight.facts.decisions import Plan
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.policy import Policy, PoolPolicy, SparePolicy
from pilotlight.facts.workload import GpuRequest

NVIDIA, AMD, SHARED = "nvidia.com/gpu", "amd.com/gpu", "nvidia.com/gpu.shared"
MIG, BIG_MIG = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"


def kind(model: str, usd: int, **fields: Any) -> InstanceType:
    """A type of eight GPUs."""
    price = {"on-demand": Price(usd_per_hour=Decimal(usd), source="test", date="2026-11-20")}
    return InstanceType(cloud="test", gpu_model=model, gpus=8, prices=price, **fields)  # type: ignore[arg-type]


TYPES = {"mi300x": kind("MI300X", 10), "h100": kind("H100", 20), "odd": kind("X1", 1, resource=AMD)}
CATALOG = Catalog(name="small", as_of=NOW, instance_types=TYPES)


def rules(**slices: dict[str, int]) -> Policy:
    """A policy with one pool, as ``slices`` names it; "mig_h100" is a pool of h100."""
    pools = {name: PoolPolicy(instance_type=name.rpartition("_")[2], slices=parts) for name, parts in slices.items()}
    return replace_pools(policy(), pools)


def replace_pools(base: Policy, pools: dict[str, PoolPolicy]) -> Policy:
    """The policy with other pools."""
    return Policy(version=1, pools=pools, classes=base.classes)


def offered(made: Policy) -> tuple[Offering, ...]:
    """What its pools offer."""
    return offerings(made, CATALOG)[0]


def asking(resource: str, pools: dict[str, dict[str, int]], count: int = 1, **traits: Any) -> Plan:
    """The plan for one pod that asks for a resource, over these pools and their slices."""
    made = rules(**pools)
    gpu = GpuRequest(count=count, resource=resource)
    return plan([pod("p", gpu=gpu, gpu_models=("any",), **traits)], offerings=offered(made), rules=made)


WHOLE: dict[str, int] = {}
BOUGHT: dict[str, tuple[str, dict[str, dict[str, int]], dict[str, int]]] = {
    "AMD's GPU where NVIDIA's is dearer": (AMD, {"mi300x": WHOLE, "h100": WHOLE}, {"mi300x": 1}),
    "NVIDIA's GPU where AMD's is cheaper": (NVIDIA, {"mi300x": WHOLE, "h100": WHOLE}, {"h100": 1}),
    "a type that names its resource": (AMD, {"odd": WHOLE, "h100": WHOLE}, {"odd": 1}),
    "a MIG profile where a pool has it": (MIG, {"h100": WHOLE, "mig_h100": {MIG: 56}}, {"mig_h100": 1}),
    "the profile that is asked for": (BIG_MIG, {"mig_h100": {MIG: 56}, "big_h100": {BIG_MIG: 16}}, {"big_h100": 1}),
    "a shared replica": (SHARED, {"h100": WHOLE, "shared_h100": {SHARED: 80}}, {"shared_h100": 1}),
    "a whole GPU where parts are dearer or not": (NVIDIA, {"mig_h100": {MIG: 56}, "h100": WHOLE}, {"h100": 1}),
    "a whole GPU beside slices that are named": (NVIDIA, {"half_h100": {NVIDIA: 4, MIG: 28}}, {"half_h100": 1}),
}


@pytest.mark.parametrize(("resource", "pools", "nodes"), BOUGHT.values(), ids=BOUGHT.keys())
def test_a_pod_gets_the_device_that_it_names(
    resource: str, pools: dict[str, dict[str, int]], nodes: dict[str, int]
) -> None:
    """What is bought offers the very resource that the pod asks for, however cheap another is."""
    assert bought(asking(resource, pools)) == nodes


NOT_BOUGHT: dict[str, tuple[str, dict[str, dict[str, int]], int]] = {
    "NVIDIA's GPU among AMD's": (NVIDIA, {"mi300x": WHOLE}, 1),
    "AMD's GPU among NVIDIA's": (AMD, {"h100": WHOLE}, 1),
    "a whole GPU on nodes of MIG slices": (NVIDIA, {"mig_h100": {MIG: 56}}, 1),
    "a whole GPU on nodes of shared replicas": (NVIDIA, {"shared_h100": {SHARED: 80}}, 1),
    "a shared replica of whole GPUs": (SHARED, {"h100": WHOLE}, 1),
    "another profile": (BIG_MIG, {"mig_h100": {MIG: 56}}, 1),
}


@pytest.mark.parametrize(("resource", "pools", "count"), NOT_BOUGHT.values(), ids=NOT_BOUGHT.keys())
def test_what_no_pool_offers_is_found_before_money_is_spent(
    resource: str, pools: dict[str, dict[str, int]], count: int
) -> None:
    """A device that no pool's nodes have is a finding that names it; nothing is bought."""
    made = asking(resource, pools, count)
    assert not made.buys
    ((found,), (group,)) = made.findings, made.pods
    assert (found.code, group.code) == ("device", "device")
    assert resource in found.message


def test_more_whole_gpus_than_are_left_whole_do_not_fit() -> None:
    """Of eight GPUs of which four are cut into slices, four can be had whole."""
    assert bought(asking(NVIDIA, {"half_h100": {NVIDIA: 4, MIG: 28}}, 4)) == {"half_h100": 1}
    assert not asking(NVIDIA, {"half_h100": {NVIDIA: 4, MIG: 28}}, 5).buys


@pytest.mark.parametrize("name", ["hugepages-2Mi", "rdma/hca", "vpc.amazonaws.com/efa"])
def test_a_resource_that_no_offering_lists_is_named_before_money_is_spent(name: str) -> None:
    """Hugepages and extended resources are a finding unless a pool lists them."""
    made = asking(NVIDIA, {"h100": WHOLE}, other=((name, 4),))
    assert not made.buys
    assert [f.code for f in made.findings] == ["resource"]
    assert name in made.findings[0].message
    assert bought(asking(NVIDIA, {"h100": WHOLE, "with_h100": {name: 4}}, other=((name, 4),))) == {"with_h100": 1}
    assert not asking(NVIDIA, {"with_h100": {name: 3}}, other=((name, 4),)).buys


def test_further_resources_are_used_up() -> None:
    """Two pods that each take three of a node's four adapters get a node each."""
    made = rules(h100={"rdma/hca": 4})
    wanted = pods(2, other=(("rdma/hca", 3),), gpu_models=("any",))
    assert bought(plan(wanted, offerings=offered(made), rules=made)) == {"h100": 2}


LIT: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a node of NVIDIA's GPUs holds a pod that asks for them": ({}, {}, "fits"),
    "a node of AMD's GPUs does not": ({"resource": AMD}, {}, "bought"),
    "a node of slices alone does not": ({"devices": (), "slices": {MIG: 56}}, {}, "bought"),
    "a node with the hugepages holds one": (
        {"free": Resources(other=(("hugepages-1Gi", 2),))},
        {"other": (("hugepages-1Gi", 2),)},
        "fits",
    ),
    "a node with too few does not": (
        {"free": Resources(other=(("hugepages-1Gi", 1),))},
        {"other": (("hugepages-1Gi", 2),)},
        "bought",
    ),
}


@pytest.mark.parametrize(("fields", "traits", "expected"), LIT.values(), ids=LIT.keys())
def test_what_a_lit_node_has(fields: dict[str, Any], traits: dict[str, Any], expected: str) -> None:
    """Ready nodes are judged by the resource names of their own allocatable."""
    made = rules(h100={"hugepages-1Gi": 2})
    (sold,) = offered(made)
    wanted = pod("p", gpu_models=("any",), **traits)
    assert verdict(plan([wanted], [node("n", sold, **fields)], offerings=[sold], rules=made), wanted)[0] == expected


def test_a_daemonset_takes_its_gpu_off_every_node() -> None:
    """With ``daemonsets: {nvidia.com/gpu: 1}`` seven of eight GPUs can be had, and a pod for eight is a finding."""
    pools = {"h100": PoolPolicy(instance_type="h100", daemonsets={NVIDIA: "1"})}
    made = replace_pools(policy(), pools)
    for count, nodes in ((7, {"h100": 1}), (8, {})):
        wanted = pod("p", gpu=GpuRequest(count=count), gpu_models=("any",))
        assert bought(plan([wanted], offerings=offered(made), rules=made)) == nodes


def test_a_pool_of_slices_keeps_its_warm_node_and_buys_no_second() -> None:
    """An idle node of MIG slices counts as warm: it is not bought for again at every look."""
    base = rules(mig_h100={MIG: 56})
    made = replace_pools(
        base, {"mig_h100": PoolPolicy(instance_type="h100", slices={MIG: 56}, spares=SparePolicy(warm=1))}
    )
    (sold,) = offered(made)
    assert bought(plan(offerings=[sold], rules=made)) == {"mig_h100": 1}
    lit = node("n", sold, devices=(), slices={MIG: 56})
    assert not plan((), [lit], offerings=[sold], rules=made).buys
