"""Limits of Karpenter's NodePools: dollars among pools in whole nodes, what Karpenter counts, and what it must not."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotlight.decide.money.budget_limits import terms
from pilotlight.decide.money.karpenter_gate import (
    DISRUPTED,
    Count,
    PoolShare,
    as_in_pool,
    count_gpus,
    further_nodes,
    open_nodes,
    refusal,
    split,
)
from pilotlight.facts.capacity import Node, Offering, Taint
from pilotlight.facts.money.gates import GateClaim, GateState, Surge
from pilotlight.facts.policy import DEFAULT_CLASSES, Claims, ClassPolicy, Policy, PoolPolicy

NOW = datetime(2026, 11, 28, 8, 0, tzinfo=UTC)
RULES = PoolPolicy(cluster_pool="karpenter:gpu", instance_type="p4d", max=10)
OFFER = Offering(
    pool="gpu", instance_type="p4d", capacity_type="on-demand", gpu_model="A100", gpus=8, usd_per_hour=Decimal(32)
)

dollars = st.decimals(min_value=0, max_value=10_000, places=2)
prices = st.decimals(min_value="0.01", max_value=500, places=2)


@st.composite
def sharing(draw: Any) -> tuple[list[PoolShare], dict[str, Decimal]]:
    """Some pools, each counted by some of the meters, and what those have left."""
    meters = draw(st.lists(st.sampled_from("abc"), unique=True, min_size=1))
    shares = [
        PoolShare(f"p{n}", draw(st.integers(1, 100)), draw(st.lists(st.integers(1, 2), max_size=12)), each)
        for n, each in enumerate(draw(st.lists(st.dictionaries(st.sampled_from(meters), prices), max_size=4)))
    ]
    return shares, {meter: draw(dollars) for meter in meters}


@given(sharing())
def test_no_split_passes_any_budget(given_: tuple[list[PoolShare], dict[str, Decimal]]) -> None:
    """Whatever the weights and prices, nodes of all pools cost each meter no more than it has; none passes its most."""
    shares, free = given_
    found = split(shares, free)
    for meter, left in free.items():
        cost = sum((sum(s.takes[: found[s.pool]]) * s.each.get(meter, Decimal(0)) for s in shares), Decimal(0))
        assert cost <= left
    assert all(0 <= found[s.pool] <= len(s.takes) for s in shares)


@given(sharing(), st.sampled_from("abc"), dollars)
def test_more_dollars_are_never_fewer_nodes(
    given_: tuple[list[PoolShare], dict[str, Decimal]], meter: str, more: Decimal
) -> None:
    """A budget that is raised takes no node from any pool."""
    shares, free = given_
    richer = {**free, **({meter: free[meter] + more} if meter in free else {})}
    before, after = split(shares, free), split(shares, richer)
    assert all(before[pool] <= after[pool] for pool in before)


@given(sharing())
def test_the_order_of_pools_changes_no_split(given_: tuple[list[PoolShare], dict[str, Decimal]]) -> None:
    """Pools in another order get the same."""
    shares, free = given_
    assert split(shares, free) == split(shares[::-1], free)


SPLITS = [
    ("one pool gets what fits, in whole nodes", [("a", 1, 9, "30")], "100", {"a": 3}),
    ("nothing left closes it", [("a", 1, 9, "30")], "29.99", {"a": 0}),
    ("a budget that is passed closes it", [("a", 1, 9, "30")], "-5", {"a": 0}),
    ("its most bounds it", [("a", 1, 2, "30")], "1000", {"a": 2}),
    ("equal weights are equal dollars", [("a", 1, 99, "10"), ("b", 1, 99, "20")], "80", {"a": 4, "b": 2}),
    ("three times the weight, three times the dollars", [("a", 3, 9, "10"), ("b", 1, 9, "10")], "80", {"a": 6, "b": 2}),
    ("a full pool leaves the rest to the other", [("a", 1, 1, "10"), ("b", 1, 99, "10")], "80", {"a": 1, "b": 7}),
]  # fmt: skip


@pytest.mark.parametrize(("shares", "free", "nodes"), [s[1:] for s in SPLITS], ids=[s[0] for s in SPLITS])
def test_splits(shares: list[tuple[str, int, int, str]], free: str, nodes: dict[str, int]) -> None:
    """Dollars of one budget among its pools."""
    asks = [PoolShare(pool, weight, [1] * most, {"m": Decimal(each)}) for pool, weight, most, each in shares]
    assert split(asks, {"m": Decimal(free)}) == nodes


def _node(name: str, gpus: int = 8, **traits: Any) -> Node:
    return Node(
        name=name, pool="gpu", instance_type="p4d", capacity_type="on-demand", created_at=NOW, ready=True,
        devices=(1000,) * gpus, **traits,
    )  # fmt: skip


def _claim(name: str, **traits: Any) -> GateClaim:
    return GateClaim(name=name, **{"gpus": 8, "node": name, **traits})


INIT: dict[str, Any] = {"labels": {"karpenter.sh/initialized": "true"}}
COUNTS = [
    ("a node that is there is counted, and its budget holds it", [_claim("n")], [_node("n")], 0, Count(8, 0)),
    ("a claim without a node is counted, and nobody holds for it", [_claim("n")], [], 0, Count(8, 1)),
    ("a claim that is not launched is not counted", [_claim("n", gpus=None, node="")], [], 0, Count(0, 1)),
    ("one that drains is not counted; its node is held", [_claim("n", going=True)], [_node("n")], 0, Count(0, 0)),
    ("one that drains without its node may bill still", [_claim("n", going=True)], [], 0, Count(0, 1)),
    ("a node that Karpenter means to delete is not counted", [_claim("n")],
     [_node("n", taints=(Taint(key=DISRUPTED, effect="NoSchedule"),))], 0, Count(0, 0)),
    ("one that expires before the next looks is not counted", [_claim("n", ends_at=NOW + timedelta(minutes=4))],
     [_node("n")], 0, Count(0, 0)),
    ("one that expires later is", [_claim("n", ends_at=NOW + timedelta(minutes=6))], [_node("n")], 0, Count(8, 0)),
    ("replacements by drift cost beside the old node", [_claim("n"), _claim("m")],
     [_node("n"), _node("m")], 1, Count(16, 1)),
    ("no more are replaced than there are", [_claim("n")], [_node("n")], 10, Count(8, 1)),
    ("what drains is not replaced by drift", [_claim("n", going=True)], [_node("n")], 10, Count(0, 0)),
    ("GPUs that are lost open no node while they are fewer than one has",
     [_claim("n"), _claim("m")], [_node("n", 5, **INIT), _node("m", 4, **INIT)], 0, Count(16, 0)),
    ("as many as a node has do: so many are counted less",
     [_claim("n"), _claim("m")], [_node("n", 4, **INIT), _node("m", 4, **INIT)], 0, Count(8, 0)),
    ("a node that has not begun counts as its claim says", [_claim("n")], [_node("n", 0)], 0, Count(8, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("claims", "nodes", "surge", "found"), [c[1:] for c in COUNTS], ids=[c[0] for c in COUNTS])
def test_what_karpenter_counts(claims: list[GateClaim], nodes: list[Node], surge: int, found: Count) -> None:
    """GPUs that Karpenter goes on counting, and nodes that cost beside them."""
    state = GateState(nodepool="gpu", claims=tuple(claims), surges=(Surge(surge, 100),))
    assert count_gpus(state, {node.name: node for node in nodes}, NOW)[:2] == found[:2]


GOOD: dict[str, Any] = {"types": ("p4d",), "capacity_types": ("on-demand",)}
REFUSALS = [
    ("one type at one price is opened", {}, [_node("n", **INIT)], ""),
    ("a static NodePool takes no such limit", {"static": True}, [], "it is static"),
    ("a type without a price here", {"types": ("p4d", "p5")}, [], "name p4d alone"),
    ("any type at all", {"types": ()}, [], "name p4d alone"),
    ("another way of paying", {"capacity_types": ("on-demand", "spot")}, [], "name on-demand alone"),
    ("MIG or DRA: its nodes show no GPU", {}, [_node("n", 0, **INIT)], "no limit holds"),
    ("time-slicing: its nodes show replicas", {}, [_node("n", 32, **INIT)], "no limit holds"),
    ("a node that has not begun yet shows nothing", {}, [_node("n", 0)], ""),
    ("a sick GPU is no sharing", {}, [_node("n", 7, **INIT)], ""),
    ("what cannot be read", {"unread": "spec: oh"}, [], "cannot be read"),
    (
        "an overlay: its claims say fewer",
        {"claims": (GateClaim(name="c", gpus=1, type="p4d"),)},
        [],
        "NodeClaim c says 1 GPU",
    ),
    ("a claim of a type that it had before", {"claims": (GateClaim(name="c", gpus=4, type="p3"),)}, [], ""),
    ("a claim that is not launched says nothing", {"claims": (GateClaim(name="c"),)}, [], ""),
]


@pytest.mark.parametrize(("state", "nodes", "why"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS])
def test_which_nodepools_are_refused(state: dict[str, Any], nodes: list[Node], why: str) -> None:
    """A NodePool whose GPUs Karpenter counts otherwise than we, or whose price is not known, is not opened."""
    said = refusal(GateState(nodepool="gpu", **{**GOOD, **state}), RULES, OFFER, nodes)
    assert why in said if why else not said


@pytest.mark.parametrize(
    ("limit", "before", "found"), [(24, None, 0), (None, "", 0), (24, "64", 2), (20, "", 2), (8, "", 0), (0, "", 0)]
)
def test_what_a_limit_still_opens(limit: int | None, before: str | None, found: int) -> None:
    """Under a limit of ours Karpenter may light what it has not yet; a part of a node counts as one."""
    assert open_nodes(GateState(nodepool="gpu", limit=limit, before=before), Count(8, 0), 8) == found


@pytest.mark.parametrize(("cap", "found"), [(None, 9), (32, 3), (12, 0), (0, 0)])
def test_no_limit_passes_its_owners(cap: int | None, found: int) -> None:
    """The limit from before ours, and the policy's max, bound ours."""
    state = GateState(nodepool="gpu", cap=cap, claims=(_claim("n"),))
    assert len(further_nodes(state, RULES, Count(8, 0, 1), 8)) == found


