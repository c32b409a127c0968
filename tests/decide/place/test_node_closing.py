"""Which nodes are closed to pods that belong on a cheaper type, which are opened for whom; nobody is locked out."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import A100, FLEET, NOW, T4, V100X4, bought, gang, in_flight, node, offering, plan, pod, pods, policy

from pilotlight.decide.place.node_closing import OPEN_S, count_openings
from pilotlight.facts.capacity import Node
from pilotlight.facts.cluster_view import ClusterView
from pilotlight.facts.decisions import Plan
from pilotlight.facts.labels import GPU_MODEL, ZONE
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.memory import Backoff, Memory
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.place.closed_nodes import Opening
from pilotlight.facts.place.pod_verdicts import NOT_HELPED
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import PodDemand, Requirement

STEERED = policy(placement="taint")
STRAYS = Memory(strays={"v100x4": NOW, "a100": NOW})
"""Small work that may use any GPU was seen of late."""
ACTS = Brakes(modes=dict.fromkeys(STEERED.pools, "act"))
A100_ONLY = ((Requirement(key=GPU_MODEL, operator="In", values=("A100",)),),)


def steered(pending: Sequence[PodDemand] = (), nodes: Sequence[Node] = (), **options: object) -> Plan:
    """A plan of a cluster whose nodes may be closed, where small work was seen."""
    return plan(pending, nodes, **{"rules": STEERED, "memory": STRAYS, "brakes": ACTS, **options})  # type: ignore[arg-type]


CLOSED: dict[str, tuple[Node, Brakes, tuple[str, ...]]] = {
    "a dear node that small work could use": (node("n", A100), ACTS, ("n",)),
    "one at work, for what is left of it": (node("n", A100, used=2), ACTS, ("n",)),
    "not the cheapest type": (node("n", T4), ACTS, ()),
    "not one that is not ready": (node("n", A100, ready=False, devices=()), ACTS, ()),
    "not one that lacks a DaemonSet's pod": (node("n", A100, unserved=("gpu-monitor",)), ACTS, ()),
    "not one that somebody cordoned": (node("n", A100, schedulable=False), ACTS, ()),
    "not one that is closed already": (node("n", A100, closed=True), ACTS, ()),
    "not in a pool that is only advised on": (node("n", A100), Brakes(modes={"a100": "advise"}), ()),
    "not while all is paused": (node("n", A100), msgspec.structs.replace(ACTS, paused={ALL: "by hand"}), ()),
    "not in a pool that is paused": (node("n", A100), msgspec.structs.replace(ACTS, paused={"a100": "by hand"}), ()),
}


@pytest.mark.parametrize(("lit", "brakes", "closes"), CLOSED.values(), ids=CLOSED.keys())
def test_which_ready_nodes_are_closed(lit: Node, brakes: Brakes, closes: tuple[str, ...]) -> None:
    """Those of act pools for which small work has a cheaper home, once they are whole."""
    assert steered((), [lit], brakes=brakes).placement.close == closes


OPENED: dict[str, tuple[Node, Brakes]] = {
    "all is paused": (node("n", A100, closed=True), msgspec.structs.replace(ACTS, paused={ALL: "by hand"})),
    "its pool is paused": (node("n", A100, closed=True), msgspec.structs.replace(ACTS, paused={"a100": "by hand"})),
    "its pool is only advised on": (node("n", A100, closed=True), Brakes(modes={"a100": "advise"})),
    "a DaemonSet has no pod on it": (node("n", A100, closed=True, unserved=("gpu-monitor",)), ACTS),
    "no other type is cheaper for anybody": (node("n", T4, closed=True), ACTS),
}


@pytest.mark.parametrize(("lit", "brakes"), OPENED.values(), ids=OPENED.keys())
def test_a_closed_node_is_opened_for_all(lit: Node, brakes: Brakes) -> None:
    """Where we may not or need not close it, or a DaemonSet would not get its pod onto it."""
    assert steered((), [lit], brakes=brakes).placement.open == ("n",)
    for_one = pod("p", terms=((Requirement(key=GPU_MODEL, operator="In", values=(lit.labels[GPU_MODEL],)),),))
    placed = steered([for_one], [lit], brakes=brakes).placement
    assert (placed.open, placed.openings) == (("n",), {}), "nobody closes it behind a pod"


def test_no_policy_no_doors() -> None:
    """Without placement by taint nothing is closed, and what was closed is opened."""
    made = plan((), [node("a", A100), node("b", A100, closed=True)], memory=STRAYS, brakes=ACTS)
    assert (made.placement.close, made.placement.open) == ((), ("b",))


def test_a_node_stays_open_until_small_work_was_seen() -> None:
    """Where every pod belongs on V100 or better, V100 nodes are open to all; the first small one closes them."""
    large = pod("large", 4)
    lit = [node("n", V100X4)]
    assert steered([large], lit, memory=Memory()).placement.close == ()
    small = steered([pod("small")], [*lit, node("busy", T4, used=1)], memory=Memory())
    assert small.placement.strays == {"v100x4": NOW, "a100": NOW}
    week_later = NOW + timedelta(days=8)
    assert steered([large], lit, now=week_later).placement.strays == {"a100": week_later}


def test_small_work_is_not_planned_on_a_dear_node() -> None:
    """A one-GPU pod is bought its own T4 beside an idle A100 node that is closed; where nothing is closed it joins."""
    lit = [node("n", A100, closed=True)]
    made = steered([pod("p")], lit)
    assert bought(made) == {"t4": 1}
    assert made.placement.open == ()
    assert bought(plan([pod("p")], [node("n", A100)])) == {}


def test_a_closed_node_is_opened_for_whom_it_is() -> None:
    """A pod that belongs on a closed node is not bought for: it is opened for it, for so long at most."""
    wanted = pod("p", terms=A100_ONLY)
    made = steered([wanted], [node("n", A100, closed=True), node("m", A100, closed=True, used=8)])
    assert bought(made) == {}
    assert made.placement.open == ("n",)
    assert made.placement.openings == {"n": Opening(pods=(wanted.uid,), until=NOW + timedelta(seconds=OPEN_S))}


def test_an_opening_is_not_stretched() -> None:
    """While the same pod waits, its opening ends when it was to end; for another pod it begins anew."""
    wanted, other = pods(2, terms=A100_ONLY)
    ends = NOW + timedelta(seconds=4)
    memory = msgspec.structs.replace(STRAYS, openings={"n": Opening(pods=(wanted.uid,), until=ends)})
    lit = [node("n", A100)]
    assert steered([wanted], lit, memory=memory).placement.openings["n"].until == ends
    assert steered([other], lit, memory=memory).placement.openings["n"].until == NOW + timedelta(seconds=OPEN_S)


def test_types_of_equal_price_a_gpu_are_open_to_each_other() -> None:
    """A small pod may take a free GPU of a large node of its model where that costs no more a GPU."""
    one, four = offering("v1", "V100", 1, "3"), offering("v4", "V100", 4, "12")
    rules = policy([one, four, A100], placement="taint")
    seen = Memory(strays={"a100": NOW})
    lit = [node("big", four, used=2), node("huge", A100)]
    made = plan([pod("p")], lit, offerings=[one, four, A100], rules=rules, memory=seen)
    assert (bought(made), made.placement.close) == ({}, ("huge",))


def test_a_gangs_nodes_open_together() -> None:
    """While one of a gang's nodes still boots none is opened for it; when the last is ready all are."""
    members = gang("g", 2)
    flights = (in_flight(A100, members[1:]),)
    first = node("a", A100, closed=True)
    early = steered(members, [first], booting={"a100": 1}, memory=msgspec.structs.replace(STRAYS, in_flight=flights))
    assert early.placement.open == ()
    late = steered(members, [first, node("b", A100, closed=True)])
    assert (late.placement.open, bought(late)) == (("a", "b"), {})


