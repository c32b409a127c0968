"""The policy's rules: when each holds, what it changes, what it says; without one that holds all is as it was."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fleet import A100, NOW, T4, gang, node, plan, pod, pods, policy

from pilotlight.codec.policy_file import read_policy
from pilotlight.decide.limits.policy_rules import holds
from pilotlight.decide.utilisation.cluster_use import measure_pool_use
from pilotlight.errors import BadPolicy
from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.limits.rule_policy import Rule, RuleBudget, RuleSet, RuleTime, RuleUse, RuleWaiting, RuleWhen
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.budgets import Balance, Meter, Money
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.facts.workload import Due
from pilotlight.tools.report.texts.plan_head import head

NIGHT = RuleTime(start="20:00", end="06:00")
NOON = RuleTime(start="11:00", end="13:00")


RELEASE = {"idle": {"t4": "release"}}


def rule(does: dict[str, Any] = RELEASE, cooldown: float = 600, **fields: Any) -> Rule:
    """A rule that releases idle nodes of pool t4, or does something else."""
    return Rule(name="r", when=RuleWhen(**fields), does=RuleSet(**does), cooldown=cooldown)


def use(*pools: str, **bounds: float) -> RuleUse:
    """Use of t4, or of other pools."""
    return RuleUse(pools=pools or ("t4",), **bounds)


def money(total: str) -> Money:
    """So much of $100 is spent or held."""
    budget = Budget(name="research", usd=Decimal(100))
    start = datetime(2026, 11, 1, tzinfo=UTC)
    meter = Meter(budget=budget, measure="usd", limit=Decimal(100), start=start, end=start + timedelta(days=30))
    return Money(balances=(Balance(meter=meter, total=Decimal(total)),))


BUSY, IDLE = node("busy", used=1), node("idle", idle_s=30)


@pytest.mark.parametrize(
    ("asked", "nodes", "waiting", "spent", "figures"),
    [
        (rule(waiting=RuleWaiting(pods=3)), (), 3, "0", "3 pods waiting, the first for 0 s"),
        (rule(waiting=RuleWaiting(pods=3)), (), 2, "0", None),
        (rule(waiting=RuleWaiting(since=60)), (), 1, "0", None),
        (rule(waiting=RuleWaiting(classes=("training",))), (), 3, "0", None),
        (rule(use=use(below=0.6)), (BUSY, IDLE), 0, "0", "50% of 2 GPUs held by pods (telemetry: absent)"),
        (rule(use=use(below=0.5)), (BUSY, IDLE), 0, "0", None),
        (rule(use=use(above=0.4)), (BUSY, IDLE), 0, "0", "50% of 2 GPUs held by pods (telemetry: absent)"),
        (rule(use=use(above=0.5)), (BUSY, IDLE), 0, "0", None),
        (rule(use=use(below=0.9)), (), 0, "0", None),
        (rule(use=use("a100", below=0.9)), (BUSY,), 0, "0", None),
        (rule(budget=RuleBudget(name="research", at=0.8)), (), 0, "80", "80% of budget research is spent or held"),
        (rule(budget=RuleBudget(name="research", at=0.8)), (), 0, "79", None),
        (rule(budget=RuleBudget(name="other", at=0.1)), (), 0, "99", None),
        (rule(time=NOON), (), 0, "0", "it is between 11:00 and 13:00 UTC"),
        (rule(time=NIGHT), (), 0, "0", None),
        (rule(time=NOON, waiting=RuleWaiting()), (), 0, "0", None),
        (
            rule(time=NOON, waiting=RuleWaiting()),
            (),
            1,
            "0",
            "1 pod waiting, the first for 0 s, it is between 11:00 and 13:00 UTC",
        ),
    ],
)
def test_a_rule_holds_when_all_that_it_names_does(
    asked: Rule, nodes: tuple[Node, ...], waiting: int, spent: str, figures: str | None
) -> None:
    """On each side of each bound; what is not known does not hold."""
    view = ClusterView(nodes=nodes, pending=pods(waiting) if waiting else ())
    assert holds(asked, view, money(spent), None, NOW) == figures


@pytest.mark.parametrize(
    ("activity", "figures"),
    [
        pytest.param([0.1] * 30, "5% of 2 GPUs used by UTIL", id="measured"),
        pytest.param([float("nan")] * 30, "50% of 2 GPUs held by pods (telemetry: absent)", id="never measured"),
        pytest.param([0.1] * 20 + [float("nan")] * 10, "50% of 2 GPUs held by pods (telemetry: absent)", id="over"),
        pytest.param([-3.0] * 30, "50% of 2 GPUs held by pods (telemetry: absent)", id="negative"),
    ],
)
def test_utilisation_is_as_measured_else_what_pods_hold(activity: list[float], figures: str) -> None:
    """What was not measured, or cannot be, makes no figure up: the reason says that telemetry is absent."""
    series = (GpuSeries(pod="ml/on-busy", activity=activity, memory=activity),)
    read = Telemetry(start_s=0, step_s=60, metric="UTIL", series=series)
    nodes = (BUSY, IDLE)
    measured = measure_pool_use(read, nodes, NOW)
    assert holds(rule(use=use(below=0.6)), ClusterView(nodes=nodes), money("0"), measured, NOW) == figures


def verdict(*rules: Rule, idle_s: float = 30, memory: Memory | None = None) -> tuple[str, str]:
    """What becomes of one idle node of t4, and why."""
    ruled = policy(rules=rules, pools={"t4": PoolPolicy(instance_type="T4x1", max=20, idle_timeout=300)})
    made = plan((), rules=ruled, nodes=(node("n", idle_s=idle_s),), memory=memory or Memory())
    [found] = made.nodes
    return found.verdict, found.why


def test_release_puts_out_what_is_idle_and_names_rule_and_figures() -> None:
    """At once; without the rule the node has four and a half minutes left."""
    assert verdict()[0] == "keep"
    what, why = verdict(rule(use=use(below=0.1)))
    assert what == "release"
    assert why.endswith("; rule r: 0% of 1 GPU held by pods (telemetry: absent)")


def test_release_leaves_work_and_the_pools_least_alone() -> None:
    """A node with a pod on it stays, and so does what min keeps lit."""
    ruled = policy(rules=(rule(time=NOON),), pools={"t4": PoolPolicy(instance_type="T4x1", max=20, min=1)})
    made = plan((), rules=ruled, nodes=(BUSY, node("n", idle_s=9000), node("m", idle_s=9000)))
    assert [n.node for n in made.releases] in (["n", "m"], ["m", "n"])
    alone = plan((), rules=ruled, nodes=(node("n", idle_s=9000),))
    assert not alone.releases


def test_a_kept_pool_is_kept_whatever_else_would_release_it() -> None:
    """When two rules disagree nothing is taken away."""
    what, why = verdict(rule(time=NOON), rule({"idle": {"t4": "keep"}}, time=NOON), idle_s=90_000)
    assert what == "keep"
    assert why.endswith("; rule r: it is between 11:00 and 13:00 UTC")
    assert verdict(idle_s=90_000)[0] == "release"


@pytest.mark.parametrize("idle", ["keep", "release"])
def test_a_node_is_held_for_as_without_the_rule_that_keeps_or_releases_idle_ones(idle: str) -> None:
    """A kept pool's node is not held for until the rule ends, which nobody knows: a budget would refuse each."""
    budget = money("10").balances[0].meter.budget
    bare = policy(budgets=(budget,), pools={"t4": PoolPolicy(instance_type="T4x1", max=20, idle_timeout=300)})
    ruled = msgspec.structs.replace(bare, rules=(rule({"idle": {"t4": idle}}, waiting=RuleWaiting(pods=1)),))
    made, without = (plan(pods(1), rules=each, money=money("10")) for each in (ruled, bare))
    [buy] = made.buys
    assert buy.pool == "t4"
    assert buy.terms == without.buys[0].terms
    assert buy.terms[0].idle_s == 300


