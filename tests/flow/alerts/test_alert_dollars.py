"""Every alert of a purchase and of a release says its dollars an hour and in all."""

from decimal import Decimal

import pytest
from stage import Stage

from pilotlight.codec.alert_text import alert_parts
from pilotlight.facts.messages import Alert
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy, PoolPolicy, SparePolicy
from pilotlight.flow.budgets import budget_holds as holds


def _grown(stage: Stage) -> Alert:
    stage.event(stage.submit("pod", run_s=600))
    [alert] = [alert for alert in stage.alerts if alert.kind == "capacity-grow"]
    return alert


BUDGET = Budget(name="all", scope="all", usd=Decimal(100), period="day")


@pytest.mark.parametrize("budgets", [(), (BUDGET,)], ids=["without budgets", "with one"])
def test_a_purchase_says_what_it_can_cost_in_all(budgets: tuple[Budget, ...]) -> None:
    """Its boot, the longest run of its class and one idle time at its price; with budgets that is what they hold."""
    rules = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=7200)
    stage = Stage(classes={"batch": rules}, budgets=budgets)
    alert = _grown(stage)
    assert (alert.usd_per_hour, alert.usd) == ("1", "2.13")
    assert "at most $2.13, if a run takes 2.0 h (classes.batch.max_runtime)" in alert.next
    for balance in holds.balances(stage.deps, stage.world.clock.now()).balances:
        assert round(balance.total, 2) == Decimal(alert.usd)


def test_a_spare_says_its_price_an_hour_alone() -> None:
    """Nobody runs on it yet, so no longest run makes a sum of it."""
    rules = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=2592000)
    pools = {"one": PoolPolicy(instance_type="one", spares=SparePolicy(warm=1))}
    stage = Stage(pools=pools, classes={"batch": rules})
    stage.minutes(1)
    [alert] = [alert for alert in stage.alerts if alert.kind == "capacity-grow"]
    assert (alert.usd_per_hour, alert.usd) == ("1", "")
    assert alert_parts(alert).cost == "$1.00 an hour"  # It was "$2,205.01 in all" for a spare at $3.06 an hour.
    assert alert.next.endswith("; a spare costs its price an hour while it is kept")


def test_a_release_says_what_the_node_has_cost() -> None:
    """The cloud's own figure, to four digits of a dollar."""
    stage = Stage()
    _grown(stage)
    stage.minutes(30)
    [alert] = [alert for alert in stage.alerts if alert.kind == "capacity-release"]
    assert Decimal(alert.usd) == stage.world.cost().quantize(Decimal("0.0001"))


def test_capacity_that_never_came_says_what_it_cost() -> None:
    """A node that does not become ready is told with the dollars that were spent on it."""
    stage = Stage(boot_s=7200.0)
    _grown(stage)
    stage.minutes(60)
    failed = [alert for alert in stage.alerts if alert.kind == "capacity-release"]
    assert failed
    assert all(Decimal(alert.usd) > 0 for alert in failed)
