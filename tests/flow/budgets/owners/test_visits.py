"""Pods without money that come again and again: what they cost the teams that pay, and which of them may stay."""

from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from owners_stage import STOPS, launches, stage, stopped, teams_on, totals
from stage import Stage

from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.budgets import budget_holds
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.units import HOUR


def submit(on: Stage, name: str, team: str, gpus: int, run_s: float, milli: int = 1000, grace_s: float = 30) -> None:
    """A pod that waits, of which no event tells."""
    made = shape(gpu=GpuRequest(count=gpus, milli=milli), team=team)
    uid, now = f"uid-{name}", on.world.clock.now()
    on.world.submit(PodDemand(uid=uid, namespace="ml", name=name, shape=made, created_at=now, grace_s=grace_s), run_s)


def minutes(on: Stage, count: int) -> None:
    """So many minutes, with a tick in each."""
    for _ in range(count):
        on.wait(60)
        on.tick()
        go_on(on.deps)


def started(on: Stage, job: str) -> list[float]:
    """Minutes at which a job was started."""
    return [line["t"] / 60 for line in on.log if line["event"] == "start" and line["job"] == job]


@pytest.mark.parametrize("every", [4, 10, 25])
def test_visits_of_pods_without_money_keep_no_node_lit(every: int) -> None:
    """A team's pod ends after ten minutes, and pods without money come, each gone before the next: the node goes out an
    idle timeout after the first visit at the latest, though it was never empty for that long."""
    on = stage({"rich": "5000", "poor": "0"})
    on.event(on.submit("rich", gpus=4, run_s=600, team="rich"))
    for minute in range(150):
        if minute % every == every - 3:
            for job in list(on.world.pending.values()):
                on.world.delete(job)
        if minute % every == 0:
            submit(on, f"poor-{minute}", "poor", 4, 5 * HOUR)
        minutes(on, 1)
    assert launches(on) == 1
    assert on.nodes("eight") == 0
    assert on.world.cost() <= 32 * Decimal(15 + 30 + every + 30 + 5) / 60
    assert totals(on)["poor"] == 0


def test_a_warm_node_that_they_visit_is_not_bought_again() -> None:
    """A pool keeps one node warm, and a pod without money waits for it all day: it is closed to that, and still the
    pool's warm node."""
    budgets = tuple(
        Budget(name=team, scope=BudgetScope(team=team), usd=Decimal(usd), period="day")
        for team, usd in (("rich", "5000"), ("poor", "0"))
    )
    pool = PoolPolicy(instance_type="eight", max=2).with_warm(1)
    on = Stage(pools={"eight": pool}, budgets=budgets, classes={"batch": STOPS})
    minutes(on, 6)
    submit(on, "poor", "poor", 2, 30 * HOUR)
    minutes(on, 120)
    assert launches(on) == on.nodes("eight") == 1
    on.event(on.submit("rich", gpus=8, run_s=600, team="rich"))
    minutes(on, 3)
    assert teams_on(on) == ["rich"]


@pytest.mark.parametrize("idle", [120, 600, 1800])
@pytest.mark.parametrize("poor", [1, 3])
def test_a_pod_that_is_paid_for_gets_in_after_the_older_ones_that_are_not(poor: int, idle: int) -> None:
    """They bind to its node first, once each: evicted pods are made anew and queue behind it."""
    on = stage({"rich": "5000", "poor": "0"}, batch=msgspec.structs.replace(STOPS, idle_timeout=idle))
    for n in range(poor):
        submit(on, f"poor-{n}", "poor", 8, 30 * HOUR)
    minutes(on, 2)
    on.event(on.submit("rich", gpus=8, run_s=HOUR, team="rich"))
    minutes(on, 200)
    assert len(started(on, "uid-rich")) == 1
    assert stopped(on)["uid-rich"] == 0
    assert launches(on) <= 1 + poor
    assert max(stopped(on).values()) <= 3


def test_of_a_team_that_cannot_pay_for_all_its_pods_the_older_ones_stay() -> None:
    """Two pods of a team beside another's, and dollars for the smaller: that one runs to its end, whichever is older,
    and the other leaves."""
    for order in (("small", "big"), ("big", "small")):
        on = stage({"rich": "5000", "poor": "5"})
        on.event(on.submit("rich", gpus=1, run_s=5 * HOUR, team="rich"))
        minutes(on, 3)
        for name in order:
            gpus, run_s, milli = (6, 5 * HOUR, 1000) if name == "big" else (1, 900, 125)
            submit(on, name, "poor", gpus, run_s, milli)
            on.wait(1)
        minutes(on, 90)
        assert len(started(on, "uid-small")) == 1, order
        assert stopped(on)["uid-small"] == 0, order
        assert stopped(on)["uid-big"] > 0, order
        assert totals(on)["poor"] <= 5


