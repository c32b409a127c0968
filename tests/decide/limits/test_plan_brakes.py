"""What brakes hold of a plan: every node is bought or held, limits hold, and gangs stay whole."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.limits.plan_brakes import apply_brakes
from pilotlight.facts.decisions import Buy, NodeVerdict, Plan
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.memory import Turn
from pilotlight.facts.modes import Mode
from pilotlight.facts.money.money_policy import ApproveOver, Caps, Limits
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.facts.policy import Policy, PoolPolicy

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOTHING: dict[str, str] = {}


def buy(pool: str, count: int, usd: str = "1", gangs: tuple[str, ...] = ()) -> Buy:
    """A purchase of a pool."""
    return Buy(
        pool=pool, offering=f"{pool}/x", zone="", count=count, usd_per_hour=Decimal(usd), boot_s=60, demands=("u",),
        shapes=(), why="pods wait", gangs=gangs,
    )  # fmt: skip


def release(node: str, *, failed: bool = False, forced: bool = False) -> NodeVerdict:
    """A node to give back."""
    return NodeVerdict(
        node=node,
        pool="a",
        instance=node,
        verdict="release",
        why="idle",
        usd_per_hour=Decimal(1),
        failed=failed,
        forced=forced,
    )


def plan(*calls: Buy | NodeVerdict, before: int = 0) -> Plan:
    """A plan of such calls, each purchase with a group of pods."""
    buys = tuple(call for call in calls if isinstance(call, Buy))
    nodes = tuple(call for call in calls if isinstance(call, NodeVerdict))
    pods = tuple(
        PodGroup(verdict="bought", pods=("ml/p",), uids=("u",), where=b.offering, why="cheapest") for b in buys
    )
    after = before + sum(b.count * b.usd_per_hour for b in buys) - len(nodes)
    return Plan(
        buys=buys, nodes=nodes, pods=pods, usd_per_hour_before=Decimal(before), usd_per_hour_after=Decimal(after)
    )


def policy(limits: Limits | None = None, over: ApproveOver | None = None) -> Policy:
    """A policy with such limits."""
    return Policy(version=1, pools={}, caps=Caps(ten_minutes=limits or Limits(), approve_over=over or ApproveOver()))


@pytest.mark.parametrize(
    ("mode", "bought", "released"),
    [("observe", 0, 0), ("advise", 0, 0), ("scale-up", 1, 0), ("act", 1, 1)],
    ids=["observing does nothing", "advice does nothing", "scale-up only buys", "act does both"],
)
def test_a_pools_mode_says_what_may_be_done(mode: Mode, bought: int, released: int) -> None:
    """What it does not allow is held with the mode's name, and is not called bought."""
    made = apply_brakes(plan(buy("a", 1), release("n")), Brakes(modes={"a": mode}), NOTHING, policy(), 1, NOW)
    assert (len(made.buys), len(made.releases)) == (bought, released)
    assert [held.code for held in made.held] == ["mode"] * (2 - bought - released)
    assert (made.pods[0].verdict == "bought") == bool(bought)


@pytest.mark.parametrize("mode", ["advise", "act"])
def test_what_karpenter_buys_is_told_so_in_every_mode(mode: Mode) -> None:
    """Another mode would buy nothing there either; a release of ours stays held by the mode."""
    rules = Policy(version=1, pools={"a": PoolPolicy(cluster_pool="karpenter:gpu", instance_type="x")})
    brakes = Brakes(modes={"a": mode}, paused={"a": "Karpenter buys"}, gives=frozenset({"n"}))
    made = apply_brakes(plan(buy("a", 1), release("n")), brakes, NOTHING, rules, 1, NOW)
    assert [(held.code, held.why) for held in made.held if held.buy] == [("paused", "Karpenter buys")]
    assert [held.code for held in made.held if held.node] == ["mode"] * (mode == "advise")


@pytest.mark.parametrize(("paused", "left"), [(ALL, []), ("a", ["b"]), ("c", ["a", "b"])])
def test_a_pause_holds_its_pool_or_all(paused: str, left: list[str]) -> None:
    """With its reason."""
    made = apply_brakes(
        plan(buy("a", 1), buy("b", 1)), Brakes(paused={paused: "price check"}), NOTHING, policy(), 0, NOW
    )
    assert [b.pool for b in made.buys] == left
    assert {held.why for held in made.held} <= {"price check"}


def test_a_pool_whose_earlier_call_may_land_is_not_grown() -> None:
    """Releases of it are not touched by that."""
    made = apply_brakes(plan(buy("a", 1), release("n")), Brakes(), {"a": "may still land"}, policy(), 1, NOW)
    assert ([h.code for h in made.held], len(made.releases)) == (["settling"], 1)


@pytest.mark.parametrize(
    "node", [release("n", failed=True), release("n", forced=True)], ids=["what failed", "what is taken"]
)
def test_limits_do_not_keep_what_must_go(node: NodeVerdict) -> None:
    """Ten minutes without releases are for idle nodes."""
    made = apply_brakes(plan(node, release("m")), Brakes(), NOTHING, policy(Limits(nodes_removed=0)), 2, NOW)
    assert [kept.node for kept in made.releases] == ["n"]


