"""Who holds a node pays for it: a hold goes over to the team whose pods are on the node, from the look that sees them.

Pods bind by themselves to a node that another's purchase lit. Dollars and machines are the world's.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage import Stage

from pilotlight.decide.money.holds import lit_instances
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.budgets import budget_accounts, budget_holds, renew_holds, workload_holds
from pilotlight.flow.budgets.hold_handover import Handover
from pilotlight.flow.observe.snapshot import look
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR

TWO_HOURS = ClassPolicy(gpu_models="any", idle_timeout=1800, max_runtime=2 * HOUR)
ROOMY = PoolPolicy(instance_type="one", max=4)
STOPS = ClassPolicy(gpu_models="any", idle_timeout=1800, max_runtime=12 * HOUR, may_move=("hard-cap",), hold=HOUR)


def stage(batch: ClassPolicy = TWO_HOURS, poor: str = "0.50", rich: str = "500", pool: str = "one") -> Stage:
    """A pool of nodes at $1 an hour (``eight``: of 8 GPUs, $32), and two teams with so many dollars a day."""
    budgets = tuple(
        Budget(name=team, scope=BudgetScope(team=team), usd=Decimal(usd), period="day")
        for team, usd in (("rich", rich), ("poor", poor))
    )
    return Stage(pools={pool: PoolPolicy(instance_type=pool, max=1)}, budgets=budgets, classes={"batch": batch})


def totals(on: Stage) -> dict[str, Decimal]:
    """Settled and held of each budget's first day, to the cent."""
    found = budget_holds.balances(on.deps, on.deps.state.now()).balances
    out: dict[str, Decimal] = {}
    for each in found:
        out.setdefault(each.meter.budget.name, each.total.quantize(Decimal("0.01")))
    return out


def lit_by_rich(on: Stage, gpus: int = 1, run_s: float = 600, **traits: Any) -> None:
    """A node that team rich bought, after the run of its pod: idle for less than its timeout."""
    pod = on.submit("first", gpus=gpus, run_s=run_s, team="rich", **traits)
    on.event(pod)
    on.minutes(3 + run_s / 60 + 2)
    assert sum(len(node.gpu_pods) for node in on.deps.cluster.observe().nodes) == 0
    assert len(on.deps.cluster.observe().nodes) == 1


def test_a_team_that_runs_on_another_s_idle_node_pays_for_it() -> None:
    """From the look that sees its pod all that the node costs is its own, and the other's hold ends at what it cost."""
    on = stage(poor="50")
    lit_by_rich(on)
    before = totals(on)
    on.submit("second", run_s=2 * HOUR, team="poor")
    on.minutes(2)
    after = totals(on)
    assert after["rich"] < before["rich"]
    assert after["rich"] <= Decimal("0.32")  # Its boot, ten minutes, and the minutes until it was seen.
    assert after["poor"] >= Decimal("2.00")
    on.minutes(180)
    assert totals(on)["rich"] == after["rich"]
    assert Decimal("2.00") <= totals(on)["poor"] <= Decimal("2.60")


def test_a_team_of_half_a_dollar_a_day_does_not_run_on_another_s_node_for_long() -> None:
    """Its own cap ends it in order, within what it has: nothing more of it is at the other's cost."""
    on = stage(batch=STOPS)
    lit_by_rich(on)
    on.submit("second", run_s=9 * HOUR, team="poor")
    on.minutes(2)
    rich = totals(on)["rich"]
    on.hours(3)
    assert totals(on)["rich"] == rich
    assert totals(on)["poor"] <= Decimal("0.50")
    assert on.nodes("one") == 0


def test_a_node_that_two_teams_share_is_paid_for_by_their_gpus() -> None:
    """Six GPUs and two: three quarters and a quarter of $32, and all of it is the other's once one is gone."""
    on = stage(poor="500", pool="eight")
    on.event(on.submit("six", gpus=6, run_s=2 * HOUR, team="rich"))
    on.minutes(5)
    on.submit("two", gpus=2, run_s=HOUR, team="poor")
    on.minutes(2)
    at_first = totals(on)
    assert at_first["rich"] > at_first["poor"] > 0
    on.minutes(200)
    ended = totals(on)
    assert on.nodes("eight") == 0
    assert ended["rich"] + ended["poor"] == spent(on)
    assert ended["poor"] == pytest.approx(Decimal(8), abs=Decimal("0.60"))


def test_holds_change_nodes_where_pods_did() -> None:
    """Two teams with dollars for one node each, and each on the node of the other: the holds go with the work, and
    nobody's cap is passed."""
    on = stage(poor="2.70", rich="2.70")
    on.deps = replace(on.deps, policy=msgspec.structs.replace(on.deps.policy, pools={"one": ROOMY}))
    for team in ("rich", "poor"):
        on.event(on.submit(team, run_s=2 * HOUR, team=team))
    on.minutes(6)
    nodes = {node.gpu_pods[0].team: node.instance for node in on.deps.cluster.observe().nodes}
    holds = {entry.value.terms.team: entry.value for entry in budget_accounts.every_hold(on.deps)}
    assert {team: hold.instance for team, hold in holds.items()} == nodes
    for team, other in (("rich", "poor"), ("poor", "rich")):
        swapped = msgspec.structs.replace(holds[team], instance=nodes[other], teams={}, classes={})
        HOLD.put(on.deps.state, f"c/{swapped.id}", swapped, over=holds[team])
    on.minutes(1)
    after = {entry.value.terms.team: entry.value for entry in budget_accounts.every_hold(on.deps)}
    assert {team: (hold.id, hold.instance) for team, hold in after.items()} == {
        team: (holds[team].id, nodes[team]) for team in nodes
    }
    on.minutes(130)
    assert all(Decimal("2.10") < total <= Decimal("2.70") for total in totals(on).values())


