"""Which GPU, which pool, which capacity type: who may run where, and what is cheapest for the work."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from small_fleet import A100, FLEET, NOW, T4, V100X4, bought, offering, plan, pod, pods, policy, verdict

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.decide.offers.offerings import offerings
from pilotlight.facts.capacity import Offering, Resources, Taint
from pilotlight.facts.labels import ZONE
from pilotlight.facts.memory import Backoff, Memory
from pilotlight.facts.money.money_policy import Prices
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, Requirement, Toleration, WorkloadClass

ARTICLES = Path(__file__).parents[3] / "data" / "catalogs" / "articles.yaml"
S3_TYPES = ("p3.2xlarge", "p3.8xlarge", "p4d.24xlarge", "g4dn.xlarge")

GPU_TAINT = (Taint(key="gpu", value="true", effect="NoSchedule"),)
TAINTED = offering("t4", "T4", 1, "1", labels={"gpu": "on-demand"}, taints=GPU_TAINT)
SPOT = offering("a100-spot", "A100", 8, "12", capacity_type="spot", interruptions_per_hour=0.05)


def wants(key: str, *values: str) -> dict[str, Any]:
    """The trait of a pod whose node affinity asks for labels."""
    return {"terms": ((Requirement(key=key, operator="In", values=values),),)}


def tolerates(**fields: str) -> dict[str, Any]:
    """The trait of a pod with one toleration."""
    return {"tolerations": (Toleration(**fields),)}  # type: ignore[arg-type]


def articles_plan(wanted: PodDemand) -> dict[str, int]:
    """What is bought for a pod on article S3's four types at its prices."""
    catalog = read_catalog(ARTICLES.read_bytes(), ARTICLES.name)
    pools = {t: PoolPolicy(instance_type=t) for t in S3_TYPES}
    rules = Policy(version=1, pools=pools, prices=Prices(max_age_days=180))
    offered, _ = offerings(rules, catalog)
    return bought(plan([wanted], offerings=offered, rules=rules, throughput=catalog.throughput))


def test_a_notebook_takes_the_cheapest_gpu() -> None:
    """A notebook of one GPU on article S3's four types gets g4dn.xlarge, not a p4d."""
    assert articles_plan(pod("nb", workload_class="notebook")) == {"g4dn.xlarge": 1}


TRAINING, TYPE = {"workload_class": "training"}, "node.kubernetes.io/instance-type"
WHICH_GPU: dict[str, tuple[dict[str, Any], str]] = {
    "training that names no GPU": (TRAINING, "which-gpu"),
    "serving that names no GPU": ({"workload_class": "serving"}, "which-gpu"),
    "training whose annotation names one": ({**TRAINING, "gpu_models": ("V100",)}, ""),
    "training whose annotation says any": ({**TRAINING, "gpu_models": ("any",)}, ""),
    "training whose selector names a type": ({**TRAINING, **wants(TYPE, "T4x1")}, ""),
    "batch that names no GPU": ({"workload_class": "batch"}, ""),
    "a notebook that names no GPU": ({"workload_class": "notebook"}, ""),
}


@pytest.mark.parametrize(("traits", "code"), WHICH_GPU.values(), ids=WHICH_GPU.keys())
def test_which_gpu(traits: dict[str, Any], code: str) -> None:
    """Training and serving that say nothing of the GPU they want get a finding instead of a guess."""
    rules = Policy(version=1, pools=policy().pools)
    made = plan([pod("p", **traits)], rules=rules)
    assert [f.code for f in made.findings] == ([code] if code else [])
    assert bool(made.buys) is not bool(code)


def test_training_may_use_any_gpu_where_the_policy_says_so() -> None:
    """With classes.training.gpu_models any, nothing need be named."""
    rules = policy(classes={"training": ClassPolicy(gpu_models="any")})
    assert bought(plan([pod("p", workload_class="training")], rules=rules)) == {"t4": 1}


