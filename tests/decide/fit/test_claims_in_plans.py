"""Claims for devices in a plan: which pool is chosen at zero, what is told instead, and what is learnt of nodes."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace
from small_fleet import A100, NOW, SAME_SPEED, T4, V100X4, node, pod, policy

from pilotlight.decide.offers.joined_nodes import as_learnt, with_learnt
from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import ClusterView, Node, Offering, Resources, Taint
from pilotlight.facts.decisions import Plan
from pilotlight.facts.fit.claimed_devices import Claimed, DeviceAsk, DeviceKind
from pilotlight.facts.labels import GPU_PRODUCT
from pilotlight.facts.memory import Memory
from pilotlight.facts.workload import GpuRequest, PodDemand, Requirement

DRIVER = "gpu.nvidia.com"
OF = f"device.attributes['{DRIVER}']"
GPU = f"device.driver == '{DRIVER}' && {OF}.type == 'gpu'"
MIG = f"{OF}.type == 'mig' && {OF}.profile == '1g.5gb'"
BIG = replace(A100, labels={**A100.labels, GPU_PRODUCT: "NVIDIA-A100-SXM4-40GB"})
CUT = replace(BIG, pool="cut", whole_gpus=0, slices={"nvidia.com/mig-1g.5gb": 56}, usd_per_hour=Decimal(30))
FLEET = (T4, V100X4, BIG)
NONE = GpuRequest(count=0, resource="")


def ask(*selectors: str, count: int = 1, **rest: Any) -> DeviceAsk:
    """Devices of class gpu."""
    return DeviceAsk(named="gpu (r)", selectors=(GPU, *selectors), count=count, **rest)


def claiming(
    *asks: DeviceAsk | tuple[DeviceAsk, ...], name: str = "p", gpu: GpuRequest = NONE, **rest: Any
) -> PodDemand:
    """A pod whose claims ask for devices."""
    alike, sharers = rest.pop("alike", ()), rest.pop("sharers", ())
    each = tuple(a if isinstance(a, tuple) else (a,) for a in asks)
    return pod(name, **{"gpu": gpu, "claimed": Claimed(asks=each, alike=alike, sharers=sharers), **rest})


def plan(
    *pending: PodDemand,
    offerings: tuple[Offering, ...] = FLEET,
    nodes: tuple[Node, ...] = (),
    memory: Memory | None = None,
    ignored: tuple[str, ...] = (),
) -> Plan:
    """The plan for pods that wait."""
    view = ClusterView(pending=pending, nodes=nodes)
    rules = replace(policy(offerings), ignored_drivers=ignored)
    return plan_cluster(Look(view, (), offerings, rules, memory or Memory(), NOW, throughput=SAME_SPEED))


def bought(found: Plan) -> dict[str, int]:
    """Nodes by pool."""
    return {buy.pool: buy.count for buy in found.buys}


def published(count: int, **attributes: str) -> DeviceKind:
    """Whole GPUs that a driver published and no device plugin offers."""
    said: dict[str, str | int | bool] = {
        f"{DRIVER}/{name}": value for name, value in {"type": "gpu", **attributes}.items()
    }
    return DeviceKind(driver=DRIVER, resource="claim:nvidia.com/gpu", count=count, attributes=said)


CHOSEN: dict[str, tuple[PodDemand, dict[str, int]]] = {
    "one GPU of any kind is the cheapest": (claiming(ask()), {"t4": 1}),
    "by product": (claiming(ask(f"{OF}.productName.contains('A100')")), {"a100": 1}),
    "by memory": (claiming(ask(f"device.capacity['{DRIVER}'].memory.isGreaterThan(quantity('30Gi'))")), {"a100": 1}),
    "by architecture": (claiming(ask(f"{OF}.architecture == 'Volta'")), {"v100x4": 1}),
    "by compute capability": (
        claiming(ask(f"{OF}.cudaComputeCapability.compareTo(semver('7.0.0')) == 0")),
        {"v100x4": 1},
    ),
    "more on one node than the cheapest has": (claiming(ask(count=3)), {"v100x4": 1}),
    "two requests of one claim": (claiming(ask(), ask(count=2)), {"v100x4": 1}),
    "all of a node": (claiming(ask(f"{OF}.architecture == 'Volta'", every=True)), {"v100x4": 1}),
    "the first alternative that is sold": (
        claiming((ask(f"{OF}.architecture == 'Hopper'"), ask(f"{OF}.architecture == 'Ampere'"))),
        {"a100": 1},
    ),
    "all of one product": (
        claiming(ask(f"{OF}.architecture == 'Ampere'", count=2), alike=(f"{DRIVER}/productName",)),
        {"a100": 1},
    ),
    "beside a node selector": (
        claiming(ask(), terms=((Requirement(key="pilotlight.dev/pool", operator="In", values=("v100x4",)),),)),
        {"v100x4": 1},
    ),
}


@pytest.mark.parametrize(("waiting", "pools"), CHOSEN.values(), ids=CHOSEN.keys())
def test_a_pool_at_zero_is_chosen(waiting: PodDemand, pools: dict[str, int]) -> None:
    """By what is expected of a type's driver the cheapest pool is lit whose devices the claim chooses."""
    found = plan(waiting)
    assert (bought(found), found.findings) == (pools, ())


