"""Pods of a team without money on a node that another pays for: they leave, and the node goes on.

The scheduler asks no budget: they bind by themselves. Dollars, machines and pods are the world's.
"""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from owners_stage import RUNS_ON, launches, stage, stopped, teams_on, totals
from stage import Stage

from pilotlight.decide.money.holds import lit_instances
from pilotlight.facts.messages import InterruptionNotice, NoticeKind
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.budgets import budget_accounts, interruption_records, renew_holds, workload_holds
from pilotlight.flow.budgets.hold_handover import Handover
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.flow.observe.snapshot import look
from pilotlight.units import HOUR


def told(on: Stage, instance: str, kind: NoticeKind, in_s: float | None) -> None:
    """A cloud takes an instance after so many seconds, and says so; without them, that it may."""
    now = on.deps.now()
    (name,) = (node.name for node in on.deps.cluster.observe().nodes if node.instance == instance)
    if in_s is None:
        on.world.recommend(name)
    else:
        on.world.interrupt(name, in_s)
    deadline = None if in_s is None else now + timedelta(seconds=in_s)
    notice = InterruptionNotice(
        cluster="c", instance=instance, kind=kind, cloud="world", identity=f"{kind} {now}", at=now, deadline=deadline
    )
    interrupt(on.deps, notice)


@pytest.mark.parametrize("first", ["rich", "poor"])
@pytest.mark.parametrize("usd", ["0", "0.50", "8", "30"])
def test_a_team_out_of_money_costs_its_neighbour_no_second_node(usd: str, first: str) -> None:
    """Two pods share a node for which only one team has the dollars: that one runs its three hours on the one node that
    was bought, and the other's budget is not passed by a cent."""
    on = stage({"rich": "5000", "poor": usd})
    for team in (first, "poor" if first == "rich" else "rich"):
        on.event(on.submit(team, gpus=4, run_s=3 * HOUR, team=team))
    on.hours(4)
    assert launches(on) == 1
    assert stopped(on)["uid-rich"] == 0
    assert stopped(on)["uid-poor"] > 0
    assert on.nodes("eight") == 0
    assert totals(on)["poor"] <= Decimal(usd)
    assert sum(totals(on).values()) == on.world.cost().quantize(Decimal("0.01"))


def test_the_node_stays_closed_while_only_pods_without_money_wait() -> None:
    """Evicted pods come again and wait: the node takes nothing new, so that nobody is evicted from it minute by
    minute; it opens for a pod of the team that pays, and no second node is bought for that."""
    on = stage({"rich": "5000", "poor": "0"}, most=3)
    for team in ("rich", "poor"):
        on.event(on.submit(team, gpus=4, run_s=3 * HOUR, team=team))
    on.hours(1)
    assert teams_on(on) == ["rich"]
    assert stopped(on)["uid-poor"] == 1
    for waiting in list(on.world.pending.values()):
        on.world.delete(waiting)
    on.event(on.submit("more", gpus=2, run_s=HOUR, team="rich"))
    on.hours(0.2)
    assert teams_on(on) == ["rich", "rich"]
    assert launches(on) == 1


def test_pods_that_go_from_node_to_node_keep_none_of_them_lit() -> None:
    """Two idle nodes of another team and a pod without money: it visits each once, and both go out in their time."""
    on = stage({"rich": "5000", "poor": "0"}, most=2)
    for n in range(2):
        on.event(on.submit(f"rich-{n}", gpus=8, run_s=600, team="rich"))
    on.hours(0.3)
    on.submit("poor", gpus=2, run_s=3 * HOUR, team="poor")
    on.hours(1)
    assert on.nodes("eight") == 0
    assert stopped(on)["uid-poor"] <= 2
    assert totals(on)["poor"] == 0


