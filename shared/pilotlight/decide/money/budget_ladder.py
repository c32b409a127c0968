"""The ladder of a budget: which step is in force as spending goes on, and what that rules out.

A step is entered at its share and left only below it by a margin, or when the period ends, so that figures that
waver around a share do not make it come and go.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from pilotlight.decide.money.budget_limits import amount, budget_owner, in_scope, limit
from pilotlight.facts.capacity import Offering
from pilotlight.facts.money.budgets import Rung, Spent, StepInForce
from pilotlight.facts.money.money_policy import LadderStep

MARGIN = Decimal("0.05")
"""A step is left when so much less of the budget is spent than where it was entered."""


def climb_ladder(rung: Rung | None, spent: Spent, now: datetime) -> Rung:
    """Where a budget stands now, coming from where it stood."""
    budget, start = spent.meter.budget, spent.meter.start
    if rung is not None and now < rung.start:
        return rung  # A clock that lags takes no budget back into a period that is over.
    if rung is None or rung.start != start:
        rung = Rung(start=start)
    reached = [
        step
        for step in budget.ladder
        if (share := _share(spent, step)) >= step.at or (step.at <= rung.at and share >= step.at - MARGIN)
    ]
    top = max(reached, key=lambda step: step.at, default=None)
    at = top.at if top else Decimal(0)
    return Rung(start=start, at=at, since=rung.since if at == rung.at else now, step=_acting(top, spent))


def _share(spent: Spent, step: LadderStep) -> Decimal:
    """What a step is judged by: one that refuses purchases by what these cost, and not by what is paid either way."""
    return spent.share if step.do == "notify" else spent.marginal_share


def _acting(top: LadderStep | None, spent: Spent) -> StepInForce | None:
    budget, end = spent.meter.budget, spent.meter.end
    if top is None or top.do == "notify" or budget.ladder_dry_run or end is None:
        return None
    return StepInForce(
        budget=budget.name, scope=budget.scope, do=top.do, why=f"{figures(spent)}: {rule(top)}", until=end
    )


def figures(spent: Spent) -> str:
    """As people read it: "team research: $328.10 of $400.00 a day is spent"."""
    sunk = f", {amount(spent.meter, spent.sunk)} of it on commitments" if spent.sunk else ""
    return f"{budget_owner(spent.meter)}: {amount(spent.meter, spent.total)} of {limit(spent.meter)} is spent{sunk}"


def rule(step: LadderStep) -> str:
    """Meaning of a step: "only spot is bought from 80 % on"."""
    return f"{_RULES[step.do]} from {percent(step)} on"


def percent(step: LadderStep) -> str:
    """The share of a step: "80 %"."""
    return f"{float(step.at) * 100:.3g} %"


_RULES = {"notify": "people are told", "spot-only": "only spot is bought", "no-new-buys": "nothing more is bought"}


def barring_step(
    steps: Sequence[StepInForce], offering: Offering, workload_class: str, team: str, now: datetime
) -> str:
    """Why a step in force rules an offering out for work of a class and team, with its figures; or empty.

    Serving is never touched: only a hard cap refuses it.
    """
    if workload_class == "serving":
        return ""
    for step in steps:
        forbids = step.do == "no-new-buys" or (
            step.do == "spot-only" and offering.capacity_type in ("on-demand", "flex-start")
        )
        if forbids and now < step.until and in_scope(step.scope, offering.pool, workload_class, team):
            return step.why
    return ""


def refuses(steps: Sequence[StepInForce], pool: str, workload_class: str, team: str, now: datetime) -> str:
    """Why nothing more is bought for a hold of such terms; or empty."""
    if workload_class == "serving":
        return ""
    mine = (s for s in steps if s.do == "no-new-buys" and now < s.until)
    return next((step.why for step in mine if in_scope(step.scope, pool, workload_class, team)), "")