def test_grow_keeps_nodes_ready_for_those_who_wait() -> None:
    """Two without work, within the pool's most, and the purchase says why."""
    ruled = policy(rules=(rule({"warm": {"t4": 2}}, waiting=RuleWaiting(pods=2)),))
    made = plan(pods(2), rules=ruled)
    assert sum(buy.count for buy in made.buys if buy.pool == "t4") == 4
    [warm] = [buy for buy in made.buys if not buy.demands]
    assert warm.why.endswith("; rule r: 2 pods waiting, the first for 0 s")


def test_within_the_cooldown_a_pool_is_neither_grown_nor_released() -> None:
    """Ten minutes from its last purchase, where the rule does not say otherwise; the clock alone waits for nothing."""
    bought = Memory(last_buy={"t4": NOW - timedelta(minutes=9)})
    unused = use(below=0.9)
    assert verdict(rule(use=unused), memory=bought)[0] == "keep"
    assert verdict(rule(use=unused, cooldown=60), memory=bought)[0] == "release"
    assert verdict(rule(time=NOON), memory=bought)[0] == "release"


def test_move_buys_elsewhere_for_its_classes_alone() -> None:
    """The cheap pool is left to others; the choice names the rule among what it rejected."""
    moved = rule({"avoid": {"t4": ("notebook",)}}, time=NOON)
    made = plan((pod("dev", workload_class="notebook"),), rules=policy(rules=(moved,)))
    assert [buy.pool for buy in made.buys] == ["v100x4"]
    [group] = made.pods
    why = "rule r closes t4 until 13:00: it is between 11:00 and 13:00 UTC"
    assert (why, "rule") in [(r.why, r.code) for r in group.rejected]
    others = plan((pod("train", workload_class="training"),), rules=policy(rules=(moved,)))
    assert [buy.pool for buy in others.buys] == ["t4"]


