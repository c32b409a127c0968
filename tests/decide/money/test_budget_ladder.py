"""The ladder of a budget: entered and left with hysteresis, and what its steps rule out of a plan."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fleet import NOW, T4, bought, gang, offering, plan, pod, policy, unused_balances, verdict

from pilotlight.decide.money.budget_ladder import MARGIN, climb_ladder
from pilotlight.decide.money.budget_limits import meters
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.budgets import Forecast, Money, Rung, Spent, StepInForce
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import ClassPolicy, PoolPolicy, SparePolicy

EITHER = ClassPolicy(gpu_models="any", capacity_types=("spot", "on-demand"))
WHY = "team research: $82.00 of $100.00 a day is spent: only spot is bought from 80 % on"


def standing(share: str | Decimal, at: datetime = NOW, **fields: Any) -> Spent:
    """A day's budget of $100 of which a share is spent."""
    budget = Budget(**{"name": "b", "usd": Decimal(100), "period": "day", "ladder_dry_run": False, **fields})
    (meter,) = meters([budget], at)
    coming = Forecast(likely=Decimal(0))
    return Spent(meter=meter, billed=Decimal(share) * 100, metered=Decimal(0), forecast=coming)


def climb(*shares: str | Decimal, **fields: Any) -> list[Rung]:
    """The rungs as spending goes."""
    rungs: list[Rung] = []
    for n, share in enumerate(shares):
        before = rungs[-1] if rungs else None
        rungs.append(climb_ladder(before, standing(share, **fields), NOW + timedelta(minutes=n)))
    return rungs


def test_steps_are_entered_at_their_share_and_left_below_a_margin() -> None:
    """Between 75 and 80 % the step of 80 % stays where it was entered, and is not entered."""
    found = climb("0.4", "0.5", "0.79", "0.8", "0.76", "0.74", "0.76", "1.2", "0.97", "0.9", "0.1")
    assert [str(rung.at) for rung in found] == ["0", "0.5", "0.5", "0.8", "0.8", "0.5", "0.5", "1", "1", "0.8", "0"]
    assert [rung.step.do if rung.step else "" for rung in found[3:8]] == [
        "spot-only",
        "spot-only",
        "",
        "",
        "no-new-buys",
    ]


def test_a_dry_run_climbs_and_rules_nothing_out() -> None:
    """Where a budget stands is known; nothing acts on it."""
    (found,) = climb("1.5", ladder_dry_run=True)
    assert (found.at, found.step) == (Decimal(1), None)


def test_a_new_period_begins_at_the_foot() -> None:
    """What was spent yesterday is yesterday's, margin and all."""
    (before,) = climb("0.8")
    after = climb_ladder(before, standing("0.78", NOW + timedelta(days=1)), NOW + timedelta(days=1))
    assert (before.at, after.at) == (Decimal("0.8"), Decimal("0.5"))


@settings(max_examples=200)
@given(
    trend=st.lists(st.integers(0, 150), min_size=1, max_size=60).map(sorted),
    noise=st.lists(st.floats(-0.999, 0.999), min_size=60, max_size=60),
)
def test_the_ladder_never_oscillates_under_noise(trend: list[int], noise: list[float]) -> None:
    """While spending rises and its figures waver by less than half the margin, no step that was entered is left."""
    shares = [
        Decimal(level) / 100 + MARGIN / 2 * Decimal(f"{wave:.6f}") for level, wave in zip(trend, noise, strict=False)
    ]
    found = [rung.at for rung in climb(*shares)]
    assert found == sorted(found)


def step(do: str, until: datetime = NOW + timedelta(hours=1), **scope: Any) -> Money:
    """Money with one step in force."""
    budget = Budget(name="b", usd=Decimal(10**6))
    on = BudgetScope(**scope) if scope else "all"
    made = StepInForce(budget="b", scope=on, do=do, why=WHY, until=until)  # type: ignore[arg-type]
    return Money(balances=unused_balances([budget], NOW).balances, steps=(made,))


def made(money: Money, *waiting: Any, **options: Any) -> Any:
    """A plan over an on-demand and a spot pool; spot costs more here, so that only a step makes it the choice."""
    fleet = (T4, offering("t4-spot", "T4", 1, "1.5", instance_type="t4s", capacity_type="spot"))
    rules = policy(fleet, classes={"batch": EITHER, "serving": ClassPolicy(gpu_models="any")}, **options.pop("of", {}))
    return plan(waiting, offerings=fleet, rules=rules, money=money, **options)


CHOICES: dict[str, tuple[Money, dict[str, Any], dict[str, int]]] = {
    "without a step the cheaper is bought": (Money(), {"team": "research"}, {"t4": 1}),
    "spot-only drops on-demand": (step("spot-only", team="research"), {"team": "research"}, {"t4-spot": 1}),
    "spot-only is not another team's": (step("spot-only", team="ads"), {"team": "research"}, {"t4": 1}),
    "a class's": (step("spot-only", workload_class="batch"), {}, {"t4-spot": 1}),
    "a pool's": (step("spot-only", pool="t4"), {}, {"t4-spot": 1}),
    "no-new-buys of a pool leaves the others": (step("no-new-buys", pool="t4-spot"), {}, {"t4": 1}),
    "no-new-buys buys nothing": (step("no-new-buys"), {}, {}),
    "serving is never touched": (step("no-new-buys"), {"workload_class": "serving"}, {"t4": 1}),
    "nor told to use spot": (step("spot-only"), {"workload_class": "serving"}, {"t4": 1}),
    "a period that ended rules nothing out": (step("no-new-buys", until=NOW), {}, {"t4": 1}),
}


@pytest.mark.parametrize(("money", "traits", "expected"), CHOICES.values(), ids=CHOICES.keys())
def test_steps_in_force_act_in_a_plan(money: Money, traits: dict[str, Any], expected: dict[str, int]) -> None:
    """What a step rules out is not bought; the rest is chosen as always."""
    assert bought(made(money, pod("p", **traits))) == expected


def test_a_refusal_says_the_step_and_its_figures() -> None:
    """The pod's owner reads what is spent of which budget, and the rejected offerings say so too."""
    waiting = pod("p", team="research")
    found = made(step("no-new-buys", team="research"), waiting)
    assert verdict(found, waiting) == ("refused", WHY)
    assert {r.why for r in found.pods[0].rejected} == {WHY}


def test_on_demand_is_in_the_rejected_list_with_the_reason() -> None:
    """Under spot-only the purchase names what it did not take, and why."""
    found = made(step("spot-only"), pod("p"))
    assert [(r.offering, r.why) for r in found.pods[0].rejected] == [(T4.name, WHY)]


def test_gangs_obey_steps() -> None:
    """A gang is refused whole, with the figures."""
    pods = gang("g", 2, gpus=1)
    found = made(step("no-new-buys"), *pods)
    assert bought(found) == {}
    assert verdict(found, pods[0]) == ("refused", f"gang g: all 2 pods or none; {WHY}")


def test_warm_nodes_are_not_bought_under_no_new_buys_but_for_serving() -> None:
    """A warm pool that serves stays warm."""
    warm = {"pools": {"t4": PoolPolicy(instance_type=T4.instance_type, spares=SparePolicy(warm=1))}}
    assert bought(made(step("no-new-buys"), of=warm)) == {}
    assert bought(made(step("no-new-buys"), of=warm, memory=Memory(pool_class={"t4": "serving"}))) == {"t4": 1}