def test_dollars_that_wait_take_over_one_node_and_the_next_holds_change_hands() -> None:
    """Two pods of a team run on nodes of another's, its own two are empty, and dollars of a Workload wait for one node:
    these take over the first node, a hold of its own the second, and nothing is held beside what its budget has."""
    on = stage(rich="20", poor="20")
    on.deps = replace(on.deps, policy=msgspec.structs.replace(on.deps.policy, pools={"one": ROOMY}))
    for n, (team, run_s) in enumerate((("rich", 2 * HOUR), ("rich", 2 * HOUR), ("poor", 600), ("poor", 600))):
        on.event(on.submit(f"p{n}", run_s=run_s, team=team))
    on.minutes(20)
    nodes = on.deps.cluster.observe().nodes
    busy, empty = ([node.instance for node in nodes if bool(node.gpu_pods) is has] for has in (True, False))
    held = [entry.value for entry in budget_accounts.every_hold(on.deps)]
    rich, poor = ([hold for hold in held if hold.terms.team == team] for team in ("rich", "poor"))
    assert [len(each) for each in (busy, empty, rich, poor)] == [2, 2, 2, 2]
    for hold, instance in zip((*rich, *poor), (*empty, *busy), strict=True):
        moved = msgspec.structs.replace(hold, instance=instance, teams={}, classes={})
        HOLD.put(on.deps.state, f"c/{hold.id}", moved, over=hold)
    assert workload_holds.hold(on.deps, "job", (rich[0].terms,), on.deps.clock.now()) == ""
    before, snapshot = {e.value.id: e for e in budget_accounts.every_hold(on.deps)}, look(on.deps)
    lit = {one.instance: one for one in lit_instances(snapshot.view.nodes, snapshot.pools)}
    live = [(entry.value, lit.get(entry.value.instance)) for entry in before.values()]
    after = Handover(on.deps, snapshot, before, lambda: None).settle_owners(live)
    known = {hold.id: "own" for hold in rich}
    assert sorted(known.get(hold.id, hold.decision) for hold, one in after if one and one.pods) == ["kueue-job", "own"]


PODS = st.lists(
    st.tuples(
        st.sampled_from(["rich", "poor", "third"]),
        st.integers(1, 8),
        st.integers(0, 90),
        st.sampled_from([300, 1500, 4000]),
    ),
    min_size=1,
    max_size=7,
)
"""Pods: whose, how many GPUs, after how many minutes they come, how many seconds they run."""


@given(pods=PODS)
@settings(max_examples=12, deadline=None)
def test_what_teams_are_charged_is_what_nodes_cost(pods: list[tuple[str, int, int, int]]) -> None:
    """Whoever comes and goes on shared nodes, in whatever order: the sum is the world's, to the cent."""
    teams = {"rich": "900", "poor": "900", "third": "900"}
    budgets = tuple(
        Budget(name=team, scope=BudgetScope(team=team), usd=Decimal(usd), period="day") for team, usd in teams.items()
    )
    on = Stage(pools={"eight": PoolPolicy(instance_type="eight", max=3)}, budgets=budgets, classes={"batch": TWO_HOURS})
    for minute in range(240):
        for n, (team, gpus, at, run_s) in enumerate(pods):
            if at == minute:
                on.submit(f"p{n}", gpus=gpus, run_s=run_s, team=team)
        on.minutes(1)
    assert on.nodes("eight") == 0
    assert abs(sum(totals(on).values()) - spent(on)) <= Decimal("0.03")


def spent(on: Stage) -> Decimal:
    """What the world's nodes cost."""
    return on.world.cost().quantize(Decimal("0.01"))


@pytest.mark.parametrize("settled", [True, False], ids=["it is settled", "its worker died before it was settled"])
def test_a_hold_that_gets_a_node_of_another_pays_from_where_that_one_ended(settled: bool) -> None:
    """The first went over to another team and its worker died: what is bought beside takes the node, once charged."""
    on = Stage(budgets=(Budget(name="all", usd=Decimal(1000), period="day"),))
    on.event(on.submit("a", run_s=5 * HOUR))
    on.minutes(8)
    (first,) = HOLD.scan(on.deps.state, "c/")
    ended = on.deps.now()
    budget_holds.reserve(on.deps, "d", 0, [first.value.terms], first.value.since)
    if settled:
        budget_holds.end(on.deps, first, ended)
    else:
        budget_accounts.write_hold(on.deps, first, ended_at=ended)
    on.wait(60)
    renew_holds.keep(on.deps, look(on.deps))
    (other,) = HOLD.scan(on.deps.state, "c/")
    assert (other.value.id, other.value.instance, other.value.since) == ("d.0.0", first.value.instance, ended)