ROOMY = replace(V100X4, resources=Resources(cpu_milli=48_000, memory=1 << 38, pods=110))
SMALL = replace(T4, resources=Resources(cpu_milli=4_000, memory=1 << 34, pods=110))
HELD: dict[str, tuple[PodDemand, dict[str, int]]] = {
    "all devices of a node, with more CPU than the cheapest has": (
        claiming(ask(every=True), cpu_milli=20_000),
        {"v100x4": 1},
    ),
    "two that share a claim, on the node that holds both": (
        claiming(ask(), cpu_milli=6_000, sharers=((3_000, 0, 0),)),
        {"v100x4": 1},
    ),
    "three that share a claim, of which no node holds more than two": (
        claiming(ask(count=2), cpu_milli=60_000, sharers=((20_000, 0, 0),) * 2),
        {"v100x4": 1},
    ),
    "sharers of which no node holds even the first": (
        claiming(ask(), cpu_milli=70_000, sharers=((10_000, 0, 0),)),
        {},
    ),
}


@pytest.mark.parametrize(("waiting", "pools"), HELD.values(), ids=HELD.keys())
def test_devices_are_chosen_where_the_rest_of_the_pod_has_room(waiting: PodDemand, pools: dict[str, int]) -> None:
    """Devices of a node too small for the pod's CPU are no choice; of pods that share a claim as many as fit count."""
    assert bought(plan(waiting, offerings=(SMALL, ROOMY))) == pools


def test_parts_of_gpus_are_chosen_by_profile() -> None:
    """A claim for a MIG profile lights a pool whose nodes are cut up so; 56 of them are one node."""
    one = DeviceAsk(named="mig (r)", selectors=(MIG,))
    assert bought(plan(*(claiming(one, name=f"p{n}") for n in range(57)), offerings=(*FLEET, CUT))) == {"cut": 2}


TOLD: dict[str, tuple[PodDemand, str, str]] = {
    "an attribute that is not known": (claiming(ask(f"{OF}.rack == 'r7'")), "claim-unknown", f"{DRIVER}/rack"),
    "a selector that is not read": (claiming(ask("[1].exists(n, n == 1)")), "claim-selector", "is not read here"),
    "more than any node has": (claiming(ask(count=9)), "claim-devices", "gpu (r)"),
    "an architecture that nobody sells": (claiming(ask(f"{OF}.architecture == 'Hopper'")), "claim-devices", "gpu (r)"),
    "two products at once": (
        claiming(ask(f"{OF}.architecture == 'Volta'"), ask(f"{OF}.architecture == 'Turing'")),
        "claim-devices",
        "gpu (r)",
    ),
    "agreeing in what differs": (claiming(ask(count=2), alike=("x/root",)), "claim-unknown", "x/root"),
    "a GPU of a device plugin beside it": (claiming(ask(), gpu=GpuRequest(count=1)), "claim-devices", "gpu (r)"),
}