def test_who_lost_twice_is_bought_for() -> None:
    """Two openings that others took, or that nobody could use, are enough: then a node of its own is bought."""
    wanted = pod("p", terms=A100_ONLY)
    lit = [node("n", A100, closed=True)]
    memory, times = STRAYS, []
    for look in range(3):
        now = NOW + timedelta(seconds=20 * look)
        memory = count_openings(memory, ClusterView(pending=(wanted,), nodes=tuple(lit)), now)
        made = steered([wanted], lit, memory=memory, now=now)
        memory = msgspec.structs.replace(memory, openings=made.placement.openings)
        times.append((memory.lost.get(wanted.uid, 0), bought(made), made.placement.open))
    assert times == [(0, {}, ("n",)), (1, {}, ("n",)), (2, {"a100": 1}, ())]


def test_an_opening_that_another_would_take_is_not_made() -> None:
    """Where a small pod has waited longer and fits, it would have the room first: the owner is bought for at once."""
    owner, small = pod("owner", terms=A100_ONLY), pod("small")
    older = msgspec.structs.replace(small, created_at=NOW - timedelta(seconds=60))
    lit = [node("n", A100, closed=True)]
    flight = msgspec.structs.replace(STRAYS, in_flight=(in_flight(T4, [older]),))
    made = steered([owner, older], lit, memory=flight, booting={"t4": 1})
    assert (bought(made), made.placement.open) == ({"a100": 1}, ())
    younger = msgspec.structs.replace(small, created_at=NOW + timedelta(seconds=1))
    made = steered([owner, younger], lit, memory=flight, booting={"t4": 1})
    assert (bought(made), made.placement.open) == ({}, ("n",))


