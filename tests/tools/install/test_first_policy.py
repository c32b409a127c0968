"""A first policy: pools as their nodes show them, and words on what they do not show."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.policy_file import read_policy
from pilotlight.facts import labels
from pilotlight.facts.capacity import ClusterView, Node, Taint
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.workload import GpuRequest, PodDemand, Requirement, Toleration, shape
from pilotlight.tools.install.first_policy import FirstPolicy, first_policy
from pilotlight.tools.report.texts.first_policy_text import policy_text

EPOCH = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
GPU = Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule")


def machine(model: str, gpus: int, usd: str, memory: str = "64Gi") -> InstanceType:
    """A type that is sold on demand."""
    price = Price(usd_per_hour=Decimal(usd), source="a list", date="2026-11-01")
    return InstanceType(
        cloud="aws", gpu_model=model, gpus=gpus, cpu="16", memory=memory, prices={"on-demand": price, "spot": price}
    )


CATALOG = Catalog(
    name="lists", as_of=EPOCH, throughput_source="none", throughput={},
    instance_types={"g4": machine("T4", 1, "0.50"), "p3": machine("V100", 4, "12"), "p4": machine("A100", 8, "32")},
)  # fmt: skip


def node(name: str, pool: str = "gpu", kind: str = "g4", **more: object) -> Node:
    """A node of AWS's."""
    carried = {"gpu": "yes", labels.HOSTNAME: name, labels.INSTANCE_TYPE: kind, "eks.amazonaws.com/nodegroup": pool}
    fields: dict[str, object] = {
        "name": name, "pool": pool, "instance_type": kind, "capacity_type": "on-demand", "created_at": EPOCH,
        "ready": True, "devices": (1000,), "labels": carried, "taints": (GPU,), "cloud": "aws", "gpu_model": "T4",
    }  # fmt: skip
    return Node(**{**fields, **more})  # type: ignore[arg-type]


def pod(gpus: int = 1, **more: object) -> PodDemand:
    """A pod that waits."""
    made = shape(gpu=GpuRequest(count=gpus), **more)
    return PodDemand(uid=f"u{gpus}", namespace="ml", name=f"p{gpus}", shape=made, created_at=EPOCH)


def found(*nodes: Node, pending: tuple[PodDemand, ...] = ()) -> FirstPolicy:
    """What is made of a cluster."""
    return first_policy(ClusterView(nodes=nodes, pending=pending), CATALOG)


def test_a_pool_is_what_its_nodes_share() -> None:
    """Name, cloud, type, and the labels and taints that every node of it is born with; twice as many as there are."""
    passing = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
    first = found(node("a", taints=(GPU, passing)), node("b", taints=(passing, GPU)))
    [(name, pool, _, usd)] = first.pools
    assert (name, pool.cloud, pool.cluster_pool, pool.instance_type, pool.max) == ("gpu", "eks", "", "g4", 4)
    assert pool.labels == {"gpu": "yes", "eks.amazonaws.com/nodegroup": "gpu"}
    assert (pool.taints, usd) == ((GPU,), Decimal("0.50"))
    assert (first.most_nodes, first.most_usd_per_hour) == (4, Decimal(2))


@pytest.mark.parametrize(
    "label",
    [
        pytest.param({"nvidia.com/cuda.driver.major": "550"}, id="what its driver says"),
        pytest.param({"eks.amazonaws.com/nodegroup-image": "ami-1"}, id="the image it began with"),
        pytest.param({"feature.node.kubernetes.io/pci": "1"}, id="what was discovered on it"),
        pytest.param({"example.com/machine": "i-0abc"}, id="a label that holds its own instance"),
        pytest.param({labels.ZONE: "us-east-1a"}, id="its zone"),
    ],
)
def test_what_passes_is_no_label_of_a_pool(label: dict[str, str]) -> None:
    """A label of one machine, or of its software, is not promised of a node that is not born yet."""
    [(_, pool, _, _)] = found(node("a", instance="i-0abc", labels={"gpu": "yes", **label})).pools
    assert pool.labels == {"gpu": "yes"}


def test_pools_whose_names_are_ids_are_called_by_their_gpus() -> None:
    """Two such pools of one model have two names; each keeps its id as its name at the cloud."""
    ids = ("00000000-0000-0000-0000-000000000000", "11111111-0000-0000-0000-000000000000")
    pools = found(*(node(f"n{n}", pool) for n, pool in enumerate(ids))).pools
    assert [(one.name, one.pool.cluster_pool) for one in pools] == [("t4", ids[0]), ("t4-2", ids[1])]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        pytest.param([node("a", pool="")], "give them the label pilotlight.dev/pool=g4", id="nodes name no pool"),
        pytest.param([node("a"), node("b"), node("c", kind="p3")], "2 types were seen", id="a pool of several types"),
        pytest.param([node("a", kind="odd")], "no price of odd is known", id="a type that no price is known of"),
        pytest.param([node("a", slices={"nvidia.com/mig-1g.5gb": 7})], "write them as slices", id="parts of GPUs"),
        pytest.param([node("a", capacity_type="spot")], "batch may use spot", id="a pool of spot"),
        pytest.param([], "the policy has no pool yet", id="an empty cluster"),
    ],
)
def test_what_nothing_shows_is_said(nodes: list[Node], said: str) -> None:
    """Each assumption is a line that names what to write."""
    assert said in "; ".join(found(*nodes).assumed)


