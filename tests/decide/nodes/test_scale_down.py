"""Which nodes go out: idle for longer than keeping is worth, and nothing else; never because nothing is pending."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from small_fleet import A100, NOW, T4, bought, fate, gang, in_flight, node, offering, plan, pod, policy

from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.memory import Memory, RefusedRelease
from pilotlight.facts.policy import ClassPolicy, PoolPolicy, SparePolicy
from pilotlight.facts.workload import GpuRequest, WorkloadClass
from pilotlight.units import human

MIN = 60.0
IDLE_5M = policy([T4], pools={"t4": PoolPolicy(instance_type="T4x1", max=20, idle_timeout=5 * MIN)})

# Article S3's should_scale_up and should_scale_down, corrected (U4): one waiting pod is enough (E32), a busy GPU
# always keeps its node (E25), "idle" must last, and demand that the node can hold keeps it.
TRUTH = {
    "nothing waits, the node is busy, and was for a minute": (False, True, 1 * MIN, "keep", 0),
    "nothing waits, the node is busy, and was for an hour": (False, True, 60 * MIN, "keep", 0),
    "nothing waits, the node is idle for a minute": (False, False, 1 * MIN, "keep", 0),
    "nothing waits, the node is idle for long": (False, False, 60 * MIN, "release", 0),
    "a pod waits, the node is busy for a minute": (True, True, 1 * MIN, "keep", 1),
    "a pod waits, the node is busy for an hour": (True, True, 60 * MIN, "keep", 1),
    "a pod waits, the node is idle for a minute": (True, False, 1 * MIN, "keep", 0),
    "a pod waits, the node is idle for long": (True, False, 60 * MIN, "keep", 0),
}


@pytest.mark.parametrize(("waits", "busy", "for_s", "word", "nodes"), TRUTH.values(), ids=TRUTH.keys())
def test_truth_table(waits: bool, busy: bool, for_s: float, word: str, nodes: int) -> None:
    """One node of one GPU: when it stays, when it goes, when another is bought."""
    lit = node("n", T4, used=int(busy), idle_s=for_s)
    made = plan([pod("p")] if waits else [], [lit], offerings=[T4], rules=IDLE_5M)
    assert fate(made, "n")[0] == word
    assert bought(made) == ({"t4": nodes} if nodes else {})


# Article S2's consolidation windows by class, and article S1's (U3).
WINDOWS: dict[str, tuple[WorkloadClass, float]] = {
    "training: 5 minutes": ("training", 5 * MIN),
    "inference: 10 minutes": ("serving", 10 * MIN),
    "a notebook lab: 2 minutes": ("notebook", 2 * MIN),
}


@pytest.mark.parametrize(("name", "window_s"), WINDOWS.values(), ids=WINDOWS.keys())
def test_windows_by_class(name: WorkloadClass, window_s: float) -> None:
    """A node idles as long as the class it was lit for allows: kept a second before, released at the moment."""
    rules = policy([T4], classes={name: ClassPolicy(idle_timeout=window_s)})
    memory = Memory(pool_class={"t4": name})
    for early_s, word in ((1, "keep"), (0, "release")):
        made = plan(nodes=[node("n", idle_s=window_s - early_s)], offerings=[T4], rules=rules, memory=memory)
        assert fate(made, "n")[0] == word
        assert f"classes.{name}.idle_timeout" in fate(made, "n")[1]
        assert made.look_again_at == (NOW + timedelta(seconds=early_s) if early_s else None)


def test_a_pools_own_window_goes_before_its_class() -> None:
    """pools.NAME.idle_timeout wins over classes.NAME.idle_timeout."""
    pools = {"t4": PoolPolicy(instance_type="T4x1", idle_timeout=60)}
    rules = policy([T4], pools=pools, classes={"batch": ClassPolicy(idle_timeout=3600)})
    made = plan(nodes=[node("n", idle_s=61)], offerings=[T4], rules=rules)
    assert fate(made, "n")[0] == "release"


BREAK_EVEN = {
    "no price on waiting: the boot": ("0", 180),
    "a wait worth the node's price: two boots": ("1", 360),
    "a wait worth nine times the price: ten boots": ("9", 1800),
    "a wait worth more than the longest allows": ("99", 3600),
}


@pytest.mark.parametrize(("wait", "idle_s"), BREAK_EVEN.values(), ids=BREAK_EVEN.keys())
def test_break_even(wait: str, idle_s: float) -> None:
    """Without a timeout a node goes when keeping it has cost as much as relighting: boot plus the wait it saves."""
    rules = policy([T4], value_of_wait=Decimal(wait))
    made = plan(nodes=[node("a", idle_s=idle_s), node("b", idle_s=idle_s - 1)], offerings=[T4], rules=rules)
    assert fate(made, "a")[0] == "release"
    assert fate(made, "b")[0] == "keep"
    assert human(idle_s) in fate(made, "b")[1]
    assert {n.break_even_s for n in made.nodes} == {idle_s}


def idle_with(**of_a_pod: Any) -> Node:
    """A node without work for two hours, with one pod bound to it."""
    bound = BoundPod(**{"uid": "u", "namespace": "ml", "name": "x", **of_a_pod})
    return node("n", idle_s=7200, pods=(bound,))


ONE, QUARTER = GpuRequest(count=1), GpuRequest(count=1, milli=250)
THEIRS = offering("theirs", "T4", 1, "1")
YOUNG = NOW - timedelta(minutes=2)
LONG_IDLE: dict[str, tuple[Node, str, str]] = {
    "nothing on it": (node("n", idle_s=7200), "release", "idle for"),
    "a CPU pod on it": (idle_with(), "release", "idle for"),
    "a GPU DaemonSet on it": (idle_with(gpu=ONE, daemonset=True), "release", "idle for"),
    "a GPU pod on it": (idle_with(gpu=ONE), "keep", "busy: ml/x"),
    "a quarter of a GPU in use": (idle_with(gpu=QUARTER), "keep", "busy: ml/x"),
    "a disruption budget in the way": (idle_with(blocks="PDB x"), "keep", "ml/x: PDB x stops the drain: $1.00/h"),
    "a CPU pod that is not to be evicted": (idle_with(blocks="safe-to-evict=false"), "keep", "safe-to-evict=false"),
    "a pool the policy does not know": (node("n", THEIRS, idle_s=7200), "keep", "not ours to release"),
    "not ready yet": (node("n", ready=False, created_at=YOUNG), "keep", "booting"),
}


@pytest.mark.parametrize(("lit", "word", "why"), LONG_IDLE.values(), ids=LONG_IDLE.keys())
def test_what_keeps_a_node(lit: Node, word: str, why: str) -> None:
    """Only GPU work and what truly blocks a drain keep a node; the reason names it, with its dollars."""
    made = plan(nodes=[lit], offerings=[T4], rules=IDLE_5M)
    assert fate(made, "n")[0] == word
    assert why in fate(made, "n")[1]


def test_a_node_whose_price_is_not_known_costs_no_zero_dollars() -> None:
    """A node of no pool of the policy has no price, and is in no sum of the plan."""
    made = plan(nodes=[node("n", THEIRS), node("m", idle_s=7200)], offerings=[T4], rules=IDLE_5M)
    prices = {verdict.node: verdict.usd_per_hour for verdict in made.nodes}
    assert (prices["n"], prices["m"]) == (None, T4.usd_per_hour)
    assert (made.usd_per_hour_before, made.usd_per_hour_after) == (T4.usd_per_hour, Decimal(0))


LEAST = {
    "no minimum": ({}, 3),
    "one warm": ({"spares": SparePolicy(warm=1)}, 2),
    "two at least": ({"min": 2}, 1),
    "four warm": ({"spares": SparePolicy(warm=4)}, 0),
}


@pytest.mark.parametrize(("least", "gone"), LEAST.values(), ids=LEAST.keys())
def test_warm_and_least_numbers_stay(least: dict[str, Any], gone: int) -> None:
    """Of three idle nodes those above the pool's warm and least numbers go, the longest idle first."""
    pools = {"t4": PoolPolicy(instance_type="T4x1", idle_timeout=300, **least)}
    lit = [node(f"n{i}", idle_s=1000 + i) for i in range(3)]
    made = plan(nodes=lit, offerings=[T4], rules=policy([T4], pools=pools))
    assert [n.node for n in made.releases] == [f"n{2 - i}" for i in range(gone)]
    assert bought(made) == ({"t4": 1} if least.get("spares") == SparePolicy(warm=4) else {})