@pytest.mark.parametrize(("waiting", "code", "words"), TOLD.values(), ids=TOLD.keys())
def test_what_no_node_has_or_nobody_knows_is_told(waiting: PodDemand, code: str, words: str) -> None:
    """Nothing is bought for a claim that no pool meets or that cannot be told of any: a finding says which."""
    found = plan(waiting)
    assert (bought(found), found.pods) == ({}, ())
    assert [(f.subject, f.code, words in f.message) for f in found.findings] == [("ml/p", code, True)]


def test_devices_that_are_no_gpus_are_none_of_ours() -> None:
    """A pod that claims devices of another driver alone is neither demand nor a finding."""
    found = plan(claiming(DeviceAsk(named="nic (r)", selectors=("device.driver == 'net.example.test'",))))
    assert (found.buys, found.pods, found.findings) == ((), (), ())


def test_devices_beside_gpus_that_were_published() -> None:
    """A pod that claims a network card beside a GPU gets a node whose driver is known to publish both."""
    card = DeviceKind(driver="net.example.test", resource="claim:net.example.test", count=2)
    both = (ask(), DeviceAsk(named="nic (r)", selectors=("device.driver == 'net.example.test'",)))
    room = Resources(other=(("claim:net.example.test", 2),))
    known = replace(V100X4, kinds=(published(4), card), resource="claim:nvidia.com/gpu", resources=room)
    pods = [claiming(*both, name=f"p{n}") for n in range(3)]
    assert bought(plan(*pods, offerings=(T4, known))) == {"v100x4": 2}


def test_room_on_a_node_is_used_first() -> None:
    """Free devices of a lit node are used before a node is bought, and no more of them than there are."""
    lit = node("n1", V100X4, used=2, resource="claim:nvidia.com/gpu", kinds=(published(4),))
    found = plan(*(claiming(ask(), name=f"p{n}") for n in range(3)), nodes=(lit,))
    assert sorted((g.verdict, len(g.uids)) for g in found.pods) == [("bought", 1), ("fits", 2)]


def test_pods_of_a_device_plugin_and_claims_do_not_share_a_node() -> None:
    """A pod that asks a device plugin fits no node whose driver publishes devices, nor the other way round."""
    lit = node("n1", V100X4, resource="claim:nvidia.com/gpu", kinds=(published(4),))
    assert bought(plan(pod("q"), nodes=(lit,))) == {"t4": 1}
    plugin = node("n2", T4)
    assert bought(plan(claiming(ask()), offerings=(T4,), nodes=(plugin,))) == {}


def test_a_pool_whose_nodes_have_no_driver_is_told() -> None:
    """Where a ready node of a pool publishes nothing, no more of it are bought for claims: the driver is missing."""
    taint = Taint(key="mine", effect="NoSchedule")
    away = node("n1", V100X4, resource="claim:nvidia.com/gpu", kinds=(published(4),), taints=(taint,))
    for nodes in ((node("n2", T4),), (node("n2", T4), away)):
        (finding,) = plan(claiming(ask()), offerings=(T4,), nodes=nodes).findings
        assert finding.code == "claim-devices"
        assert "no driver publishes devices of the nodes of t4" in finding.message


def test_what_a_node_published_is_known_at_zero() -> None:
    """What drivers published of a node that joined is remembered: attributes that nobody expects, and their absence."""
    kinds = (published(4, rack="r7", architecture="Volta"),)
    lit = node("n1", V100X4, resource="claim:nvidia.com/gpu", kinds=kinds, room=Resources())
    memory = with_learnt(Memory(), [lit], policy(FLEET))
    assert with_learnt(memory, [replace(lit, kinds=())], policy(FLEET)).learnt["v100x4/V100x4"].kinds == kinds
    (known,) = as_learnt([V100X4], memory, policy(FLEET))
    assert (known.resource, known.devices, known.kinds) == ("claim:nvidia.com/gpu", (1000,) * 4, kinds)
    asked = claiming(ask(f"{OF}.rack == 'r7'"))
    assert bought(plan(asked, offerings=(T4, V100X4), memory=memory)) == {"v100x4": 1}
    absent = claiming(ask(f"!has({OF}.rack)"))
    assert [f.code for f in plan(absent, offerings=(V100X4,), memory=memory).findings] == ["claim-devices"]