def test_an_approval_covers_one_purchase_of_its_pool() -> None:
    """The next one in the same plan waits."""
    over = policy(over=ApproveOver(nodes=0))
    made = apply_brakes(plan(buy("a", 2), buy("a", 2)), Brakes(approvals={"a": (("17", 2),)}), NOTHING, over, 0, NOW)
    assert [(b.count, b.approval) for b in made.buys] == [(2, "17")]
    assert [held.code for held in made.held] == ["approval"]


def test_what_waits_for_approval_is_told_with_what_waits_before_it() -> None:
    """One approval covers both: the last one says the dollars and nodes of all. What is within the limit is bought."""
    for over, whole in ((ApproveOver(usd_per_hour=Decimal(2)), "$9.00"), (ApproveOver(nodes=0), "3 nodes")):
        made = apply_brakes(plan(buy("a", 1, "3"), buy("a", 2, "3")), Brakes(), NOTHING, policy(over=over), 0, NOW)
        assert whole in made.held[-1].why
    small = plan(buy("a", 1, "3"), buy("b", 1, "1"))
    made = apply_brakes(small, Brakes(), NOTHING, policy(over=ApproveOver(usd_per_hour=Decimal(2))), 0, NOW)
    assert [b.pool for b in made.buys] == ["b"]


def test_an_approval_is_not_used_where_none_is_needed() -> None:
    """It stays for the purchase that needs it."""
    over = policy(over=ApproveOver(nodes=9))
    made = apply_brakes(plan(buy("a", 2)), Brakes(approvals={"a": (("17", 2),)}), NOTHING, over, 0, NOW)
    assert [b.approval for b in made.buys] == [""]


def test_the_narrowest_approval_that_suffices_is_used() -> None:
    """A newer one for fewer nodes does not hide it, and one for more stays for what needs more."""
    given = {"a": (("15", 3), ("16", 2), ("17", 1))}
    made = apply_brakes(plan(buy("a", 2)), Brakes(approvals=given), NOTHING, policy(over=ApproveOver(nodes=0)), 0, NOW)
    assert [b.approval for b in made.buys] == ["16"]


purchases = st.lists(
    st.builds(
        buy,
        st.sampled_from(["a", "b", "c"]),
        st.integers(1, 6),
        st.sampled_from(["0.35", "1", "32.77"]),
        st.sampled_from([(), (), ("g",), ("g", "h")]),
    ),
    max_size=6,
)
turns = st.lists(
    st.builds(
        lambda minutes, added, usd: Turn(at=NOW - timedelta(minutes=minutes), added=added, usd_per_hour=Decimal(usd)),
        st.integers(0, 20),
        st.integers(0, 4),
        st.integers(0, 40),
    ),
    max_size=4,
)


@given(calls=purchases, past=turns, nodes=st.integers(0, 12), usd=st.integers(0, 90))
def test_limits_hold_whatever_is_asked_and_was_done(calls: list[Buy], past: list[Turn], nodes: int, usd: int) -> None:
    """Law: in ten minutes this plan and those before add no more nodes and dollars an hour than the limits."""
    limits = Limits(nodes_added=nodes, usd_per_hour_added=Decimal(usd))
    made = apply_brakes(plan(*calls), Brakes(turns=tuple(past)), NOTHING, policy(limits), 0, NOW)
    recent = [turn for turn in past if NOW - turn.at < timedelta(minutes=10)]
    if made.buys:
        assert sum(b.count for b in made.buys) + sum(t.added for t in recent) <= nodes
        spent = sum((b.count * b.usd_per_hour for b in made.buys), Decimal(0))
        assert spent + sum((t.usd_per_hour for t in recent), Decimal(0)) <= usd


@given(calls=purchases, nodes=st.integers(0, 12))
def test_every_node_is_bought_or_held_and_money_adds_up(calls: list[Buy], nodes: int) -> None:
    """Law: nothing is lost between the plan and what brakes leave of it; dollars an hour are of what is bought."""
    made = apply_brakes(plan(*calls, before=3), Brakes(), NOTHING, policy(Limits(nodes_added=nodes)), 3, NOW)
    for pool in "abc":
        asked = sum(b.count for b in calls if b.pool == pool)
        assert asked == sum(b.count for b in made.buys if b.pool == pool) + sum(
            h.count for h in made.held if h.action.pool == pool
        )
    assert made.usd_per_hour_after == 3 + sum((b.count * b.usd_per_hour for b in made.buys), Decimal(0))


@given(calls=purchases, nodes=st.integers(0, 12))
def test_a_gang_is_bought_whole_or_not_at_all(calls: list[Buy], nodes: int) -> None:
    """Law: where a part of a gang is held, no other part is bought."""
    made = apply_brakes(plan(*calls), Brakes(), NOTHING, policy(Limits(nodes_added=nodes)), 0, NOW)
    held = {gang for h in made.held if h.buy is not None for gang in h.buy.gangs}
    assert held.isdisjoint(gang for b in made.buys for gang in b.gangs)
