"""Where pods belong: on the types that cost them least; who is planned elsewhere where nothing else is left."""

from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import A100, FLEET, NOW, V100X4, bought, node, offering, plan, pod, policy

from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Plan
from pilotlight.facts.labels import GPU_MODEL, ZONE
from pilotlight.facts.limits.brakes import Brakes
from pilotlight.facts.memory import Backoff, Memory
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.place.pod_verdicts import NOT_HELPED
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Requirement

A100_ONLY = ((Requirement(key=GPU_MODEL, operator="In", values=("A100",)),),)
HOME = "d1-0-0"


def closing(rules: Policy, *offerings: Offering) -> Policy:
    """The policy with the nodes of these pools born closed."""
    tainted = {o.pool: msgspec.structs.replace(rules.pools[o.pool], taints=(BIRTH_TAINT,)) for o in offerings}
    return msgspec.structs.replace(rules, pools=rules.pools | tainted)


HOMED = closing(policy(), V100X4, A100)
ACTS = Brakes(modes=dict.fromkeys(HOMED.pools, "act"))


def given_homes(made: Plan) -> dict[str, str]:
    """The toleration that a plan gives to each pod, by name."""
    return {one.pod: one.home for one in made.homes.tolerate}


def test_small_work_is_not_planned_on_a_dear_node() -> None:
    """A one-GPU pod is bought its own T4 beside an idle A100 node with a home; where nodes are open it joins."""
    made = plan([pod("p")], [node("n", A100, home=HOME)], rules=HOMED, brakes=ACTS)
    assert (bought(made), given_homes(made)) == ({"t4": 1}, {})
    assert bought(plan([pod("p")], [node("n", A100)])) == {}


def test_no_policy_no_homes() -> None:
    """Without homes in the policy nobody is given any, and the nodes that have one are opened."""
    rules = msgspec.structs.replace(HOMED, placement="none")
    made = plan([pod("p")], [node("a", A100), node("b", A100, home=HOME)], rules=rules, brakes=ACTS)
    assert (made.homes.open, made.homes.name, bought(made)) == (("b",), {}, {})


def test_homes_are_where_the_policy_says_nothing() -> None:
    """Homes are the placement of a policy that names none; without the birth taint no pool is homed."""
    assert policy().placement == "homes"
    assert [sorted(rules.homed) for rules in (policy(), HOMED)] == [[], ["a100", "v100x4"]]


@pytest.mark.parametrize(
    "change", [{"effect": "NoExecute"}, {"effect": "PreferNoSchedule"}, {"value": "mine"}], ids=str
)
def test_another_taint_of_our_key_homes_no_pool(change: dict[str, str]) -> None:
    """Pods are given a toleration that bears the birth taint alone: no other makes a pool homed."""
    rules = policy()
    other = msgspec.structs.replace(rules.pools["a100"], taints=(msgspec.structs.replace(BIRTH_TAINT, **change),))
    assert msgspec.structs.replace(rules, pools={**rules.pools, "a100": other}).homed == frozenset()


def test_types_of_equal_price_a_gpu_are_open_to_each_other() -> None:
    """A small pod may take a free GPU of a large node of its model where that costs no more a GPU."""
    one, four = offering("v1", "V100", 1, "3"), offering("v4", "V100", 4, "12")
    rules = closing(policy([one, four, A100]), four, A100)
    lit = [node("big", four, used=2, home="h4"), node("huge", A100, home="h8")]
    made = plan([pod("p")], lit, offerings=[one, four, A100], rules=rules)
    assert (bought(made), given_homes(made)) == ({}, {"p": "h4"})


UNHELPED = {
    "a cap": {"rules": closing(policy(caps=Caps(nodes=1)), A100)},
    "a pool that is full": {
        "rules": closing(
            policy(
                pools={
                    "t4": PoolPolicy(instance_type="T4x1", max=0),
                    "a100": PoolPolicy(instance_type="A100x8"),
                },
                caps=Caps(gpus=8),
            ),
            A100,
        )
    },
    "a pause of the pool to buy from": {"brakes": msgspec.structs.replace(ACTS, paused={"t4": "by hand"})},
}