REPLACED = [
    ("none at once", (Surge(0, 100),), 0, [1, 1, 1, 1]),
    ("one at once: the first brings it", (Surge(1, 100),), 0, [2, 1, 1, 1]),
    ("one at once beside one that is there", (Surge(1, 100),), 1, [1, 1, 1, 1]),
    ("a tenth, rounded up, of what drains too", (Surge(99, 10),), 8, [1, 2, 1, 1]),
    ("half of those and of what replaced them", (Surge(99, 50),), 0, [2, 2, 2, 2]),
    ("all at once", (Surge(99, 100),), 0, [2, 2, 2, 2]),
    ("the laxer of two reasons", (Surge(0, 100), Surge(2, 100)), 0, [2, 2, 1, 1]),
]


@pytest.mark.parametrize(("surges", "stay", "takes"), [r[1:] for r in REPLACED], ids=[r[0] for r in REPLACED])
def test_a_node_that_may_be_replaced_takes_its_replacement_s_dollars(
    surges: tuple[Surge, ...], stay: int, takes: list[int]
) -> None:
    """Before it is lit: once it is there, nothing would be left for both."""
    state, count = GateState(nodepool="gpu", surges=surges), Count(8 * stay, 0, stay)
    assert further_nodes(state, RULES, count, 8)[:4] == takes
    lit = replace(state, before="", limit=count.gpus + 32)
    assert open_nodes(lit, count, 8) == sum(takes)


