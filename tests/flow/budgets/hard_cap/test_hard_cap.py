"""A hard budget holds: nodes are held for in stretches, and stopped in order before what is held is used up."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from stage import START, Stage

from pilotlight.decide.money.budget_limits import window
from pilotlight.decide.money.economics import CALL_S, stop_s
from pilotlight.errors import Denied
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.ports.clouds import CALL_S as PORTS_CALL_S
from pilotlight.units import HOUR
from pilotlight.world.faults import Faults
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

STOP = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=24 * HOUR, may_move=("hard-cap",))
KEEP = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=2 * HOUR)


def stage(usd: str, rules: ClassPolicy = STOP, **fields: Any) -> Stage:
    """A stage with a hard budget of so many dollars a day."""
    budget = Budget(name="all", usd=Decimal(usd), period="day", **fields)
    return Stage(budgets=(budget,), classes={"batch": rules, "serving": KEEP})


def cost_by_day(on: Stage) -> list[Decimal]:
    """What all nodes have really cost in each day of the budget's zone, by the world's log alone."""
    (budget,) = on.deps.policy.budgets
    ends = {r["node"]: r["t"] for r in on.events("terminate")}
    out: dict[Any, Decimal] = {}
    for record in on.events("launch"):
        price = on.catalog.instance_types[record["type"]].prices["on-demand"].usd_per_hour
        at = START + timedelta(seconds=record["t"])
        end = START + timedelta(seconds=ends.get(record["node"], on.world.now_s))
        while at < end:
            day, then = window(budget, at)
            until = min(end, then)
            out[day] = out.get(day, Decimal(0)) + price * Decimal((until - at).total_seconds()) / 3600
            at = until
    return [out[day] for day in sorted(out)]


def test_the_time_of_a_call_is_the_ports() -> None:
    """What a stop leaves for the cloud's call is the deadline of that call."""
    assert CALL_S == PORTS_CALL_S


def test_work_that_goes_on_is_stopped_before_the_cap() -> None:
    """A pod that runs for twenty hours at a dollar an hour leaves its node before a hard six dollars are spent."""
    on = stage("6")
    on.event(on.submit("a", run_s=20 * HOUR))
    on.minutes(11 * 60)
    assert not on.world.nodes
    (cost,) = cost_by_day(on)
    assert Decimal("5.8") < cost <= 6
    told = [a for a in on.alerts if a.kind == "interruption"]
    assert [a.resolved for a in told] == [False, True]
    assert told[0].what.startswith("hard-cap of n1")
    assert told[0].next == "saved, drained and released before that; nothing new is bought for it"
    assert told[1].why == "it was released before what its budget holds for it ended"


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_no_day_is_passed_by_what_is_bought_before_its_end(zone: str) -> None:
    """Twelve nodes wanted just before midnight, for two days: no day of the zone costs more than its cap."""
    on = stage("10", timezone=zone)
    on.wait((window(on.deps.policy.budgets[0], START)[1] - START).total_seconds() - 14 * 60)
    for n in range(12):
        on.event(on.submit(f"p{n}", run_s=48 * HOUR))
    on.minutes(14 * 60)
    assert all(cost <= 10 for cost in cost_by_day(on))
    assert sum(cost_by_day(on)) > 5


def test_a_disruption_budget_gives_way_when_time_runs_out() -> None:
    """A pod that its disruption budget keeps from being evicted is deleted within its grace, and the cap is kept."""
    on = stage("6")
    on.world.evictions.disruptions["ml"] = 0
    on.event(on.submit("a", run_s=20 * HOUR))
    on.minutes(8 * 60)
    assert not on.world.nodes
    assert max(cost_by_day(on)) <= 6


class Silent(WorldPools):
    """A cloud that says nothing of an instance."""

    def instance(self, pool: str, instance: str) -> None:
        """Nothing."""


class Undeletable(WorldCluster):
    """A cluster that does not let us delete pods."""

    def delete(self, namespace: str, pod: str, uid: str, grace_s: float) -> None:
        """Refused."""
        raise Denied(f"delete {namespace}/{pod}: forbidden")


class Cloud(WorldPools):
    """A cloud that takes an instance back with whatever runs on it, as clouds do."""

    def take_away(self, pool: str, instance: str) -> None:
        """What ran on it is lost."""
        if self.holds(pool, instance):
            self._world.terminate(instance, "released", evict=True)


def test_where_pods_may_not_be_deleted_they_end_with_their_node() -> None:
    """A pod that can be neither evicted nor deleted runs until its node goes: in time, and people are told its loss."""
    on = stage("6")
    on.deps = replace(on.deps, cluster=Undeletable(on.world), pools=Cloud(on.world))
    on.world.evictions.disruptions["ml"] = 0
    on.event(on.submit("a", run_s=20 * HOUR))
    on.minutes(8 * 60)
    assert not on.world.nodes
    assert Decimal("5.8") < max(cost_by_day(on)) <= 6
    begun, over = (a for a in on.alerts if a.kind == "interruption")
    assert "1 GPU pod on it" in begun.what
    assert over.resolved
    lost = next(iter(interruption_records.every(on.deps.state, "c"))).lost_gpu_hours
    assert lost > 5
    assert f"{lost:.1f}" in over.what