FOUND: dict[str, tuple[dict[str, Any], Sequence[Offering], str]] = {
    "a pod without the pool's toleration": ({}, [TAINTED], "toleration"),
    "a toleration of another value": (tolerates(key="gpu", value="false"), [TAINTED], "toleration"),
    "a toleration of another effect": (tolerates(key="gpu", value="true", effect="NoExecute"), [TAINTED], "toleration"),
    "a selector that no pool meets": (wants("gpu", "reserved"), [TAINTED], "selector"),
    "more GPUs than any node has": ({"gpu": GpuRequest(count=16)}, FLEET, "no-pool"),
    "more memory a GPU than any has": ({"min_gpu_memory_gib": 80}, FLEET, "no-pool"),
    "a class whose rules leave no pool": ({"workload_class": "serving"}, [SPOT], "class"),
}


@pytest.mark.parametrize(("traits", "offered", "code"), FOUND.values(), ids=FOUND.keys())
def test_findings_instead_of_nodes(traits: dict[str, Any], offered: Sequence[Offering], code: str) -> None:
    """What no node would help is told to its owner, and nothing is bought."""
    wanted = pod("p", **traits)
    made = plan([wanted], offerings=offered)
    assert not made.buys
    assert [(f.code, f.uid) for f in made.findings] == [(code, wanted.uid)]
    assert verdict(made, wanted)[0] == "finding"
    assert all(r.why for g in made.pods for r in g.rejected)


def test_a_missing_toleration_is_named_as_the_article_names_it() -> None:
    """The finding says label/toleration mismatch (article S0, Troubleshooting 1)."""
    (finding,) = plan([pod("p")], offerings=[TAINTED]).findings
    assert "label/toleration mismatch" in finding.message


ADMITTED: dict[str, dict[str, Any]] = {
    "Equal with the value": tolerates(key="gpu", value="true", effect="NoSchedule"),
    "Equal for every effect": tolerates(key="gpu", value="true"),
    "Exists on the key": tolerates(key="gpu", operator="Exists", effect="NoSchedule"),
    "Exists on every key": tolerates(operator="Exists"),
    "and a selector it meets": {**tolerates(operator="Exists"), **wants("gpu", "on-demand", "spot")},
}


@pytest.mark.parametrize("traits", ADMITTED.values(), ids=ADMITTED.keys())
def test_tolerations_that_admit(traits: dict[str, Any]) -> None:
    """A pod that tolerates a pool's taint, in any of Kubernetes' ways, is bought for."""
    assert bought(plan([pod("p", **traits)], offerings=[TAINTED])) == {"t4": 1}


SPEEDS: dict[str, tuple[Mapping[str, float], dict[str, Any], str]] = {
    "a GPU thrice as fast at twice the price": ({"T4": 1, "V100": 3}, {}, "v100"),
    "a GPU a half faster at twice the price": ({"T4": 1, "V100": 1.5}, {}, "t4"),
    "a model without a figure": ({"T4": 1}, {}, "t4"),
    "only the dearer one has a figure": ({"V100": 1}, {}, "v100"),
    "a model the annotation rules out": ({"T4": 1, "V100": 1}, {"gpu_models": ("V100",)}, "v100"),
}


@pytest.mark.parametrize(("speeds", "traits", "chosen"), SPEEDS.values(), ids=SPEEDS.keys())
def test_models_compare_by_price_over_throughput(
    speeds: Mapping[str, float], traits: dict[str, Any], chosen: str
) -> None:
    """A class's table tells models apart; a model that is not in it is not interchangeable with those that are."""
    two = (offering("t4", "T4", 1, "1"), offering("v100", "V100", 1, "2"))
    made = plan([pod("p", **traits)], offerings=two, throughput={"batch": speeds})
    assert bought(made) == {chosen: 1}


def test_an_unknown_model_is_rejected_in_words() -> None:
    """The option left out for want of a throughput figure says so, and where to give one."""
    made = plan([pod("p")], offerings=[T4, A100], throughput={"batch": {"T4": 1}})
    (rejected,) = made.pods[0].rejected
    assert rejected.offering == A100.name
    assert "no throughput figure for A100" in rejected.why
    assert "prices.throughput.batch.A100" in rejected.why
    assert "where T4 is 1" in rejected.why