DAY = 86_400
RUNS = [
    ("every class may come: the longest of all", {}, {}, {}, 7 * DAY),
    ("serving is for other models", {"serving": {"gpu_models": ("L4",)}}, {}, {}, DAY),
    ("serving never runs on spot, and the others do here",
     {name: {"capacity_types": ("spot",)} for name in DEFAULT_CLASSES}, {"capacity_type": "spot"}, {}, DAY),
    ("a class that falls back to on demand may come",
     {"serving": {"capacity_types": ("spot",), "fallback": "allow", "max_runtime": 9 * DAY}}, {}, {}, 9 * DAY),
    ("what needs more memory does not come", {"serving": {"min_gpu_memory": 80}}, {}, {}, DAY),
    ("no namespace may claim serving", {}, {}, {"*": ("training",), "ml": ("batch",)}, DAY),
    ("a namespace without an entry may claim anything", {}, {}, {"ml": ("batch",)}, 7 * DAY),
    ("one entry lets anything", {}, {}, {"*": None}, 7 * DAY),
    ("nobody may: then as if all might", {name: {"gpu_models": ("L4",)} for name in DEFAULT_CLASSES}, {}, {}, 7 * DAY),
]  # fmt: skip


@pytest.mark.parametrize(("classes", "offer", "claims", "run_s"), [r[1:] for r in RUNS], ids=[r[0] for r in RUNS])
def test_a_node_is_held_for_the_longest_run_that_may_come(
    classes: dict[Any, dict[str, Any]], offer: dict[str, Any], claims: dict[str, Any], run_s: int
) -> None:
    """Classes that the policy keeps off a pool say nothing of what a node of it may cost."""
    long = DEFAULT_CLASSES | {"serving": ClassPolicy(max_runtime=7 * DAY)}
    of = {name: replace(long[name], **classes.get(name, {})) for name in {"serving", *classes}}
    may = {space: Claims(classes=named) for space, named in claims.items()}
    policy = as_in_pool(Policy(version=1, pools={"gpu": RULES}, classes=of, claims=may), replace(OFFER, **offer))
    assert terms(OFFER, policy, workload_class=None, team="").run_s == run_s


def test_a_hold_goes_by_stretches_where_all_that_may_come_can_be_stopped() -> None:
    """Serving, which may not be stopped, is for other models: it keeps no hold whole here."""
    moves: dict[Any, ClassPolicy] = {
        name: ClassPolicy(may_move=("hard-cap",)) for name in DEFAULT_CLASSES if name != "serving"
    }
    policy = Policy(version=1, pools={"gpu": RULES}, classes={**moves, "serving": ClassPolicy(gpu_models=("L4",))})
    assert terms(OFFER, as_in_pool(policy, OFFER), workload_class=None, team="").stretch_s == 4 * 3600