def test_the_order_of_pods_and_offerings_changes_nothing() -> None:
    """Equal arguments in another order give an equal plan."""
    pods = [claiming(ask(f"{OF}.architecture == '{a}'"), name=a) for a in ("Volta", "Ampere", "Turing")]
    one = plan(*pods)
    other = plan(*reversed(pods), offerings=tuple(reversed(FLEET)))
    assert bought(one) == bought(other) == {"v100x4": 1, "a100": 1, "t4": 1}


def test_what_only_a_node_out_of_reach_has_says_nothing_of_a_pool() -> None:
    """A lit node that the pod may not use does not answer for a pool of which nobody can tell."""
    taint = Taint(key="mine", effect="NoSchedule")
    away = node("n1", V100X4, resource="claim:nvidia.com/gpu", kinds=(published(4),), taints=(taint,))
    found = plan(claiming(ask(f"!has({OF}.rack)")), offerings=(T4,), nodes=(away,))
    assert [f.code for f in found.findings] == ["claim-unknown"]


CARD = DeviceAsk(named="cards (nic)", selectors=("device.driver == 'net.example.test'",))
BESIDE: dict[str, PodDemand] = {
    "GPUs of a device plugin": claiming(CARD, gpu=GpuRequest(count=1)),
    "GPUs by claim": claiming(ask(), CARD),
    "an alternative": claiming((CARD, replace(CARD, count=2)), gpu=GpuRequest(count=1)),
    "cards that differ": claiming(replace(CARD, untold="which differ cannot be told"), gpu=GpuRequest(count=1)),
}


@pytest.mark.parametrize("waiting", BESIDE.values(), ids=BESIDE.keys())
def test_a_claim_of_a_driver_that_nobody_knows_is_told_and_its_gpus_are_bought(waiting: PodDemand) -> None:
    """GPUs beside network cards of an unknown driver are demand; the claim is a finding, or the policy ignores it."""
    found = plan(waiting)
    assert bought(found) == {"t4": 1}
    assert [(f.subject, f.code) for f in found.findings] == [("driver net.example.test", "claim-driver")]
    quiet = plan(waiting, ignored=("net.example.test",))
    assert (bought(quiet), quiet.findings) == ({"t4": 1}, ())


@pytest.mark.parametrize("other", ["example.test", "net.example", "net.example.test.org", "my-net.example.test"])
def test_a_driver_is_ignored_by_its_whole_name(other: str) -> None:
    """One whose name is a part of another's, or has it as a part, is another driver."""
    found = plan(claiming(CARD, gpu=GpuRequest(count=1)), ignored=(other,))
    assert [f.code for f in found.findings] == ["claim-driver"]


def test_a_driver_that_published_devices_is_held_to_them_unless_it_is_ignored() -> None:
    """Where network cards are known of some nodes, a pod that claims more than they have waits."""
    card = DeviceKind(driver="net.example.test", resource="claim:net.example.test", count=1)
    known = replace(V100X4, kinds=(card,), resources=Resources(other=(("claim:net.example.test", 1),)))
    two = claiming(replace(CARD, count=2), gpu=GpuRequest(count=1))
    waits = plan(two, offerings=(T4, known))
    assert (bought(waits), [(f.subject, f.code) for f in waits.findings]) == ({}, [("ml/p", "claim-devices")])
    assert bought(plan(two, offerings=(known,), ignored=("net.example.test",))) == {"v100x4": 1}


def test_a_full_node_of_a_pool_that_is_not_sold_holds_no_driver_to_it() -> None:
    """The driver runs on nodes of a pool that is gone from the policy: those of another are bought, and it is told."""
    card = DeviceKind(driver="net.example.test", resource="claim:net.example.test", count=1)
    full = node("n1", V100X4, used=4, kinds=(card,))
    found = plan(claiming(CARD, gpu=GpuRequest(count=1)), offerings=(T4,), nodes=(full,))
    assert (bought(found), [f.code for f in found.findings]) == ({"t4": 1}, ["claim-driver"])