@pytest.mark.parametrize(("nodes", "usd"), [(10, "30"), (10, "40"), (20, "60")])
def test_what_is_settled_and_held_of_many_nodes_never_stands_above_a_cap(nodes: int, usd: str) -> None:
    """Many nodes go over to one team in one look, each of which it could pay for by itself: at no minute do its
    accounts hold more than its limit."""
    on = stage({"rich": "50000", "a": usd}, most=nodes)
    on.world.evictions.lingers = nodes == 10
    for n in range(nodes):
        on.event(on.submit(f"rich{n}", gpus=7, run_s=600, team="rich"))
    minutes(on, 6)
    for n in range(nodes):
        submit(on, f"a{n}", "a", 1, 10 * HOUR)
    for _ in range(40):
        minutes(on, 1)
        for each in budget_holds.balances(on.deps, on.deps.state.now()).balances:
            assert each.total <= each.meter.limit + Decimal("0.005")
    assert on.deps.now() - on.world.moment(0) > timedelta(minutes=40)


@pytest.mark.parametrize(("old_s", "young_s"), [(60, 30), (1800, 30), (30, 600)])
@pytest.mark.parametrize("usd", ["1", "1.80", "5"])
def test_two_pods_of_a_team_with_unlike_graces_are_told_apart(usd: str, old_s: float, young_s: float) -> None:
    """Each alone could be paid for until it has left, both could not: a look ends, and the cap holds."""
    on = stage({"rich": "5000", "poor": usd})
    on.event(on.submit("rich", gpus=4, run_s=5 * HOUR, team="rich"))
    minutes(on, 5)
    submit(on, "old", "poor", 1, 5 * HOUR, grace_s=old_s)
    on.wait(1)
    submit(on, "young", "poor", 3, 5 * HOUR, grace_s=young_s)
    minutes(on, 20)
    assert launches(on) == 1
    assert totals(on)["poor"] <= Decimal(usd)


@pytest.mark.parametrize(("usd", "grace_s", "rich_s"), [("8", 1700.0, 300.0), ("14", 600.0, 480.0)])
def test_an_owner_pays_for_its_pods_until_those_that_leave_have_left(usd: str, grace_s: float, rich_s: float) -> None:
    """Its old pod stops at once, its young one takes long, and its neighbour ends meanwhile: the node is never its own
    for longer than its budget holds."""
    on = stage({"rich": "5000", "a": usd})
    on.world.evictions.lingers = True
    on.event(on.submit("rich", gpus=2, run_s=rich_s, team="rich"))
    minutes(on, 4)
    submit(on, "old", "a", 1, 9 * HOUR)
    on.wait(5)
    submit(on, "young", "a", 4, 9 * HOUR, grace_s=grace_s)
    for _ in range(60):
        minutes(on, 1)
        for each in budget_holds.balances(on.deps, on.deps.state.now()).balances:
            assert each.total <= each.meter.limit + Decimal("0.005")


def test_a_payer_s_pods_find_the_room_beside_those_that_are_not_paid_for() -> None:
    """A pod without money waits all day for a node with room for it and for the payer's short pods, one each ten
    minutes: these start at once, on the nodes of the first minutes."""
    on = stage({"rich": "5000", "poor": "0"}, most=3)
    on.event(on.submit("rich", gpus=4, run_s=10 * HOUR, team="rich"))
    minutes(on, 4)
    submit(on, "poor", "poor", 1, 30 * HOUR)
    for n in range(12):
        on.event(on.submit(f"rich-{n}", gpus=2, run_s=300, team="rich"))
        minutes(on, 10)
    assert [len(started(on, f"uid-rich-{n}")) for n in range(12)] == [1] * 12
    assert launches(on) <= 2


@pytest.mark.parametrize("gang", [False, True])
def test_a_closed_node_does_not_open_for_pods_that_would_have_to_leave_it_again(gang: bool) -> None:
    """A team pays for a small pod beside another's, and waits with a gang, or a pod with a grace of 20 minutes: its
    dollars do not last for these, and they are evicted once or twice."""
    on = stage({"rich": "5000", "poor": "3" if not gang else "1.20"})
    on.event(on.submit("rich", gpus=4, run_s=9 * HOUR, team="rich"))
    minutes(on, 4)
    submit(on, "small", "poor", 1, 9 * HOUR, 125)
    minutes(on, 1)
    if gang:
        on.submit_gang("pg", 2, run_s=9 * HOUR, gpus=2, team="poor")
    else:
        submit(on, "long", "poor", 1, 9 * HOUR, grace_s=1200)
    minutes(on, 120)
    assert max(stopped(on).values()) <= 2
