"""Homes: which pools are born closed, who is given which node, and what opens one."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import A100, FLEET, NOW, SAME_SPEED, T4, V100X4, bought, gang, in_flight, node, plan, pod, pods, policy

from pilotlight.decide.place.homes import own_home
from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import ClusterView, Node, Offering
from pilotlight.facts.decisions import Plan
from pilotlight.facts.labels import GPU_MODEL, NEW_HOME, ODD_HOME
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.memory import FitMismatch, Memory
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.nodes.pool_state import InFlight, PoolState
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodDemand, Queued, QueuedSet, Requirement, Toleration
from pilotlight.tools.checkup.pool_homes import homed_pools


def born_closed(*offerings: Offering, of: Sequence[Offering] = FLEET, **fields: Any) -> Policy:
    """A policy of homes in which the nodes of these pools are born closed."""
    rules = policy(of, placement="homes", **fields)
    tainted = {o.pool: msgspec.structs.replace(rules.pools[o.pool], taints=(BIRTH_TAINT,)) for o in offerings}
    return msgspec.structs.replace(rules, pools=rules.pools | tainted)


HOMED = born_closed(V100X4, A100)
ACTS = Brakes(modes=dict.fromkeys(HOMED.pools, "act"))
A100_ONLY = ((Requirement(key=GPU_MODEL, operator="In", values=("A100",)),),)
HOME = "d1-0-0"


def homed(pending: Sequence[PodDemand] = (), nodes: Sequence[Node] = (), **options: object) -> Plan:
    """A plan of a cluster whose dear nodes are born closed."""
    return plan(pending, nodes, **{"rules": HOMED, "brakes": ACTS, **options})  # type: ignore[arg-type]


def asked(demands: Sequence[PodDemand], numbers: Sequence[int], count: int = 1) -> InFlight:
    """A100 nodes on their way, with the number of the node that each pod is put on."""
    return msgspec.structs.replace(in_flight(A100, demands, count), homes=tuple(numbers))


def given_homes(made: Plan) -> dict[str, str]:
    """The toleration that a plan gives to each pod, by name."""
    return {one.pod: one.home for one in made.homes.tolerate}


HOMES: dict[str, tuple[tuple[PodDemand, ...], set[str]]] = {
    "no pods, no pools": ((), set()),
    "small work closes dear types": (pods(1), {"v100x4", "a100"}),
    "work of eight GPUs is at home on the one type that holds it": (pods(1, gpus=8), set()),
    "work that names its type is at home there": (pods(1, terms=A100_ONLY), set()),
    "one of several shapes is enough": ((*pods(1, gpus=8), pod("small")), {"v100x4", "a100"}),
}


@pytest.mark.parametrize(("waiting", "homed_"), HOMES.values(), ids=HOMES.keys())
def test_which_pools_are_to_be_born_closed(waiting: tuple[PodDemand, ...], homed_: set[str]) -> None:
    """Those that some pod may use and costs less elsewhere; where every pod is at home nodes stay open."""
    found = homed_pools([p.shape for p in waiting], FLEET, policy(), SAME_SPEED, NOW)
    assert found.keys() == homed_


def test_a_type_that_is_cheaper_alone_and_dearer_by_the_gpu_is_closed() -> None:
    """One pod belongs on the small type and eight on the large one: neither is open to pods of the other's plan."""
    dear = msgspec.structs.replace(A100, usd_per_hour=T4.usd_per_hour * 4)
    found = homed_pools([pod("p").shape], (T4, dear), policy((T4, dear)), SAME_SPEED, NOW)
    assert found == {"a100": "a pod of 1 GPU costs less on t4", "t4": "many pods of 1 GPU cost less on a100"}


def test_one_pool_alone_is_open() -> None:
    """Where there is nothing else to be bought every pod is at home."""
    assert homed_pools([pod("p").shape], [A100], policy([A100]), SAME_SPEED, NOW) == {}


def test_a_purchase_says_which_of_its_nodes_each_pod_is_put_on() -> None:
    """Two pods that fill a node each get one each, by number."""
    [buy] = homed(pods(2, gpus=8)).buys
    assert (buy.count, sorted(buy.homes)) == (2, [0, 1])