@pytest.mark.parametrize("work", ["training", "serving", "batch"])
def test_a_full_a100_pool_leaves_the_h100(work: WorkloadClass) -> None:
    """With the catalogue's figures a pod whose A100 pool is at its most gets an H100 instead of a refusal."""
    catalog = read_catalog(ARTICLES.read_bytes(), ARTICLES.name)
    pools = {"a100": PoolPolicy(instance_type="p4d.24xlarge", max=0), "h100": PoolPolicy(instance_type="p5.48xlarge")}
    rules = Policy(
        version=1, pools=pools, classes={work: ClassPolicy(gpu_models="any")}, prices=Prices(max_age_days=999)
    )
    offered, _ = offerings(rules, catalog)
    made = plan([pod("t", 8, workload_class=work)], offerings=offered, rules=rules, throughput=catalog.throughput)
    assert bought(made) == {"h100": 1}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("node.kubernetes.io/instance-type", "p4d.24xlarge"),
        ("topology.kubernetes.io/zone", "us-east-1a"),
        ("topology.kubernetes.io/region", "us-east-1"),
    ],
)
def test_well_known_labels_are_predicted(key: str, value: str) -> None:
    """A pod that selects by a label every node of its pool will carry is bought for; by another value it is not."""
    catalog = read_catalog(ARTICLES.read_bytes(), ARTICLES.name)
    pools = {"a100": PoolPolicy(cloud="eks", instance_type="p4d.24xlarge", zones=("us-east-1a",))}
    rules = Policy(version=1, pools=pools, prices=Prices(max_age_days=999))
    offered, _ = offerings(rules, catalog)
    assert bought(plan([pod("p", 1, **wants(key, value))], offerings=offered, rules=rules)) == {"a100": 1}
    assert not plan([pod("p", 1, **wants(key, "other"))], offerings=offered, rules=rules).buys


def test_a_notebook_asks_no_throughput() -> None:
    """Interactive work takes the cheapest GPU whatever the table says of others."""
    two = (offering("t4", "T4", 1, "1"), offering("v100", "V100", 1, "2"))
    made = plan([pod("p", workload_class="notebook")], offerings=two, throughput={"notebook": {"V100": 9}})
    assert bought(made) == {"t4": 1}


RESTS = Memory(backoffs=(Backoff(offering=SPOT.name, until=NOW + timedelta(minutes=5), why="out of stock"),))
OD = offering("a100", "A100", 8, "32")
DENY = ClassPolicy(capacity_types=("spot",), gpu_models="any")
ALLOW = ClassPolicy(capacity_types=("spot",), fallback="allow", gpu_models="any")
SPOT_CASES: dict[str, tuple[ClassPolicy, Memory, dict[str, int], str]] = {
    "spot is there, whatever the fallback": (ALLOW, Memory(), {"a100-spot": 1}, "bought"),
    "spot is out and the fallback is deny": (DENY, RESTS, {}, "waiting"),
    "spot is out and the fallback is allow": (ALLOW, RESTS, {"a100": 1}, "bought"),
    "the class is on-demand": (ClassPolicy(gpu_models="any"), Memory(), {"a100": 1}, "bought"),
}


@pytest.mark.parametrize(("rules", "memory", "nodes", "word"), SPOT_CASES.values(), ids=SPOT_CASES.keys())
def test_fallback_to_on_demand(rules: ClassPolicy, memory: Memory, nodes: dict[str, int], word: str) -> None:
    """No silent fall-back from spot: a class's owner opts in, else the pod waits and the reason is told."""
    wanted = pod("p", 8)
    made = plan([wanted], offerings=(OD, SPOT), rules=policy((OD, SPOT), classes={"batch": rules}), memory=memory)
    assert bought(made) == nodes
    assert verdict(made, wanted)[0] == word
    if word == "waiting":
        assert "out of stock" in verdict(made, wanted)[1]
        assert made.look_again_at == NOW + timedelta(minutes=5)