@pytest.mark.parametrize(
    ("waiting", "kind"),
    [
        pytest.param([pod(1), pod(4)], "p3", id="the cheapest that holds the largest pod"),
        pytest.param([pod(1, gpu_models=("A100",))], "p4", id="of the model that it names"),
        pytest.param(
            [pod(1, terms=((Requirement(key=labels.INSTANCE_TYPE, operator="In", values=("p3",)),),))], "p3",
            id="the type that it selects",
        ),
        pytest.param([pod(16)], None, id="none where none holds it"),
    ],
)  # fmt: skip
def test_without_a_node_a_pod_says_what_is_needed(waiting: list[PodDemand], kind: str | None) -> None:
    """The pool is one that the catalogue sells, and it is said to be a guess."""
    first = found(pending=tuple(waiting))
    assert [one.pool.instance_type for one in first.pools] == ([kind] if kind else [])
    assert "catalogue lists" in first.assumed[0]


def test_a_guessed_pool_takes_the_pod_in() -> None:
    """It has the labels that the pod selects, and a taint that the pod tolerates."""
    terms = ((Requirement(key="gpu", operator="In", values=("on-demand",)),),)
    tolerations = (Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule"), Toleration(key="x"))
    [(name, pool, _, _)] = found(pending=(pod(1, terms=terms, tolerations=tolerations),)).pools
    assert (name, pool.labels) == ("t4", {"gpu": "on-demand"})
    assert [taint.key for taint in pool.taints] == ["nvidia.com/gpu"]


BIG = Taint(key="big", effect="NoSchedule")
A_BIG_ONE = Toleration(key="big", operator="Exists")


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        pytest.param(pod(8), ["ml/p8 lacks the toleration big:NoSchedule of pool big"], id="the one pool"),
        pytest.param(pod(8, tolerations=(A_BIG_ONE,)), [], id="a pod that may go there"),
        pytest.param(pod(1), [], id="a pod that an open pool holds"),
        pytest.param(pod(16), [], id="a pod that no pool holds"),
        pytest.param(
            pod(2), ["ml/p2 lacks the toleration nvidia.com/gpu=present:NoSchedule of pool mid"],
            id="of two pools the one whose taint is no team's own",
        ),
        pytest.param(
            pod(1, terms=((Requirement(key="disk", operator="In", values=("ssd",)),),)),
            ["ml/p1 lacks the toleration nvidia.com/gpu=present:NoSchedule of pool mid"], id="its selector's pool",
        ),
        pytest.param(
            pod(1, terms=((Requirement(key="disk", operator="In", values=("tape",)),),)), [],
            id="a selector that names none",
        ),
    ],
)  # fmt: skip
def test_whom_taints_keep_off_all_pools_that_would_hold_it_is_named(waiting: PodDemand, said: list[str]) -> None:
    """Another pool that stands open helps a pod only where it would hold it."""
    nodes = [
        node("a", "open", taints=()),
        node("b", "big", "p4", taints=(BIG,)),
        node("c", "mid", "p3", labels={"disk": "ssd"}),
    ]
    assert [line.partition(": nothing")[0] for line in found(*nodes, pending=(waiting,)).kept_off] == said


def test_a_taint_that_may_be_a_team_s_own_is_no_advice() -> None:
    """Its pool is named and the choice left, also where the pool has a GPU's taint beside it; that one is advised."""
    [own] = found(node("a", "prod", taints=(GPU, BIG)), pending=(pod(1),)).kept_off
    lacks = "ml/p1 lacks the toleration"
    assert own == (
        f"{lacks} nvidia.com/gpu=present:NoSchedule, big:NoSchedule of pool prod: nothing is bought for that; "
        "add it where the pods may use that pool, else write one of their own"
    )
    [advised] = found(node("a", "gpu"), pending=(pod(1),)).kept_off
    assert advised == (
        f"{lacks} nvidia.com/gpu=present:NoSchedule of pool gpu: nothing is bought for that; add it to the pods"
    )


def test_a_type_that_no_list_has_is_written_into_a_price_file() -> None:
    """The lines of the policy on it, without their marks and with a person's words, are a file that prices it."""
    first = found(node("a", kind="zz9"))
    lines = policy_text(first, "a cluster").splitlines()
    assert "  # No price list has zz9: none of it is bought." in lines
    assert not any("zz9/on-demand" in line for line in lines)
    begun = lines.index("  #   name: mine")
    text = "\n".join(line.removeprefix("  #   ") for line in lines[begun:])
    for word, theirs in (
        ("DAY", "2026-11-30"),
        ("DOLLARS", "0.7"),
        ("WHERE", "list"),
        ("CPUS", "4"),
        ("MEMORY", "16Gi"),
    ):
        text = text.replace(word, theirs)
    prices = read_catalog(text, "prices.yaml").instance_types["zz9"].prices
    assert prices["on-demand"].usd_per_hour == Decimal("0.7")


NAMES = st.text(min_size=1, max_size=12)


@example({"\n": ("0", "\n\n", "a: b")}, "\n")
@given(st.dictionaries(NAMES, st.tuples(NAMES, NAMES, NAMES), max_size=4), NAMES)
def test_whatever_names_are_it_is_a_policy(pools: dict[str, tuple[str, str, str]], source: str) -> None:
    """The text is read back as the same pools, for names and labels of any letters that YAML can hold."""
    nodes = [
        node(f"n{n}", pool, kind, labels={key: value, "k": pool})
        for n, (pool, (kind, key, value)) in enumerate(pools.items())
    ]
    first = found(*nodes)
    policy = read_policy(policy_text(first, source), "policy.yaml")
    assert policy.pools == {one.name: one.pool for one in first.pools}


def test_a_pool_whose_nodes_have_homes_is_homed() -> None:
    """Where every node carries the home taint the pool is born with it, whatever its value became; else it is not."""
    [(_, homed, *_)] = found(node("a", home="d1-0-0"), node("b", home="new")).pools
    [(_, opened, *_)] = found(node("a", home="d1-0-0"), node("b")).pools
    assert (homed.taints, opened.taints) == ((GPU, BIRTH_TAINT), (GPU,))