def test_room_that_is_gone_is_lost_at_once() -> None:
    """An opening whose node has no room left is not waited for; one whose pod was bound is nobody's loss."""
    wanted, other = pod("p", terms=A100_ONLY), pod("o", terms=A100_ONLY)
    until = NOW + timedelta(seconds=9)
    openings = {n: Opening(pods=(p.uid,), until=until) for n, p in (("full", wanted), ("free", other), ("gone", other))}
    lit = (node("full", A100, used=8), node("free", A100))
    after = count_openings(Memory(openings=openings), ClusterView(pending=(wanted,), nodes=lit), NOW)
    assert (after.lost, after.openings) == ({wanted.uid: 1}, {})


UNHELPED = {
    "a cap": {"rules": policy(placement="taint", caps=Caps(nodes=1))},
    "a pool that is full": {
        "rules": policy(placement="taint", pools={"t4": PoolPolicy(instance_type="T4x1", max=0)}, caps=Caps(gpus=8))
    },
    "a pause of the pool to buy from": {"brakes": msgspec.structs.replace(ACTS, paused={"t4": "by hand"})},
}


@pytest.mark.parametrize("held", UNHELPED.values(), ids=UNHELPED.keys())
def test_who_is_not_bought_for_opens_what_it_fits(held: dict[str, object]) -> None:
    """A pod for which nothing may be bought is locked out of nothing: the dear node is open as long as it waits."""
    small = pod("p")
    made = steered([small], [node("n", A100, closed=True)], **held)
    assert bought(made) == {}
    assert made.placement.open == ("n",)
    still = steered([small], [node("n", A100)], **held)
    assert still.placement.close == ()


drawn_pods = st.lists(
    st.builds(
        lambda gpus, milli, dear: (gpus, 1000 if gpus > 1 else milli, A100_ONLY if dear else ()),
        st.sampled_from([1, 1, 2, 4, 8]),
        st.sampled_from([1000, 500]),
        st.booleans(),
    ),
    max_size=5,
)
drawn_nodes = st.lists(st.tuples(st.sampled_from(FLEET), st.integers(0, 8), st.booleans(), st.booleans()), max_size=5)


