"""Ladders of budgets where one team's pods run on a node that another's dollars lit: each counts whose pods hold it.

Boots and idle time are no team's in a ladder's figure, as in every report.
"""

from decimal import Decimal

import pytest
from stage import Stage

from pilotlight.facts.messages import Tick
from pilotlight.facts.money.money_policy import Budget, BudgetScope, LadderStep
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.billing.billing_tick import billing, budget_standings
from pilotlight.units import HOUR

STOP_AT_FIFTH = (LadderStep(at=Decimal("0.2"), do="no-new-buys"),)


def two_teams(usd: str = "20", pool: str = "one") -> Stage:
    """Two teams with so many soft dollars a day, whose ladders stop purchases at a fifth of them."""
    budgets = tuple(
        Budget(
            name=team,
            scope=BudgetScope(team=team),
            usd=Decimal(usd),
            period="day",
            hard=False,
            ladder=STOP_AT_FIFTH,
            ladder_dry_run=False,
        )
        for team in ("owner", "guest")
    )
    batch = ClassPolicy(gpu_models="any", idle_timeout=1800)
    return Stage(pools={pool: PoolPolicy(instance_type=pool, max=9)}, budgets=budgets, classes={"batch": batch})


def pass_by(on: Stage, hours: float) -> None:
    """So many hours with a look a minute and a tick of money every ten."""
    for _ in range(round(hours * 6)):
        on.minutes(10)
        billing(on.deps, Tick(cluster="c", what="billing"))


def spent(on: Stage) -> dict[str, Decimal]:
    """What each team's ladder counts."""
    return {each.meter.budget.name: each.total for each in budget_standings(on.deps, on.deps.state.now())}


def reached(on: Stage) -> list[str]:
    """The teams that were told of their ladder's step."""
    return [alert.team for alert in on.alerts if alert.kind == "budget-no-new-buys" and not alert.resolved]


def left_idle_by_owner(on: Stage) -> None:
    """A node that the owner bought, ready and empty."""
    on.event(on.submit("first", run_s=600, team="owner"))
    pass_by(on, 1 / 3)
    assert (on.nodes("one"), len(on.world.running)) == (1, 0)


def test_the_ladder_of_whose_pods_are_on_the_node_is_climbed() -> None:
    """A guest on the owner's idle node: after four of its twenty dollars its own ladder stops its purchases, and the
    owner's counts no more than what the owner held."""
    on = two_teams()
    left_idle_by_owner(on)
    on.submit("second", run_s=9 * HOUR, team="guest")
    on.minutes(2)
    before = spent(on)["owner"]
    pass_by(on, 5)
    assert on.world.launches == 1
    assert reached(on) == ["guest"]
    assert spent(on)["owner"] <= before
    assert spent(on)["guest"] == pytest.approx(Decimal(5), abs=Decimal("0.20"))
    on.event(on.submit("more", run_s=HOUR, team="guest"))
    on.event(on.submit("own", run_s=HOUR, team="owner"))
    assert on.world.launches == 2
    (refused,) = [alert for alert in on.alerts if alert.kind == "refused"]
    assert refused.why.startswith("team guest: ")


def test_a_step_is_entered_by_the_part_of_a_shared_node() -> None:
    """Six GPUs and two of a node of $32: the owner's ladder counts three quarters, the guest's a quarter."""
    on = two_teams(usd="100", pool="eight")
    on.event(on.submit("six", gpus=6, run_s=9 * HOUR, team="owner"))
    on.minutes(4)
    on.submit("two", gpus=2, run_s=9 * HOUR, team="guest")
    pass_by(on, 1)
    assert reached(on) == ["owner"]
    pass_by(on, 1)
    assert reached(on) == ["owner"]
    assert spent(on) == {"owner": pytest.approx(Decimal(48), abs=1), "guest": pytest.approx(Decimal(16), abs=1)}
    pass_by(on, 1)
    assert reached(on) == ["owner", "guest"]


def test_what_a_guest_held_stays_its_own_once_it_is_gone() -> None:
    """Its pod ends, the owner's is next on the node: neither ladder gives back or takes over what was counted."""
    on = two_teams()
    left_idle_by_owner(on)
    on.submit("second", run_s=3 * HOUR, team="guest")
    pass_by(on, 3)
    on.submit("third", run_s=3 * HOUR, team="owner")
    on.minutes(2)
    guest = spent(on)["guest"]
    pass_by(on, 2)
    assert on.world.launches == 1
    assert guest == pytest.approx(Decimal(3), abs=Decimal("0.05"))
    assert spent(on) == {"owner": pytest.approx(Decimal("2.15"), abs=Decimal("0.10")), "guest": guest}