@pytest.mark.parametrize("due", [None, NOW + timedelta(days=1)], ids=["no deadline", "a deadline"])
def test_a_pod_that_only_closed_pools_would_hold_waits_for_the_rule_s_end(due: datetime | None) -> None:
    """Nothing of it is to be mended, alone or in a gang; of one that fits none of them there is."""
    closed = policy([T4], rules=(rule({"avoid": {"t4": ("notebook",)}}, time=NOON),))
    why = "rule r closes t4 until 13:00: it is between 11:00 and 13:00 UTC"
    traits: dict[str, Any] = {"workload_class": "notebook"}
    if due is not None:
        traits["due"] = Due(job="j", by=due, work_s=600)
    made = plan((pod("dev", **traits),), offerings=[T4], rules=closed)
    assert (made.buys, made.findings) == ((), ())
    assert [(group.verdict, group.code, group.why) for group in made.pods] == [("waiting", "rule", why)]
    assert head(made)[2] == ("waits", "1 pod for the end of a rule")
    [unfit] = plan((pod("dev", 8, **traits),), offerings=[T4], rules=closed).pods
    assert (unfit.verdict, unfit.code) == ("finding", "no-pool")
    together = plan(gang("g", 2, gpus=1, workload_class="notebook"), offerings=[T4], rules=closed)
    assert [(g.verdict, g.code) for g in together.pods] == [("waiting", "rule")]
    assert why in together.pods[0].why


def test_a_rule_that_more_than_the_clock_decides_names_no_hour_of_its_end() -> None:
    """Nobody knows when pods wait no more."""
    crowded = rule({"avoid": {"t4": ("notebook",)}}, time=NOON, waiting=RuleWaiting(pods=1))
    [group] = plan((pod("dev", workload_class="notebook"),), offerings=[T4], rules=policy([T4], rules=(crowded,))).pods
    assert group.why.startswith("rule r closes t4: 1 pod waiting, the first for 0 s, it is between ")


@settings(max_examples=40)
@given(
    st.integers(0, 4),
    st.lists(st.tuples(st.sampled_from([T4, A100]), st.booleans(), st.integers(0, 20_000)), max_size=4),
    st.sampled_from([{"warm": {"t4": 1}}, {"idle": {"t4": "keep"}}, RELEASE, {"avoid": {"a100": ("batch",)}}]),
)
def test_without_a_rule_that_holds_the_plan_is_as_it_was(count: int, lit: list[Any], do: Any) -> None:
    """Whatever the cluster: no rules, and rules that do not hold, come to the same plan."""
    nodes = tuple(node(f"n{n}", of, used=int(used), idle_s=idle_s) for n, (of, used, idle_s) in enumerate(lit))
    waits = pods(count) if count else ()
    never = rule(do, time=NIGHT)
    before = plan(waits, rules=policy(), nodes=nodes)
    assert plan(waits, rules=policy(rules=(never,)), nodes=nodes) == before


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"set": {"idle": {"t9": "keep"}}}, "rules[0].set.idle.t9: names no pool"),
        ({"set": {}}, "rules[0].set: sets nothing"),
        ({"set": {"warm": {"t4": 11}}}, "rules[0].set.warm.t4: 11 is more than max 10"),
        ({"set": {"warm": {"t4": -1}}}, "rules[0].set.warm"),
        ({"when": {"use": {"pools": ["t4"]}}}, "rules[0].when.use: asks nothing"),
        ({"when": {"use": {"pools": ["t9"], "below": 0.5}}}, "rules[0].when.use.pools.t9: names no pool"),
        ({"when": {}}, "rules[0].when: names no condition"),
        ({"when": {"budget": {"name": "x", "at": 0.5}}}, "'x' is no budget of this policy"),
        ({"when": {"time": {"start": "9", "end": "10:00"}}}, "rules[0].when.time.start: '9' is no time of day"),
        ({"set": {"avoid": {"t4": []}}}, "rules[0].set.avoid.t4: name the classes"),
        ({"set": {"avoid": {"t4": ["serving"]}}}, "serving is never moved by a rule"),
        ({"set": {"capacity_types": {"serving": ["spot"]}}}, "serving never runs on spot"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_by_its_path(changed: dict[str, Any], says: str) -> None:
    """Each problem in one line."""
    good = {"name": "r", "set": {"idle": {"t4": "release"}}, "when": {"waiting": {"pods": 1}}}
    made = {"version": 1, "pools": {"t4": {"instance_type": "x"}}, "rules": [good | changed]}
    with pytest.raises(BadPolicy) as refused:
        read_policy(msgspec.json.encode(made), "p")
    assert any(says in problem for problem in refused.value.problems)
