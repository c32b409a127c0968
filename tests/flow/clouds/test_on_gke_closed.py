"""Pools of GKE that close beside us: nothing is bought there, and what we asked for goes back all the same."""

from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from stage import Stage
from test_on_gke import Mortal, _Dead, on_gke, short

from pilotlight.adapters.pools.gke import google_rest
from pilotlight.errors import Retry
from pilotlight.facts.money.money_policy import Budget, Caps
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.records import brake_records, ledger
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR

BOTH = {"one": PoolPolicy(instance_type="one", max=2), "eight": PoolPolicy(instance_type="eight", max=2)}
DAY = (Budget(name="all", usd=Decimal(1000), period="day"),)
CLOSED: dict[str, dict[str, Any]] = {
    "auto-repair without an exclusion": {"management": {"autoRepair": True}},
    "autoscaling switched on": {"autoscaling": {"enabled": True, "maxNodeCount": 3}},
    "status ERROR": {"status": "ERROR"},
    "flex-start": {"config": {"flexStart": True}},
    "of a ComputeClass": {"config": {"labels": {"cloud.google.com/compute-class": "gpu"}}},
}


@pytest.fixture(autouse=True)
def _not_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google_rest, "PAUSES_S", (0.0, 0.0))


def go_on(stage: Stage, minutes: int) -> None:
    """Ticks, whatever comes of each."""
    for _ in range(minutes):
        stage.wait(60)
        with suppress(Retry):
            stage.tick()


@pytest.mark.parametrize("fields", CLOSED.values(), ids=CLOSED)
def test_what_could_not_be_made_is_called_off_in_a_pool_that_closed_since(fields: dict[str, Any]) -> None:
    """A stock-out, then another hand closes the pool: its group tries no more, and hours later nothing is bought."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        short(stage)
        (name,) = gke.tried
        gke.extra["one"] = fields
        go_on(stage, 5)
        assert (gke.deleted(), gke.tried) == ([name], {})
        gke.try_again()
        go_on(stage, 30)
        assert (stage.nodes("one"), stage.nodes("eight")) == (0, 1)


SERVED = ("autoscaling switched on", "flex-start", "of a ComputeClass")


@pytest.mark.parametrize("how", [*CLOSED, "an upgrade", "a group that is gone"])
def test_a_pod_goes_elsewhere_where_nobody_makes_nodes(how: str) -> None:
    """The cheapest pool is closed: another pool is bought from at once, but where an autoscaler may serve the pod."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        gke.extra["one"] = CLOSED.get(how, {})
        gke.doubled |= {"one"} if how == "an upgrade" else set()
        gke.refuses |= {"one": 404} if how == "a group that is gone" else {}
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        stage.minutes(5)
        assert (stage.nodes("one"), stage.nodes("eight")) == (0, int(how not in SERVED))


def test_a_pod_without_another_pool_waits_and_hears_why() -> None:
    """For as long as its pool is closed; then it is bought for."""
    with on_gke(pools={"one": BOTH["one"]}) as (stage, gke):
        gke.extra["one"] = CLOSED["auto-repair without an exclusion"]
        answer = stage.event(stage.submit("a", run_s=2 * HOUR))
        stage.minutes(10)
        assert "--no-enable-autorepair" in str(answer)
        assert any("--no-enable-autorepair" in alert.why for alert in stage.alerts)
        gke.extra.clear()
        stage.minutes(6)
        assert stage.nodes("one") == 1


@pytest.mark.parametrize("fields", CLOSED.values(), ids=CLOSED)
def test_an_idle_node_of_ours_goes_back_in_a_pool_that_closed_since(fields: dict[str, Any]) -> None:
    """Its pod has ended and its idle time is over: it is deleted by its name, and nothing is bought there."""
    with on_gke(pools={"one": BOTH["one"]}, budgets=DAY) as (stage, gke):
        stage.event(stage.submit("a", run_s=300))
        stage.minutes(5)
        (name,) = gke.world.nodes
        gke.extra["one"] = fields
        go_on(stage, 30)
        assert gke.deleted() == [name]
        before = len(gke.changes())
        stage.event(stage.submit("c"))
        go_on(stage, 5)
        assert (stage.nodes("one"), len(gke.changes())) == (0, before)


@pytest.mark.parametrize("pool", ["one", "eight"])
@pytest.mark.parametrize("status", [409, 503])
def test_a_pool_whose_deletions_are_never_taken_on_keeps_no_other_pools_nodes(pool: str, status: int) -> None:
    """Its group is in use by another operation, or its zone is out, for an hour: an idle node elsewhere goes back."""
    other = {"one": "eight", "eight": "one"}[pool]
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        for name, gpus in (("a", 1), ("b", 8)):
            stage.event(stage.submit(name, gpus=gpus, run_s=300))
        gke.stuck_deletions[pool] = status
        go_on(stage, 60)
        assert (stage.nodes(pool), stage.nodes(other)) == (1, 0)
        gke.stuck_deletions.clear()
        go_on(stage, 15)
        assert stage.nodes(pool) == 0


def test_a_node_past_its_hard_budget_goes_in_a_pool_that_closed_since() -> None:
    """Its budget ends its work in time, whoever switched auto-repair on."""
    day = (Budget(name="all", usd=Decimal(6), period="day"),)
    classes = {"batch": ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=24 * HOUR, may_move=("hard-cap",))}
    with on_gke(pools={"one": BOTH["one"]}, budgets=day, classes=classes) as (stage, gke):
        stage.event(stage.submit("a", workload_class="batch", run_s=20 * HOUR))
        stage.minutes(5)
        (name,) = gke.world.nodes
        gke.extra["one"] = CLOSED["auto-repair without an exclusion"]
        go_on(stage, 420)
        assert gke.deleted() == [name]


