"""A pool that was handed back is left alone in every way; one without a price stops no look."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from stage import Stage
from test_old_nodes import Aged
from test_on_aws import on_aws

from pilotlight.errors import Denied, Retry
from pilotlight.facts.labels import HANDED_BACK
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.nodes.pool_state import PoolRules, PoolState
from pilotlight.facts.policy import ClassPolicy
from pilotlight.units import HOUR

WHEN = "2026-11-20T12:00:00Z"
STOPS = {"batch": ClassPolicy(gpu_models="any", idle_timeout=300, may_move=("hard-cap",), hold=HOUR)}


class Given:
    """The world's pools, of which pool ``one`` is handed back once ``given``; what is called of it then is noted."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.given, self.lost = inner, False, False
        self.calls: list[str] = []

    def describe(self) -> tuple[PoolState, ...]:
        """As the inner ones, with the tag once it is there."""
        rules = PoolRules(group="one", handed_back=WHEN)
        found: Sequence[PoolState] = self.inner.describe()
        return tuple(msgspec.structs.replace(p, rules=rules) if self.given and p.name == "one" else p for p in found)

    def release(self, pool: str, instance: str, *, gate: Any) -> None:
        """One is let out and its answer is lost, where ``lost`` says so."""
        self.calls += ["release"] if self.given else []
        if self.lost:
            self.lost = False
            gate()
            raise Retry("timed out")
        self.inner.release(pool, instance, gate=gate)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def given(stage: Stage) -> Given:
    """The stage's pools, wrapped."""
    pools = Given(stage.deps.pools)
    stage.deps = replace(stage.deps, pools=pools)  # type: ignore[arg-type]
    return pools


def capped() -> Stage:
    """A node at work under a hard budget that stops it after some six hours."""
    budget = Budget(name="all", usd=Decimal(6), period="month", scope=BudgetScope(pool="one"))
    stage = Stage(budgets=(budget,), classes=STOPS)
    stage.submit("a", run_s=100 * HOUR)
    stage.tick()
    stage.minutes(10)
    return stage


def without(stage: Stage, pool: str) -> None:
    """As ``offerings()`` leaves it where the pool's price is not known, or the pool has left the policy."""
    stage.deps = replace(stage.deps, offerings=tuple(o for o in stage.deps.offerings if o.pool != pool))


def looks(stage: Stage, count: int, every_s: float = 60) -> None:
    """So many looks; one whose call is answered late is looked at again."""
    for _ in range(count):
        stage.wait(every_s)
        try:
            stage.tick()
        except Retry:
            continue


def test_a_hard_budget_ends_no_job_of_a_pool_that_was_handed_back() -> None:
    """It is as a paused pool: its pod runs on, its node takes pods, and nothing is called."""
    stage = capped()
    pools = given(stage)
    pools.given = True
    looks(stage, 8 * 60)
    assert (len(stage.world.running), pools.calls) == (1, [])
    assert not stage.world.nodes[next(iter(stage.world.nodes))].cordoned


def test_a_stop_that_had_begun_ends_where_the_pool_is_handed_back() -> None:
    """Its node takes pods again, and the record of it is over."""
    stage = capped()
    pools = given(stage)
    for _ in range(8 * 60):
        if any(node.cordoned for node in stage.world.nodes.values()):
            break
        looks(stage, 1)
    assert any(node.cordoned for node in stage.world.nodes.values())
    pools.given = True
    looks(stage, 60)
    assert pools.calls == []
    assert not any(node.cordoned for node in stage.world.nodes.values())


def test_no_pod_leaves_an_old_node_of_a_pool_that_was_handed_back() -> None:
    """``may_move: [max-age]`` is ours to do in our pools alone."""
    stage = Aged()
    pools = given(stage)
    pools.given = True
    stage.hours(6)
    assert (list(stage.world.nodes), stage.said) == (["n1"], [])


def test_a_release_whose_answer_was_lost_is_not_sent_again_to_a_pool_that_was_handed_back() -> None:
    """Its new owner's node stays."""
    stage = Stage()
    pools = given(stage)
    stage.submit("a", run_s=600.0)
    stage.tick()
    stage.minutes(13)
    pools.lost = True
    for _ in range(200):
        looks(stage, 1, every_s=10)
        if not pools.lost:
            break
    assert not pools.lost
    pools.given = True
    looks(stage, 30, every_s=10)
    assert (pools.calls, stage.nodes("one")) == ([], 1)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_group_that_is_handed_back_between_the_look_and_the_call_is_not_raised(at_once: bool) -> None:
    """The group is read again before the call: its tag refuses what was decided without it."""
    with on_aws(at_once=at_once) as (stage, aws):
        inner: Any = stage.deps.pools

        class HandedBackMeanwhile:
            def describe(self) -> tuple[PoolState, ...]:
                seen: tuple[PoolState, ...] = inner.describe()
                tag = {"Key": HANDED_BACK, "Value": WHEN, "ResourceId": aws.group_name("one")}
                aws.extra["one"] = {"Tags": [*aws._group("one")["Tags"], tag]}
                return seen

            def __getattr__(self, name: str) -> Any:
                return getattr(inner, name)

        stage.deps = replace(stage.deps, pools=HandedBackMeanwhile())
        stage.event(stage.submit("a", run_s=600))
        assert aws.changes() == []
        with pytest.raises(Denied, match="handed back"):
            inner.grow("one", 1)


def test_a_node_that_lost_its_price_is_stopped_by_its_budget_and_stops_no_look() -> None:
    """It is held for at the price that it was bought at; a pod of another pool is served meanwhile."""
    stage = capped()
    without(stage, "one")
    stage.submit("b", gpus=8, run_s=50 * HOUR)
    for _ in range(24 * 60):
        stage.wait(60)
        stage.tick()
    assert (stage.nodes("one"), dict(stage.world.pending)) == (0, {})
    assert "interruption" in [alert.kind for alert in stage.alerts]


def test_a_gang_in_a_pool_that_lost_its_price_stops_no_look() -> None:
    """At its deadline its pool is looked at as any without a price."""
    stage = Stage(boot_s=180.0)
    stage.submit_gang("g", 3, gpus=8, run_s=HOUR)
    stage.tick()
    without(stage, "eight")
    stage.submit("other", gpus=8, run_s=2 * HOUR)
    stage.submit("late", gpus=1, run_s=HOUR)
    for _ in range(60):
        stage.wait(60)
        stage.tick()
    assert "late" not in stage.world.pending