@pytest.mark.parametrize(
    ("for_s", "lit", "gone"), [(60, 1, 0), (60, 2, 1), (60, 3, 2), (0, 1, 1), (-60, 1, 1)],
    ids=["the last", "one of two", "two of three", "it is over now", "it was over before"],
)  # fmt: skip
def test_a_cloud_that_keeps_a_pools_last_node_keeps_no_other(for_s: float, lit: int, gone: int) -> None:
    """While its refusal lasts the last is not asked for again, and says when it will be; the others go."""
    rules = policy([T4], pools={"t4": PoolPolicy(instance_type="T4x1", idle_timeout=300)})
    memory = Memory(floors={"t4": NOW + timedelta(seconds=for_s)})
    nodes = [node(f"n{n}", idle_s=1000 + n) for n in range(lit)]
    made = plan(nodes=nodes, offerings=[T4], rules=rules, memory=memory)
    assert len(made.releases) == gone
    kept = [n.why for n in made.nodes if n.verdict == "keep"]
    assert len(kept) == lit - gone
    assert all("the cloud keeps this pool's last node: $" in why for why in kept)


def test_a_release_that_was_refused_rests_and_its_node_is_one_of_the_warm_ones() -> None:
    """The longest idle one was refused: it stays and says until when, and the other goes though one stays warm."""
    rules = policy([T4], pools={"t4": PoolPolicy(instance_type="T4x1", idle_timeout=300, min=1)})
    until = NOW + timedelta(minutes=8)
    nodes = [node("n0", idle_s=1000), node("n1", idle_s=2000)]
    refusal = RefusedRelease(until=until, why="Forbidden: no right", tries=3)
    memory = Memory(refusals={nodes[1].instance or "n1": refusal})
    made = plan(nodes=nodes, offerings=[T4], rules=rules, memory=memory)
    assert [gone.node for gone in made.releases] == ["n0"]
    (kept,) = [one.why for one in made.nodes if one.verdict == "keep"]
    assert kept == f"its cloud did not give it back 3 times (Forbidden: no right); asked again at {until:%H:%M}"
    over = Memory(refusals={nodes[1].instance or "n1": replace(refusal, until=NOW)})
    assert [gone.node for gone in plan(nodes=nodes, offerings=[T4], rules=rules, memory=over).releases] == ["n1"]