def test_no_number_where_nodes_are_open() -> None:
    """Without homes a purchase says nothing of where its pods go."""
    [buy] = plan(pods(2, gpus=8)).buys
    assert buy.homes == ()


def test_pods_of_open_nodes_are_given_none() -> None:
    """In a plan that buys nodes of both kinds only pods of those that are born closed are numbered."""
    made = homed((*pods(2), pod("large", gpus=8)))
    assert {buy.pool: buy.homes for buy in made.buys} == {"t4": (), "a100": (0,)}
    waits = pod("p")
    entry = msgspec.structs.replace(in_flight(T4, [waits]), homes=())
    later = homed([waits], booting={"t4": 1}, memory=Memory(in_flight=(entry,)))
    assert (given_homes(later), bought(later)) == ({}, {})


def test_a_new_node_gets_the_home_of_its_purchase() -> None:
    """A node that registers gets the home that its pod tolerates; the pod is put there and nothing is bought."""
    waits = msgspec.structs.replace(pod("p", gpus=8), homes=(HOME,))
    born = node("n", A100, ready=False, devices=(), home=NEW_HOME, idle_since=None, created_at=NOW)
    made = homed([waits], [born], memory=Memory(in_flight=(asked([waits], [0]),)))
    assert (made.homes.name, bought(made), given_homes(made)) == ({"n": HOME}, {}, {})


def test_a_pod_that_was_not_told_is_told_by_the_next_look() -> None:
    """A worker that died before it wrote the toleration leaves it to the next one."""
    waits = pod("p", gpus=8)
    made = homed([waits], booting={"a100": 1}, memory=Memory(in_flight=(asked([waits], [0]),)))
    assert (given_homes(made), bought(made)) == ({"p": HOME}, {})


def test_pods_go_to_the_nodes_of_their_numbers() -> None:
    """Of a purchase of two nodes each pod gets the toleration of its own."""
    two = pods(2, gpus=8)
    made = homed(two, booting={"a100": 2}, memory=Memory(in_flight=(asked(two, [1, 0], 2),)))
    assert given_homes(made) == {"p0": "d1-0-1", "p1": "d1-0-0"}


def test_a_node_of_no_purchase_gets_a_home_of_its_own() -> None:
    """A node that a person added is homed too, and takes whom it is given."""
    waits = pod("p", gpus=8)
    made = homed([waits], [node("n", A100, home=NEW_HOME)])
    assert (made.homes.name, given_homes(made)) == ({"n": own_home("n")}, {"p": own_home("n")})


def test_free_room_is_given_to_a_pod_that_belongs_there() -> None:
    """A lit node's room goes to a pod that may run nowhere cheaper, by that node's toleration."""
    made = homed([pod("p", terms=A100_ONLY)], [node("n", A100, used=4, home=HOME)])
    assert (given_homes(made), bought(made)) == ({"p": HOME}, {})


def test_small_work_is_not_given_a_dear_node() -> None:
    """A pod that belongs on a cheaper type gets a node there beside a dear one with room."""
    made = homed([pod("p")], [node("n", A100, used=4, home=HOME)])
    assert (given_homes(made), bought(made)) == ({}, {"t4": 1})


def test_many_small_pods_that_fill_a_dear_node_belong_there() -> None:
    """Where a home is worked out for those that wait together, eight pods get the type that costs them least."""
    cheap = msgspec.structs.replace(A100, usd_per_hour=T4.usd_per_hour * 4)
    made = homed(pods(8), offerings=(T4, cheap), rules=born_closed(cheap, of=(T4, cheap)))
    assert bought(made) == {"a100": 1}


@pytest.mark.parametrize(
    ("count", "buys"),
    [(8, {"a100": 1}), (9, {"a100": 1, "t4": 1}), (16, {"a100": 2})],
    ids=["they fill one", "one is left over", "they fill two"],
)
def test_the_last_of_many_get_what_costs_them_least(count: int, buys: dict[str, int]) -> None:
    """Pods that fill dear nodes belong there, and those left over are not bought one that they would not fill."""
    dear = msgspec.structs.replace(A100, usd_per_hour=T4.usd_per_hour * 4)
    assert bought(homed(pods(count), offerings=(T4, dear), rules=born_closed(T4, dear, of=(T4, dear)))) == buys