@pytest.mark.parametrize(("usd", "nodes"), [("1.50", 1), ("4", 3)])
def test_money_for_one_node_is_not_taken_for_money_on_three(usd: str, nodes: int) -> None:
    """Three nodes of another team get a pod each of one whose dollars last on some of them until its pods can have
    left: it pays for its part of those, every node stays, and the cap holds."""
    on = stage({"rich": "5000", "poor": usd}, most=3)
    for n in range(3):
        on.event(on.submit(f"rich-{n}", gpus=6, run_s=3 * HOUR, team="rich"))
    on.minutes(6)
    for n in range(3):
        on.submit(f"poor-{n}", gpus=2, run_s=3 * HOUR, team="poor")
    on.minutes(1)
    owners = [owner.team for hold in budget_accounts.every_hold(on.deps) for owner in hold.value.terms.owners]
    assert owners.count("poor") == nodes
    on.hours(4)
    assert launches(on) == 3
    assert not [job for job in stopped(on) if "rich" in job]
    assert totals(on)["poor"] <= Decimal(usd)


def test_a_node_that_was_bought_for_a_pod_that_still_waits_is_kept_for_it() -> None:
    """A pod without money takes the whole new node first: it leaves, and its owner is charged nothing."""
    on = stage({"rich": "5000", "poor": "0"})
    on.submit("poor", gpus=8, run_s=3 * HOUR, team="poor")
    on.event(on.submit("rich", gpus=8, run_s=HOUR, team="rich"))
    on.hours(2)
    assert launches(on) == 1
    assert totals(on)["poor"] == 0


def test_a_pod_that_may_not_be_stopped_runs_on_beside_its_neighbour() -> None:
    """Its class does not consent to a stop at a cap: it runs to its end, and its budget is told to be passed."""
    on = stage({"rich": "5000", "poor": "0"}, batch=RUNS_ON)
    for team in ("rich", "poor"):
        on.event(on.submit(team, gpus=4, run_s=2 * HOUR, team=team))
    on.hours(1)
    assert teams_on(on) == ["poor", "rich"]
    assert any(finding.code == "budget-hold" for finding in renew_holds.keep(on.deps, look(on.deps)).findings)


def test_a_pool_that_only_grows_makes_nobody_leave() -> None:
    """In mode scale-up nothing is evicted for money."""
    on = stage({"rich": "5000", "poor": "0"})
    on.deps = replace(on.deps, mode="scale-up")
    for team in ("rich", "poor"):
        on.event(on.submit(team, gpus=4, run_s=2 * HOUR, team=team))
    on.hours(1)
    assert teams_on(on) == ["poor", "rich"]


def test_a_spot_notice_goes_before_pods_that_leave_for_want_of_money() -> None:
    """The cloud takes the node while they leave: all that is on it is saved, as after any notice."""
    on = stage({"rich": "5000", "poor": "0"}, most=2, capacity_type="spot")
    for team in ("rich", "poor"):
        on.event(on.submit(team, gpus=4, run_s=3 * HOUR, team=team))
    on.minutes(3)
    (kept,) = interruption_records.open_interruptions(on.deps)
    assert (kept.found.kind, kept.found.leaving) == ("out-of-budget", ("uid-poor",))
    told(on, kept.found.instance, "spot-interruption", 120)
    (kept,) = interruption_records.open_interruptions(on.deps)
    assert (kept.found.kind, kept.found.leaving) == ("spot-interruption", ())


def test_a_maintenance_in_three_days_shelters_no_pods_without_money() -> None:
    """The node's end is known and far off: they leave at once, and the node's own end goes on as it was."""
    on = stage({"rich": "5000", "poor": "0"}, most=2)
    on.event(on.submit("rich", gpus=4, run_s=9 * HOUR, team="rich"))
    on.minutes(6)
    told(on, "n1", "scheduled-change", 72 * HOUR)
    (known,) = interruption_records.open_interruptions(on.deps)
    on.submit("poor", gpus=4, run_s=3 * HOUR, team="poor")
    on.minutes(2)
    (kept,) = interruption_records.open_interruptions(on.deps)
    assert (kept.found.kind, kept.found.of_node.kind) == ("out-of-budget", "scheduled-change")
    told(on, "n1", "rebalance", None)
    assert [each.found.of_node.kind for each in interruption_records.open_interruptions(on.deps)] == [
        "scheduled-change"
    ]
    on.minutes(20)
    (kept,) = interruption_records.open_interruptions(on.deps)
    assert (kept.found.kind, kept.found.deadline) == ("scheduled-change", known.found.deadline)
    assert (teams_on(on), totals(on)["poor"], launches(on)) == (["rich"], Decimal(0), 1)