def test_a_node_that_the_autoscaler_made_is_left_to_it() -> None:
    """Autoscaling is on: ours goes when it is idle; one by a name of the group's own stays, open, whatever it costs."""
    with on_gke(pools={"one": BOTH["one"]}) as (stage, gke):
        stage.event(stage.submit("a", run_s=300))
        stage.minutes(5)
        (name,) = gke.world.nodes
        gke.extra["one"] = CLOSED["autoscaling switched on"]
        gke.another_hand("one")
        go_on(stage, 60)
        assert gke.deleted() == [name]
        (left,) = stage.deps.cluster.observe().nodes
        assert left.schedulable


def test_a_pool_that_gets_a_second_zone_gives_its_idle_node_back() -> None:
    """The policy names no zone: nothing more is bought, and a name needs none."""
    with on_gke(pools={"one": BOTH["one"]}) as (stage, gke):
        stage.event(stage.submit("a", run_s=300))
        stage.minutes(5)
        gke.zones["one"] = ["europe-west4-a", "europe-west4-b"]
        go_on(stage, 30)
        assert (len(gke.deleted()), stage.nodes("one")) == (1, 0)


def test_a_pool_that_a_person_paused_keeps_what_it_has_though_it_closed() -> None:
    """A person's word is above it: nothing is called off until they resume it."""
    with on_gke(pools=BOTH) as (stage, gke):
        short(stage)
        gke.extra["one"] = CLOSED["status ERROR"]
        brake_records.pause(stage.deps.state, "c", "one", "looking at it", stage.world.clock.now())
        go_on(stage, 5)
        assert (gke.deleted(), len(gke.tried)) == ([], 1)


@pytest.mark.parametrize("status", [403, 404])
def test_a_group_that_cannot_be_read_stops_no_other_pool(status: int) -> None:
    """One pool is deleted beside us, or not ours to see: it is told by its name; the other buys, and gives back."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        gke.refuses["eight"] = status
        stage.event(stage.submit("a", run_s=300))
        stage.minutes(30)
        assert (stage.world.launches, len(gke.deleted()), stage.nodes("one")) == (1, 1, 0)
        told = {alert.what: alert.why for alert in stage.alerts}
        assert "group gke-prod-eight-pool-0a1b2c3d-grp" in told["pool eight cannot be read whole"]


@pytest.mark.parametrize(("status", "bought"), [(403, 0), (404, 1)])
def test_what_a_hidden_group_makes_anew_counts_against_caps(status: int, bought: int) -> None:
    """Spot that is taken comes again unseen: its pool had one, and the cap is one; a group that is gone has none."""
    with on_gke(pools=BOTH, caps=Caps(nodes=1)) as (stage, gke):
        stage.event(stage.submit("a", workload_class="batch", run_s=9 * HOUR))
        stage.minutes(8)
        (name,) = gke.world.nodes
        gke.refuses["one"] = status
        gke.world.terminate(name, "taken", evict=True)
        stage.minutes(5)
        assert stage.nodes("eight") == bought


def test_what_boots_in_a_pool_that_cannot_be_read_is_not_bought_twice() -> None:
    """Rights are lost while it boots: its pod waits for it, its dollars are held, and it is used once it comes."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        gke.never.add("one")
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        gke.refuses["one"] = 403
        stage.minutes(8)
        assert (stage.nodes("eight"), len(list(HOLD.scan(stage.deps.state, "")))) == (0, 1)
        gke.refuses.clear()
        gke.never.clear()
        gke.make()
        stage.minutes(5)
        assert (stage.world.launches, stage.nodes("one")) == (1, 1)


@pytest.mark.parametrize("status", [403, 404])
def test_a_node_of_a_group_that_cannot_be_read_is_not_told_gone(status: int) -> None:
    """People were told that its release was not made: that is over once the group is read and has it no more."""
    with on_gke(pools=BOTH) as (stage, gke):
        stage.event(stage.submit("a", run_s=HOUR))
        (node,) = gke.world.nodes
        ledger.mark_told(stage.deps.state, "c", f"undone/release/one/{node}")
        gke.refuses["one"] = status
        go_on(stage, 1)
        assert [alert for alert in stage.alerts if alert.kind == "capacity-undone"] == []
        gke.world.terminate(node, "reclaimed", evict=True)
        gke.refuses.clear()
        go_on(stage, 1)
        assert [alert.what for alert in stage.alerts if alert.kind == "capacity-undone"] == [f"node {node} is gone"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_calling_off_in_a_closed_pool_outlives_a_death_at_any_write(after: bool) -> None:
    """At every third write: whoever goes on calls it off, nothing is bought twice, and one node's dollars are held."""
    deaths = 0
    for write in count(1, 3):
        with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
            state = Mortal(stage.world.clock)
            stage.deps = replace(stage.deps, state=state)
            short(stage)
            gke.extra["one"] = CLOSED["autoscaling switched on"]
            stage.wait(60)
            state.left, state.after = write, after
            try:
                stage.tick()
            except _Dead:
                deaths += 1
            else:
                break
            go_on(stage, 12)
            gke.try_again()
            assert (gke.tried, sum(stage.world.fleet.desired.values()), stage.world.launches) == ({}, 1, 1), write
            assert len(list(HOLD.scan(state, ""))) == 1, write
    assert deaths > 5