def test_a_pod_that_nothing_is_bought_for_gets_any_room_that_it_fits() -> None:
    """At a cap small work is given a dear node's free room: nobody is locked out."""
    rules = born_closed(V100X4, A100, caps=Caps(nodes=1))
    made = homed([pod("p")], [node("n", A100, used=4, home=HOME)], rules=rules)
    assert given_homes(made) == {"p": HOME}


def test_room_that_another_was_given_is_not_given_again() -> None:
    """A pod that has the toleration of a node holds its room there until it is bound."""
    owner = msgspec.structs.replace(pod("owner", gpus=8), homes=(HOME,))
    made = homed([owner, pod("late", gpus=8)], [node("n", A100, home=HOME)])
    assert (given_homes(made), bought(made)) == ({}, {"a100": 1})


def test_a_home_that_its_pod_does_not_take_is_free_for_others() -> None:
    """Once the scheduler is known not to bind a pod there, the node is given to the next that fits."""
    owner = msgspec.structs.replace(pod("owner", gpus=8, cpu_milli=1000), homes=(HOME,))
    misfit = FitMismatch(shape=owner.shape.key, node="n", pool="a100", until=NOW + timedelta(hours=1), why="a port")
    late = pod("late", gpus=8)
    made = homed([owner, late], [node("n", A100, home=HOME)], memory=Memory(misfits=(misfit,)))
    assert given_homes(made)["late"] == HOME


def test_a_gang_gets_all_its_homes() -> None:
    """Each pod of a gang is put on a node of its own of the gang's purchase."""
    [buy] = homed(gang("g", 2)).buys
    assert sorted(zip(buy.demands, buy.homes, strict=True)) == [("uid-g-0", 0), ("uid-g-1", 1)]


OPENS: dict[str, tuple[Node, Brakes]] = {
    "all is paused": (node("n", A100, home=HOME), msgspec.structs.replace(ACTS, paused={ALL: "by hand"})),
    "its pool is paused": (node("n", A100, home=HOME), msgspec.structs.replace(ACTS, paused={"a100": "by hand"})),
    "its pool is only advised on": (node("n", A100, home=HOME), Brakes(modes={"a100": "advise"})),
    "a DaemonSet cannot come to it": (node("n", A100, home=NEW_HOME, unserved=("gpu-monitor",)), ACTS),
    "every pod is at home on it": (node("n", T4, home=HOME), ACTS),
    "its taint is none that our toleration bears": (node("n", A100, home=ODD_HOME), ACTS),
}


@pytest.mark.parametrize(("lit", "brakes"), OPENS.values(), ids=OPENS.keys())
def test_a_node_is_opened_where(lit: Node, brakes: Brakes) -> None:
    """Nodes that we may not or need not keep closed are opened, and get no home."""
    made = homed((), [lit], brakes=brakes).homes
    assert (made.open, made.name) == (("n",), {})


TAKES = {
    "every taint": ((Toleration(operator="Exists"),), ()),
    "every home": ((), ("*",)),
}


@pytest.mark.parametrize(("tolerations", "homes"), TAKES.values(), ids=TAKES.keys())
def test_a_pod_that_takes_any_home_is_told(tolerations: tuple[Toleration, ...], homes: tuple[str, ...]) -> None:
    """A GPU pod that tolerates whatever there is may take any node's room: a finding says what to name instead."""
    greedy = msgspec.structs.replace(pod("p", tolerations=tolerations), homes=homes)
    assert "takes-homes" in {found.code for found in homed([greedy]).findings}


KEEPS_OFF = {
    "taints that evict alone": (Toleration(operator="Exists", effect="NoExecute"),),
    "one taint": (Toleration(key="nvidia.com/gpu", operator="Exists"),),
}


@pytest.mark.parametrize("tolerations", KEEPS_OFF.values(), ids=KEEPS_OFF.keys())
def test_a_pod_that_homes_keep_off_is_no_finding(tolerations: tuple[Toleration, ...]) -> None:
    """What tolerates other taints, or another effect, takes nobody's room."""
    assert homed([pod("p", tolerations=tolerations)]).findings == ()