def test_an_end_that_comes_first_goes_on_by_itself() -> None:
    """The node's own end begins before they can have left: it goes on, and nothing of them is begun."""
    on = stage({"rich": "5000", "poor": "0"}, most=2)
    on.event(on.submit("rich", gpus=4, run_s=9 * HOUR, team="rich"))
    on.minutes(6)
    told(on, "n1", "scheduled-change", 600)
    on.submit("poor", gpus=4, run_s=3 * HOUR, team="poor")
    on.minutes(2)
    assert [each.found.kind for each in interruption_records.open_interruptions(on.deps)] == ["scheduled-change"]


def test_pods_leave_with_a_word_on_them_and_one_alert() -> None:
    """The alert names the node, that it stays, and whose budget has no room."""
    on = stage({"rich": "5000", "poor": "0"})
    for team in ("rich", "poor"):
        on.event(on.submit(team, gpus=4, run_s=3 * HOUR, team=team))
    on.hours(1)
    alerts = [alert for alert in on.alerts if alert.what.startswith("out-of-budget")]
    assert [alert.resolved for alert in alerts] == [False, True]
    assert "1 GPU pod leaves" in alerts[0].what
    assert "which stays" in alerts[0].what
    assert "team poor" in alerts[0].why


def test_many_nodes_that_go_over_at_once_pass_no_cap() -> None:
    """The payer's pods end on ten nodes in one look, and another team's go on there: each stop is held for before any
    node gets a longer stretch."""
    on = stage({"rich": "50000", "a": "30"}, most=10)
    for n in range(10):
        on.event(on.submit(f"rich-{n}", gpus=7, run_s=600, team="rich"))
    on.hours(0.1)
    for n in range(10):
        on.submit(f"a-{n}", gpus=1, run_s=10 * HOUR, team="a")
    on.hours(2)
    assert totals(on)["a"] <= Decimal(30)


def test_two_pods_of_which_one_is_paid_for_do_not_come_and_go_without_end() -> None:
    """Each alone would have room, both have not: once they left, the node opens less and less often."""
    on = stage({"rich": "5000", "poor": "1.20"})
    on.event(on.submit("rich", gpus=4, run_s=9 * HOUR, team="rich"))
    for n in range(2):
        on.submit(f"poor-{n}", gpus=2, run_s=9 * HOUR, team="poor")
    on.hours(2)
    assert max(stopped(on).values()) <= 8
    assert totals(on)["poor"] <= Decimal("1.20")


def test_a_pod_s_own_grace_buys_it_no_day() -> None:
    """It names a day to stop: it has half of its payer's stretch."""
    on = stage({"rich": "5000", "poor": "0"})
    for team, grace_s in (("rich", 30), ("poor", 86400)):
        made = shape(gpu=GpuRequest(count=4), team=team)
        pod = PodDemand(uid=team, namespace="ml", name=team, shape=made, created_at=on.deps.now(), grace_s=grace_s)
        on.world.submit(pod, 3 * HOUR)
        on.event(pod)
    on.world.evictions.lingers = True
    on.minutes(5)
    (kept,) = interruption_records.open_interruptions(on.deps)
    assert kept.found.deadline is not None
    assert kept.found.deadline - kept.found.begin <= timedelta(minutes=30)
    on.hours(1)
    assert teams_on(on) == ["rich"]