def test_a_class_that_may_not_be_stopped_ends_where_its_whole_run_ends() -> None:
    """A run of two hours that takes twenty is held for whole, and ends before the hard budget is passed."""
    on = stage("6", KEEP)
    on.event(on.submit("a", run_s=20 * HOUR))
    on.minutes(8 * 60)
    assert max(cost_by_day(on)) <= 6
    assert on.world.launches >= 1
    assert [a.what.split(" of ")[0] for a in on.alerts if a.kind == "interruption"][:1] == ["max-runtime"]


@pytest.mark.parametrize("rules", [KEEP, STOP], ids=["bought for a run of its own kind", "bought in stretches"])
def test_a_run_that_bound_by_itself_is_not_cut_short(rules: ClassPolicy) -> None:
    """A pod that may not be stopped binds to a node with too little held: it runs to its end, and is told of."""
    on = stage("1", rules)
    on.event(on.submit("brief", run_s=300, max_run_s=600.0))
    on.minutes(4)
    on.submit("long", run_s=2 * HOUR - 60, max_run_s=float(2 * HOUR), workload_class="serving")
    on.minutes(3 * 60)
    assert on.world.launches == 1
    assert [job.id for job in on.world.finished] == ["uid-brief", "uid-long"]
    assert on.world.interruptions == 0
    assert [a for a in on.alerts if a.kind == "finding-budget-hold"]


def test_a_run_that_bound_by_itself_is_stopped_after_its_end() -> None:
    """One that goes on past its longest run is stopped within minutes of that."""
    on = stage("1", KEEP)
    on.event(on.submit("brief", run_s=300, max_run_s=600.0))
    on.minutes(4)
    on.submit("long", run_s=20 * HOUR, max_run_s=float(2 * HOUR), workload_class="serving")
    on.minutes(3 * 60)
    (stopped,) = [r["t"] for r in on.events("stop") if r["job"] == "uid-long"]
    (began,) = [r["t"] for r in on.events("start") if r["job"] == "uid-long"]
    assert 2 * HOUR <= stopped - began <= 2 * HOUR + 5 * 60


@pytest.mark.parametrize("days", [0.02, 3])
def test_a_notice_does_not_keep_a_node_past_its_cap(days: float) -> None:
    """What a cloud is said to do later, and neither confirms nor denies, gives way to the stop at the cap."""
    on = stage("6")
    on.deps = replace(on.deps, pools=Silent(on.world))
    on.event(on.submit("a", run_s=20 * HOUR))
    on.minutes(5 * 60 + 45)
    now = on.world.clock.now()
    maintained = InterruptionNotice(
        cluster="c",
        instance="n1",
        kind="scheduled-change",
        cloud="world",
        at=now,
        deadline=now + timedelta(days=days),
    )
    interrupt(on.deps, maintained)
    on.minutes(2 * 60)
    assert max(cost_by_day(on)) <= 6
    told = [(a.what.split(" of ")[0], a.resolved) for a in on.alerts if a.kind == "interruption"]
    assert told == [("scheduled-change", False), ("scheduled-change", True), ("hard-cap", False), ("hard-cap", True)]


def test_work_on_a_node_that_nobody_bought_is_not_stopped_while_its_budget_has_room() -> None:
    """A group put a node in a lost one's place: what may be stopped there is held for in stretches, and runs on."""
    on = stage("10", STOP)
    on.submit("a", run_s=3 * HOUR)
    on.world.launch("one")
    on.minutes(4 * 60)
    assert [job.id for job in on.world.finished] == ["uid-a"]
    assert on.world.interruptions == 0


def test_without_consent_nothing_is_stopped() -> None:
    """A class without an end is bought for and runs on; it is told of once, where its budget has no more room."""
    on = stage("20", ClassPolicy(gpu_models="any", idle_timeout=300))
    assert not on.deps.policy.ends("batch")
    on.event(on.submit("a", run_s=30 * HOUR))
    on.minutes(60)
    told = [a for a in on.alerts if a.kind == "finding-budget-endless"]
    assert (on.world.launches, told) == (1, [])
    on.minutes(29 * 60)
    assert not [a for a in on.alerts if a.kind == "interruption"]
    (alert,) = [a for a in on.alerts if a.kind == "finding-budget-endless"]
    assert alert.what == "class batch runs on past a hard budget"
    assert alert.why.startswith("hard budget all has no more room, and classes.batch has no end: its pods run on")
    assert "may_move: [hard-cap]" in alert.why