@given(drawn_pods, drawn_nodes, st.integers(0, 6), st.dictionaries(st.integers(0, 4), st.integers(1, 3), max_size=3))
def test_nobody_is_locked_out(
    asked: list[tuple[int, int, tuple[tuple[Requirement, ...], ...]]],
    lit: list[tuple[object, int, bool, bool]],
    cap: int,
    lost: dict[int, int],
) -> None:
    """After any look each pod that waits is bought for, has room on its way, or fits a node that is open to it; and a
    node that is closed is room: for nobody that is planned on it is anything bought.
    """
    waiting = [pod(f"p{n}", gpus, milli, terms=terms) for n, (gpus, milli, terms) in enumerate(asked)]
    nodes = [
        node(f"n{n}", of, used=min(used, of.gpus), closed=shut, unserved=("x",) if lacks else ())  # type: ignore[attr-defined, arg-type]
        for n, (of, used, shut, lacks) in enumerate(lit)
    ]
    memory = msgspec.structs.replace(STRAYS, lost={f"uid-p{n}": times for n, times in lost.items()})
    made = steered(waiting, nodes, rules=policy(placement="taint", caps=Caps(nodes=cap)), memory=memory)
    shut_after = {n.name for n in nodes if n.closed} - set(made.placement.open) | set(made.placement.close)
    for group in made.pods:
        if group.verdict == "fits":
            assert group.where not in shut_after
        if group.verdict in NOT_HELPED:
            alone = [p for p in waiting if p.uid in group.uids]
            fits = {n.name for n in nodes if n.name in shut_after and plan(alone[:1], [n]).pods[0].verdict == "fits"}
            assert not fits
    demanded = {uid for buy in made.buys for uid in buy.demands}
    assert not demanded & {uid for g in made.pods if g.verdict == "fits" for uid in g.uids}


ZONED = tuple(offering("t4", "T4", 1, "1", zone=zone, capacity_type="spot", labels={ZONE: zone}) for zone in "ab")
DEAR = offering("a100", "A100", 8, "32", capacity_type="spot")
SOLD = (*ZONED, DEAR)


@pytest.mark.parametrize(
    ("asked_s", "buys"), [(60.0, {"t4": 1}), (10.0, {})], ids=["asked a minute ago: again", "asked just now: not again"]
)
def test_small_work_asks_its_zones_again_before_it_goes_to_a_dear_node(asked_s: float, buys: dict[str, int]) -> None:
    """However much its waiting is worth: a zone that was refused half a minute ago may be back, and costs nothing."""
    shorts = tuple(
        Backoff(
            offering=o.name,
            until=NOW + timedelta(minutes=2),
            why="out of stock",
            short_since=NOW - timedelta(hours=1),
            at=NOW - timedelta(seconds=asked_s),
        )
        for o in ZONED
    )
    classes = {"batch": ClassPolicy(capacity_types=("spot",), gpu_models="any")}
    rules = policy(SOLD, placement="taint", value_of_wait=Decimal(9999), classes=classes)
    memory = Memory(strays={"a100": NOW}, backoffs=shorts)
    waits = pod("p", workload_class="batch", checkpoint_s=600.0)
    made = plan([waits], [node("n", DEAR, closed=True)], offerings=SOLD, rules=rules, memory=memory, brakes=ACTS)
    assert bought(made) == buys


@pytest.mark.parametrize(
    ("worth", "verdict", "code", "opens"),
    [
        pytest.param("0.01", "waiting", "zone", (), id="minutes cost less than an hour of a dear node: it waits"),
        pytest.param("9999", "fits", "", ("n",), id="waiting is worth more: it is let in"),
    ],
)
def test_small_work_whose_zones_are_all_short(worth: str, verdict: str, code: str, opens: tuple[str, ...]) -> None:
    """A closed node is opened for it only where that costs less than to wait for one of its zones."""
    shorts = tuple(
        Backoff(offering=o.name, until=NOW + timedelta(minutes=2), why="out of stock", short_since=NOW) for o in ZONED
    )
    classes = {"batch": ClassPolicy(capacity_types=("spot",), gpu_models="any")}
    rules = policy(SOLD, placement="taint", value_of_wait=Decimal(worth), classes=classes)
    memory = Memory(strays={"a100": NOW}, backoffs=shorts)
    dear = node("n", DEAR, closed=True)
    waits = pod("p", workload_class="batch", checkpoint_s=600.0)
    made = plan([waits], [dear], offerings=SOLD, rules=rules, memory=memory, brakes=ACTS)
    assert (made.pods[0].verdict, made.pods[0].code, made.placement.open) == (verdict, code, opens)