def test_a_class_of_any_device_beside_gpus_of_a_plugin_is_of_another_driver() -> None:
    """A DeviceClass without selectors: GPUs of a device plugin are never its devices, and are wanted all the same."""
    found = plan(claiming(DeviceAsk(named="any (r)"), gpu=GpuRequest(count=1)))
    assert (bought(found), [f.code for f in found.findings]) == ({"t4": 1}, ["claim-driver"])


@pytest.mark.parametrize("untold", ["admin access cannot be told", "which differ cannot be told"])
def test_gpus_by_claim_of_which_nobody_can_tell_are_a_finding(untold: str) -> None:
    """Nothing is bought for them; the reason is the request's."""
    found = plan(claiming(ask(), ask(untold=untold)))
    assert (bought(found), [(f.code, f.message) for f in found.findings]) == ({}, [("claim", untold)])


def test_an_alternative_that_reads_what_devices_lack_stops_the_scheduler() -> None:
    """An absent attribute is an error to the scheduler, not a no: it does not come to the next alternative."""
    seen = replace(V100X4, kinds=(published(4),), resource="claim:nvidia.com/gpu")
    either = claiming((ask(f"{OF}.rack == 'r7'"), ask()))
    found = plan(either, offerings=(seen,))
    assert (bought(found), [f.code for f in found.findings]) == ({}, ["claim-selector"])
    careful = claiming((ask(f"has({OF}.rack) && {OF}.rack == 'r7'"), ask()))
    assert bought(plan(careful, offerings=(seen,))) == {"v100x4": 1}


def test_an_alternative_that_reads_what_nobody_knows_to_be_there_is_told_before_money() -> None:
    """Of a type that nobody has seen, an attribute that its driver does not document may be absent: nothing is bought.

    One that is documented will be there, with a value that is not known yet: then the next alternative is as good.
    """
    found = plan(claiming((ask(f"{OF}.rack == 'r7'"), ask())))
    assert (bought(found), [f.code for f in found.findings]) == ({}, ["claim-unknown"])
    assert bought(plan(claiming((ask(f"{OF}.brand == 'Quadro'"), ask())))) == {"t4": 1}
    assert bought(plan(claiming((ask(f"has({OF}.rack) && {OF}.rack == 'r7'"), ask())))) == {"t4": 1}


def test_a_free_device_without_the_attribute_stops_the_pod_everywhere() -> None:
    """The scheduler gives a pod up at the first node whose free device it cannot judge; a full one is passed by."""
    racked = replace(V100X4, kinds=(published(4, rack="r7"),), resource="claim:nvidia.com/gpu")
    asked = claiming(ask(f"{OF}.rack == 'r7'"))
    bare = node("n1", T4, resource="claim:nvidia.com/gpu", kinds=(published(1),))
    found = plan(asked, offerings=(racked,), nodes=(bare,))
    assert (bought(found), ["node n1" in f.message for f in found.findings]) == ({}, [True])
    full = node("n1", T4, used=1, resource="claim:nvidia.com/gpu", kinds=(published(1),))
    assert bought(plan(asked, offerings=(racked,), nodes=(full,))) == {"v100x4": 1}


def test_an_amount_of_a_device_is_had_of_those_that_have_it() -> None:
    """A request for capacity lights the pool whose devices have so much; a device that claims share is told."""
    assert bought(plan(claiming(ask(amounts=(("memory", "30Gi"),))), offerings=(BIG,))) == {"a100": 1}
    assert bought(plan(claiming(ask(amounts=(("memory", "41Gi"),))), offerings=(BIG,))) == {}
    shared = replace(published(4), capacity={f"{DRIVER}/memory": "80Gi"}, shares=True)
    seen = replace(V100X4, kinds=(shared,), resource="claim:nvidia.com/gpu")
    found = plan(claiming(ask(amounts=(("memory", "1Gi"),))), offerings=(seen,))
    assert (bought(found), [f.code for f in found.findings]) == ({}, ["claim-unknown"])
