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


def submit(on: Stage, name: str, team: str, gpus: int, run_s: float, milli: int = 1000) -> None:
    """A pod that waits, of which no event tells."""
    made = shape(gpu=GpuRequest(count=gpus, milli=milli), team=team)
    uid, now = f"uid-{name}", on.world.clock.now()
    on.world.submit(PodDemand(uid=uid, namespace="ml", name=name, shape=made, created_at=now), run_s)


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