def test_a_stretch_is_renewed_while_there_is_room() -> None:
    """Nine hours of work under a budget that has room for all of it run to their end, and cost what they cost."""
    on = stage("40")
    on.event(on.submit("a", run_s=9 * HOUR))
    on.minutes(10 * 60)
    assert [job.id for job in on.world.finished] == ["uid-a"]
    assert on.world.launches == 1


def test_a_first_stretch_is_what_the_cap_leaves() -> None:
    """Two hours' money are enough for a node that may be stopped; less than a boot and a stop buys nothing."""
    on = stage("2")
    on.event(on.submit("a", run_s=20 * HOUR))
    assert on.nodes("one") == 1
    on.minutes(4 * 60)
    assert max(cost_by_day(on)) <= 2
    poor = stage(str(round((180 + stop_s() - 60) / 3600, 3)))
    poor.event(poor.submit("a", run_s=HOUR))
    assert poor.nodes("one") == 0


def test_looks_say_when_a_stop_would_have_to_begin() -> None:
    """Where nobody looks but when the last look asked for it, a node is told to go in time for its cap."""
    on = stage("6")
    on.event(on.submit("a", run_s=20 * HOUR))
    on.minutes(5)
    answer = on.tick()
    while not interruption_records.open_interruptions(on.deps) and answer.look_again_at is not None:
        on.wait((answer.look_again_at - on.deps.now()).total_seconds() + 1)
        answer = on.tick()
    (stopped,) = interruption_records.open_interruptions(on.deps)
    assert stopped.found.deadline is not None
    assert (stopped.found.deadline - START).total_seconds() <= 6 * HOUR


def test_an_empty_node_that_is_held_for_no_further_goes_in_time_for_who_looks_only_when_asked() -> None:
    """A cap that another node's work has used up: the idle one is given back before what is held for it is spent."""
    idle = ClassPolicy(gpu_models="any", idle_timeout=2 * HOUR, max_runtime=24 * HOUR, may_move=("hard-cap",))
    on = stage("0.5", idle)
    on.event(on.submit("a", run_s=240))
    on.minutes(9)
    assert on.nodes("one") == 1
    answer = on.tick()
    while on.world.nodes and answer.look_again_at is not None:
        on.wait((answer.look_again_at - on.deps.now()).total_seconds() + 1)
        answer = on.tick()
    assert not on.world.nodes
    assert max(cost_by_day(on)) <= Decimal("0.5")


class Behind(WorldPools):
    """A cloud whose clock is two seconds behind the store's."""

    def describe(self) -> list[PoolState]:
        """Instances are older by that."""
        early = timedelta(seconds=2)
        return [
            msgspec.structs.replace(
                pool,
                booting=tuple(msgspec.structs.replace(b, requested_at=b.requested_at - early) for b in pool.booting),
            )
            for pool in super().describe()
        ]


@pytest.mark.parametrize(("rules", "usd"), [(STOP, "0.20"), (KEEP, "2.1334")], ids=["a stretch", "a whole run"])
def test_a_cloud_whose_clock_is_behind_does_not_close_a_node_that_takes_all_of_a_cap(
    rules: ClassPolicy, usd: str
) -> None:
    """What was granted up to the last cent is not passed by two seconds of a clock: the pod runs."""
    budget = Budget(name="all", usd=Decimal(usd), period="day")
    on = Stage(budgets=(budget,), classes={"batch": rules, "serving": KEEP}, faults=Faults(gpu_lag_s=45))
    on.deps = replace(on.deps, pools=Behind(on.world))
    on.event(on.submit("a", run_s=240))
    on.minutes(3)
    assert [(n.joined, n.ready, n.cordoned) for n in on.world.nodes.values()] == [(True, False, False)]
    on.minutes(9)
    assert [job.id for job in on.world.finished] == ["uid-a"]


def test_money_that_frees_keeps_a_node_from_being_stopped() -> None:
    """A cap that is raised before the stop begins lets the work go on."""
    on = stage("6")
    on.event(on.submit("a", run_s=7 * HOUR))
    on.minutes(5 * 60)
    policy = on.deps.policy
    fields = {name: getattr(policy, name) for name in policy.__struct_fields__ if name != "budgets"}
    raised = Budget(name="all", usd=Decimal(30), period="day")
    on.deps = replace(on.deps, policy=type(policy)(**fields, budgets=(raised,)))
    on.minutes(3 * 60)
    assert [job.id for job in on.world.finished] == ["uid-a"]


def test_pools_that_only_grow_are_told_and_not_stopped() -> None:
    """In mode scale-up nothing is taken: the overrun is told."""
    pools = {"one": PoolPolicy(instance_type="one", mode="scale-up")}
    budget = Budget(name="all", usd=Decimal(2), period="day")
    on = Stage(budgets=(budget,), classes={"batch": STOP}, pools=pools)
    on.event(on.submit("a", run_s=20 * HOUR))
    on.minutes(3 * 60)
    assert len(on.world.nodes) == 1
    assert [a for a in on.alerts if a.kind == "finding-budget-hold"]