@pytest.mark.parametrize("held", UNHELPED.values(), ids=UNHELPED.keys())
def test_who_is_not_bought_for_is_given_what_it_fits(held: dict[str, object]) -> None:
    """A pod for which nothing may be bought is kept out of nothing: it gets the toleration of the dear node."""
    made = plan([pod("p")], [node("n", A100, home=HOME)], **{"rules": HOMED, "brakes": ACTS, **held})  # type: ignore[arg-type]
    assert (bought(made), given_homes(made)) == ({}, {"p": HOME})


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


@given(drawn_pods, drawn_nodes, st.integers(0, 6))
def test_nobody_is_kept_out(
    asked: list[tuple[int, int, tuple[tuple[Requirement, ...], ...]]],
    lit: list[tuple[Offering, int, bool, bool]],
    cap: int,
) -> None:
    """After any look each pod that waits is bought for, has room on its way, or may get onto the node that it is
    planned on; and while nothing is bought for one, no node with a home that it fits is free of others.
    """
    waiting = [pod(f"p{n}", gpus, milli, terms=terms) for n, (gpus, milli, terms) in enumerate(asked)]
    nodes = [
        node(f"n{n}", of, used=min(used, of.gpus), home=f"h{n}" if shut else "", unserved=("x",) if lacks else ())
        for n, (of, used, shut, lacks) in enumerate(lit)
    ]
    rules = closing(policy(caps=Caps(nodes=cap)), V100X4, A100)
    made = plan(waiting, nodes, rules=rules, brakes=ACTS)
    kept = {n.name: n.home for n in nodes if n.home and n.name not in made.homes.open}
    told = {(one.uid, one.home) for one in made.homes.tolerate}
    for group in made.pods:
        if group.verdict == "fits" and group.where in kept:
            assert {(uid, kept[group.where]) for uid in group.uids} <= told
        if group.verdict in NOT_HELPED:
            [alone, *_] = [p for p in waiting if p.uid in group.uids]
            free = [n for n in nodes if n.name in kept and n.home not in {home for _, home in told}]
            assert not [n.name for n in free if plan([alone], [n], rules=rules).pods[0].verdict == "fits"]
    demanded = {uid for buy in made.buys for uid in buy.demands}
    assert not demanded & {uid for g in made.pods if g.verdict == "fits" for uid in g.uids}


ZONED = tuple(offering("t4", "T4", 1, "1", zone=zone, capacity_type="spot", labels={ZONE: zone}) for zone in "ab")
DEAR = offering("a100", "A100", 8, "32", capacity_type="spot")
SOLD = (*ZONED, DEAR)


def zoned(worth: int | str) -> Policy:
    """A policy of spot, with a dear pool whose nodes are born closed, and what waiting is worth."""
    classes = {"batch": ClassPolicy(capacity_types=("spot",), gpu_models="any")}
    return closing(policy(SOLD, value_of_wait=Decimal(worth), classes=classes), DEAR)


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
    waits = pod("p", workload_class="batch", checkpoint_s=600.0)
    dear = node("n", DEAR, home=HOME)
    made = plan([waits], [dear], offerings=SOLD, rules=zoned(9999), memory=Memory(backoffs=shorts), brakes=ACTS)
    assert bought(made) == buys


@pytest.mark.parametrize(
    ("worth", "verdict", "code", "homes"),
    [
        pytest.param("0.01", "waiting", "zone", {}, id="minutes cost less than an hour of a dear node: it waits"),
        pytest.param("9999", "fits", "", {"p": HOME}, id="waiting is worth more: it is let in"),
    ],
)
def test_small_work_whose_zones_are_all_short(worth: str, verdict: str, code: str, homes: dict[str, str]) -> None:
    """A dear node is given to it only where that costs less than to wait for one of its zones."""
    shorts = tuple(
        Backoff(offering=o.name, until=NOW + timedelta(minutes=2), why="out of stock", short_since=NOW) for o in ZONED
    )
    dear = node("n", DEAR, home=HOME)
    waits = pod("p", workload_class="batch", checkpoint_s=600.0)
    made = plan([waits], [dear], offerings=SOLD, rules=zoned(worth), memory=Memory(backoffs=shorts), brakes=ACTS)
    assert (made.pods[0].verdict, made.pods[0].code, given_homes(made)) == (verdict, code, homes)