def test_cooldown_after_a_purchase() -> None:
    """No node of a pool goes within the cooldown after that pool was added to (article S1: 10 minutes)."""
    rules = policy([T4], pools={"t4": PoolPolicy(instance_type="T4x1", idle_timeout=60)}, cooldown=600)
    for ago_s, word in ((599, "keep"), (600, "release")):
        memory = Memory(last_buy={"t4": NOW - timedelta(seconds=ago_s)})
        made = plan(nodes=[node("n", idle_s=300)], offerings=[T4], rules=rules, memory=memory)
        assert fate(made, "n")[0] == word
    assert fate(plan(nodes=[node("n", idle_s=300)], offerings=[T4], rules=rules), "n")[0] == "release"


def test_a_purchase_of_tomorrow_keeps_no_node() -> None:
    """A moment so far ahead was written by a clock that was wrong: the node is not kept for a day."""
    rules = policy([T4], pools={"t4": PoolPolicy(instance_type="T4x1", idle_timeout=60)}, cooldown=600)
    for ahead, word in ((timedelta(minutes=4), "keep"), (timedelta(days=1), "release")):
        made = plan(
            nodes=[node("n", idle_s=300)], offerings=[T4], rules=rules, memory=Memory(last_buy={"t4": NOW + ahead})
        )
        assert fate(made, "n")[0] == word


HOURLY = offering("civo", "T4", 1, "2", minimum_s=3600, increment_s=3600)
PAID = {
    "30 minutes into its first hour": (30, "keep"),
    "57 minutes into it": (57, "keep"),
    "58 minutes into it, its drain still to come": (58, "release"),
    "5 minutes into its second hour": (65, "keep"),
    "118 minutes old": (118, "release"),
}


@pytest.mark.parametrize(("age_min", "word"), PAID.values(), ids=PAID.keys())
def test_a_node_billed_by_the_hour_stays_to_the_end_of_it(age_min: float, word: str) -> None:
    """A node whose hour is paid (Civo) goes shortly before the next hour begins: earlier would save nothing."""
    created = NOW - timedelta(minutes=age_min)
    pools = {"civo": PoolPolicy(instance_type="T4x1", idle_timeout=60)}
    made = plan(
        nodes=[node("n", HOURLY, idle_s=600, created_at=created)],
        offerings=[HOURLY],
        rules=policy([HOURLY], pools=pools),
    )
    assert fate(made, "n")[0] == word
    if word == "keep":
        assert "going earlier saves nothing" in fate(made, "n")[1]
        assert made.look_again_at == created + timedelta(minutes=58 if age_min < 58 else 118)


def test_room_for_a_gang_stays() -> None:
    """Idle nodes that a waiting gang will take are not released, however long they idle."""
    lit = [node(f"n{i}", A100, idle_s=36_000) for i in range(2)]
    assert not plan(gang("g", 2), lit).releases
    assert len(plan(gang("g", 2, here=1), lit).releases) == 2


def test_a_pending_event_takes_nothing_away() -> None:
    """Without ``releases`` no node is judged at all."""
    assert plan(nodes=[node("n", idle_s=36_000)], releases=False).nodes == ()


def test_a_node_that_a_person_opened_stays_though_its_gang_did_not_come_together() -> None:
    """It rests for its hour, as any that a person keeps; without that it goes at once."""
    waiting, hour = gang("g", 2, gpus=1), timedelta(hours=1)
    came = node("n", T4, idle_s=600, created_at=NOW - timedelta(minutes=30))
    asked = in_flight(T4, waiting, count=2, asked=NOW - timedelta(minutes=40))
    entry = msgspec.structs.replace(asked, gangs=("g",))
    shut = policy([T4], pools={"t4": PoolPolicy(instance_type="T4x1", max=1)})

    def made(rests: dict[str, datetime]) -> str:
        memory = Memory(overdue=(entry,), rests=rests)
        return fate(plan(waiting, [came], offerings=[T4], rules=shut, memory=memory), "n")[0]

    assert (made({}), made({"n": NOW + hour}), made({"n": NOW})) == ("release", "keep", "release")
