"""A hold that ends pays every window that its node lived in, those too that nobody held for it yet."""

from decimal import Decimal

from msgspec.structs import replace
from stage import MINUTE, Stage

from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy
from pilotlight.flow.budgets import budget_holds
from pilotlight.state_schema.billing_records import CAP, HOLD
from pilotlight.units import HOUR

BATCH = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=600)


def settled(on: Stage) -> list[Decimal]:
    """What each window has settled, in their order."""
    found = {entry.name: entry.value for entry in CAP.scan(on.deps.state)}
    assert not any(account.held for account in found.values())
    return [found[name].settled for name in sorted(found)]


def test_a_node_that_outlived_its_hold_over_midnight_is_paid_for_in_both_days() -> None:
    """Nobody looked for hours, and the node is gone by then: what it cost of the new day is the new day's."""
    on = Stage(budgets=(Budget(name="all", usd=Decimal(50), period="day"),), classes={"batch": BATCH})
    on.wait(11 * HOUR)
    on.event(on.submit("a", run_s=HOUR))
    on.minutes(5)
    on.wait(2 * HOUR)
    on.world.terminate("n1", "by hand")
    on.wait(MINUTE)
    on.minutes(5)
    today, then = settled(on)
    assert today == Decimal(1)
    assert Decimal(1) < then < Decimal("1.2")


def test_only_what_was_given_back_or_never_bought_is_settled() -> None:
    """By instance what went; by its id what the cloud did not sell, unless an instance took that hold meanwhile."""
    on = Stage(budgets=(Budget(name="all", usd=Decimal(50), period="day"),), classes={"batch": BATCH})
    for name in ("a", "b"):
        on.event(on.submit(name, run_s=HOUR))
    on.minutes(5)
    lit = {entry.value.instance: entry.value for entry in HOLD.scan(on.deps.state, "c/")}
    fresh = replace(lit["n1"], id="d.0.0", instance="", accounts=())
    HOLD.put(on.deps.state, "c/d.0.0", fresh, over=None)
    budget_holds.settle(on.deps, ["n1"], ["d.0.0", lit["n2"].id])
    assert {entry.value.instance for entry in HOLD.scan(on.deps.state, "c/")} == {"n2"}
    assert sum(cap.value.settled for cap in CAP.scan(on.deps.state)) > 0