def test_serving_never_runs_on_spot() -> None:
    """Not even where its class allows spot and spot is the cheapest."""
    rules = ClassPolicy(capacity_types=("spot", "on-demand"), gpu_models="any")
    made = plan(
        [pod("p", 8, workload_class="serving")],
        offerings=(OD, SPOT),
        rules=policy((OD, SPOT), classes={"serving": rules}),
    )
    assert bought(made) == {"a100": 1}
    assert "serving never runs on spot" in {r.why for r in made.pods[0].rejected}


DISCOUNTS = [
    ("p4d.24xlarge", "0.619"),
    ("g5.xlarge", "0.653"),
    ("a2-highgpu-8g", "0.700"),
    ("Standard_NC24ads_A100_v4", "0.602"),
]


@pytest.mark.parametrize(("name", "discount"), DISCOUNTS, ids=[n for n, _ in DISCOUNTS])
def test_spot_discounts_of_the_catalogue(name: str, discount: str) -> None:
    """The catalogue's spot prices give article S2's discounts."""
    prices = read_catalog(ARTICLES.read_bytes(), ARTICLES.name).instance_types[name].prices
    off = 1 - prices["spot"].usd_per_hour / prices["on-demand"].usd_per_hour
    assert round(off, 3) == Decimal(discount)


def test_stranded_gpus_are_a_limit() -> None:
    """One GPU does not buy an eight-GPU node where max_stranded_gpus forbids it; seven do."""
    rules = policy([A100], max_stranded_gpus=1)
    one = pod("p")
    made = plan([one], offerings=[A100], rules=rules)
    assert not made.buys
    assert verdict(made, one) == ("refused", "every offering would strand more GPUs than max_stranded_gpus allows")
    assert bought(plan(pods(7), offerings=[A100], rules=rules)) == {"a100": 1}


def test_stranded_gpus_are_paid_for() -> None:
    """One pod takes the dearer GPU of a small node; enough pods to fill the large one take that."""
    small, large = offering("small", "V100", 1, "5"), offering("large", "V100", 4, "12")
    assert bought(plan(pods(1), offerings=(small, large))) == {"small": 1}
    assert bought(plan(pods(4), offerings=(small, large))) == {"large": 1}


def test_what_a_node_lacks_is_said() -> None:
    """An offering too small beside GPUs is rejected with both figures."""
    tight = offering("t4", "T4", 1, "1", resources=Resources(cpu_milli=3920))
    made = plan([pod("p", cpu_milli=8000)], offerings=[tight, V100X4])
    assert bought(made) == {"v100x4": 1}
    assert "needs 8 CPU, 3.92 allocatable" in made.pods[0].rejected[0].why


ZONED = [offering("a", "T4", 1, "1", labels={ZONE: "zone-a"}), offering("b", "T4", 1, "2", labels={ZONE: "zone-b"})]


def volume_in(*zones: str) -> dict[str, Any]:
    """The traits of a pod whose volume can be had only there."""
    terms = ((Requirement(key=ZONE, operator="In", values=zones),),)
    return {"terms": terms, "reach": (terms,)}


def test_a_pool_where_the_volume_cannot_be_is_rejected_and_says_so() -> None:
    """The dearer pool in the volume's zone is bought; the cheaper is rejected by the volume's code."""
    made = plan([pod("p", **volume_in("zone-b"))], offerings=ZONED)
    assert bought(made) == {"b": 1}
    (rejected,) = made.pods[0].rejected
    assert (rejected.code, "zone-b" in rejected.why) == ("volume", True)


@pytest.mark.parametrize(
    ("offered", "fix"),
    [(ZONED, "add a pool there"), ([offering("t4", "T4", 1, "1")], "set pools.t4.zones")],
    ids=["other zones", "a pool of a zone that is not known"],
)
def test_a_volume_that_no_pool_reaches_is_a_finding(offered: list[Offering], fix: str) -> None:
    """Nothing is bought where no pool can have the volume, and the finding says what to mend."""
    made = plan([pod("p", **volume_in("zone-c"))], offerings=offered)
    assert not made.buys
    (finding,) = made.findings
    assert (finding.code, fix in finding.message, "zone-c" in finding.message) == ("volume", True, True)