def test_a_pod_that_was_made_with_a_home_is_told() -> None:
    """A toleration that was there before any look could give it is a tenant's own."""
    thief = msgspec.structs.replace(pod("p"), homes=(HOME,), created_at=NOW)
    seen = Memory(counted_to=NOW - timedelta(minutes=1))
    assert "takes-homes" in {found.code for found in homed([thief], memory=seen).findings}
    assert homed([thief], memory=Memory(counted_to=NOW)).findings == ()


@given(
    sizes=st.lists(st.sampled_from((1, 2, 4, 8)), min_size=1, max_size=12),
    lit=st.lists(st.sampled_from((0, 2, 4, 8)), max_size=4),
    order=st.randoms(use_true_random=False),
)
def test_every_pod_that_is_placed_has_one_way_to_its_node(
    sizes: list[int], lit: list[int], order: random.Random
) -> None:
    """Whatever waits, in whatever order, a pod gets the toleration of one node or the number of one that is bought,
    and no node is given to more than it holds.
    """
    waiting = [pod(f"p{n}", gpus=size, terms=A100_ONLY) for n, size in enumerate(sizes)]
    nodes = [node(f"n{n}", A100, used=used, home=f"h{n}") for n, used in enumerate(lit)]
    made = homed(waiting, nodes)
    order.shuffle(waiting)
    assert homed(waiting, nodes).homes == made.homes
    bought_for = {uid: (buy.offering, n) for buy in made.buys for uid, n in zip(buy.demands, buy.homes, strict=True)}
    told = {one.uid: one.home for one in made.homes.tolerate}
    assert sorted([*told, *bought_for]) == sorted(p.uid for p in waiting)
    size_of = {p.uid: p.shape.gpu.count for p in waiting}
    for home, used in ((f"h{n}", used) for n, used in enumerate(lit)):
        assert sum(size_of[uid] for uid, to in told.items() if to == home) <= 8 - used
    for new in set(bought_for.values()):
        assert sum(size_of[uid] for uid, to in bought_for.items() if to == new) <= 8


@pytest.mark.parametrize(("limited", "opens"), [(True, ()), (None, ()), (False, ("n",))])
def test_homes_are_refused_where_nothing_limits_us(limited: bool | None, opens: tuple[str, ...]) -> None:
    """Where our account may change more of pods than their homes nodes are opened; what is not known opens none."""
    view = ClusterView(nodes=(node("n", A100, home=HOME),), limited=limited)
    look = Look(
        view, [PoolState(name="a100", desired=1)], FLEET, HOMED, Memory(), NOW, brakes=ACTS, throughput=SAME_SPEED
    )
    assert plan_cluster(look).homes.open == opens


def test_a_pod_whose_room_was_taken_goes_to_its_other_home() -> None:
    """A pod that tolerates two nodes, the first of which others filled, keeps its room on the second."""
    other = msgspec.structs.replace(pod("p", gpus=8), homes=("h-full", HOME))
    nodes = [node("full", A100, used=4, home="h-full"), node("free", A100, home=HOME)]
    made = homed([pod("a", gpus=8, priority=9), other], nodes)
    assert bought(made) == {"a100": 1}
    [kept] = [group for group in made.pods if "uid-p" in group.uids]
    assert (kept.verdict, kept.where) == ("fits", "free")


def test_queued_work_without_pods_is_given_no_toleration() -> None:
    """Pods that Kueue's work will make once it is let in are planned for, and there is nothing to write to yet."""
    lit, waits = node("n", A100, home=HOME), pod("p", gpus=8)
    sets = (QueuedSet(name="main", uids=(waits.uid,)),)
    queued = Queued(namespace="ml", name="w", version="1", check="dollars", sets=sets)
    view = ClusterView(pending=(waits,), nodes=(lit,), queued=(queued,))
    states = [PoolState(name="a100", desired=1)]
    made = plan_cluster(Look(view, states, FLEET, HOMED, Memory(), NOW, brakes=ACTS, throughput=SAME_SPEED))
    assert ([group.verdict for group in made.pods], made.homes.tolerate) == (["fits"], ())