def test_pods_stay_once_nobody_acts_on_their_pool() -> None:
    """The mode changes while they are to leave: that is over, and a notice that comes later is a new one."""
    on = stage({"rich": "5000", "poor": "0"})
    for team in ("rich", "poor"):
        on.event(on.submit(team, gpus=4, run_s=3 * HOUR, team=team))
    on.minutes(3)
    on.deps = replace(on.deps, mode="advise")
    go_on(on.deps)
    assert interruption_records.open_interruptions(on.deps) == []
    last = interruption_records.last_filed(on.deps, "n1")
    assert last is not None
    assert (last.kind, last.outcome) == ("out-of-budget", "stayed")


def test_dollars_that_wait_for_a_workload_pay_for_no_neighbour() -> None:
    """Dollars of a Workload of the payer wait for a node of the pool, and a pod of a team without money came beside the
    payer's: that pod leaves all the same, and nothing is held for its team."""
    on = stage({"rich": "5000", "poor": "0"})
    on.event(on.submit("rich", gpus=6, run_s=3 * HOUR, team="rich"))
    on.minutes(6)
    on.submit("poor", gpus=2, run_s=3 * HOUR, team="poor")
    on.wait(60)
    (held,) = budget_accounts.every_hold(on.deps)
    assert workload_holds.hold(on.deps, "job", (held.value.terms,), on.deps.clock.now()) == ""
    before, snapshot = {each.value.id: each for each in budget_accounts.every_hold(on.deps)}, look(on.deps)
    lit = {one.instance: one for one in lit_instances(snapshot.view.nodes, snapshot.pools)}
    assert sorted(pod.team for one in lit.values() for pod in one.pods) == ["poor", "rich"]
    live = [(entry.value, lit.get(entry.value.instance)) for entry in before.values()]
    handover = Handover(on.deps, snapshot, before, lambda: None)
    after = handover.settle_owners(live)
    assert [pod.team for away in handover.away.values() for pod in away.pods] == ["poor"]
    assert [(hold.terms.team, hold.terms.owners) for hold, one in after if one] == [("rich", ())]


PODS = st.lists(
    st.tuples(
        st.sampled_from(["rich", "poor", "third"]),
        st.integers(1, 8),
        st.integers(0, 90),
        st.sampled_from([300, 1500, 4000, 9000]),
    ),
    min_size=2,
    max_size=8,
)
"""Pods: whose, how many GPUs, after how many minutes they come, how many seconds they run."""
EXCHANGED = [
    ("poor", 7, 85, 9000),
    ("rich", 3, 85, 300),
    ("poor", 7, 84, 4000),
    ("poor", 5, 38, 4000),
    ("third", 6, 28, 300),
    ("third", 4, 64, 9000),
    ("poor", 7, 2, 300),
    ("rich", 5, 13, 300),
]
"""The hold of an empty closed node, of which most was let go, goes over to a node that works."""


@example(pods=EXCHANGED, poor="2", third="60")
@given(pods=PODS, poor=st.sampled_from(["0", "0.10", "2", "11", "40"]), third=st.sampled_from(["0", "5", "60"]))
@settings(max_examples=25, deadline=None)
def test_no_team_passes_its_cap_or_ends_another_s_work(
    pods: list[tuple[str, int, int, int]], poor: str, third: str
) -> None:
    """Whoever comes, in whatever order: each account stays within its budget, all accounts make up the world's cost,
    and no pod of the team with money is stopped for it."""
    on = stage({"rich": "9000", "poor": poor, "third": third}, most=3)
    for minute in range(300):
        for n, (team, gpus, at, run_s) in enumerate(pods):
            if at == minute:
                pod = on.submit(f"{team}-{n}", gpus=gpus, run_s=run_s, team=team)
                on.event(pod)
        on.minutes(1)
        go_on(on.deps)
    found = totals(on)
    assert found["poor"] <= Decimal(poor)
    assert found["third"] <= Decimal(third)
    assert not [job for job in stopped(on) if "rich" in job]
    held = sum((hold.value.terms.usd_per_hour for hold in budget_accounts.every_hold(on.deps)), Decimal(0))
    assert held or abs(sum(found.values()) - on.world.cost().quantize(Decimal("0.01"))) <= Decimal("0.03")
