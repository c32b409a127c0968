"""The budgets' ladders in the state: how each is climbed, and what people are told of a change.

A change is written with its alerts before they are sent, and they are taken off after: a
crash in between sends them again under their own ids.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.decide.money.budget_ladder import climb_ladder, figures, percent, rule
from pilotlight.decide.money.budget_limits import amount, budget_owner, limit
from pilotlight.errors import Conflict
from pilotlight.facts.messages import Alert
from pilotlight.facts.money.budgets import Ladder, Rung, Spent
from pilotlight.facts.money.money_policy import Budget, BudgetScope, LadderStep, StepDoes
from pilotlight.flow.answer import by_fingerprint
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.billing_records import LADDER
from pilotlight.units import round_usd


def climb(deps: Deps, was: tuple[Ladder, int], spent: Sequence[Spent], now: datetime) -> tuple[str, ...]:
    """Move every budget to where its spending puts it, and tell of each change once. What changed, a line each.

    ``was`` was read, with its version, before any spending: who stood still since then takes no budget back.
    """
    standing, version = was
    now_at = dict(standing.rungs)
    told: list[Alert] = []
    for one in _furthest(spent):
        before = standing.rungs.get(one.meter.budget.account)
        after = climb_ladder(before, one, now)
        told += _changes(deps, before, after, one, now)
        now_at[one.meter.budget.account] = after
    kept = {budget.account for budget in deps.policy.budgets}
    alerts = tuple(by_fingerprint(alert, f"-{now:%Y%m%dT%H%M%S}") for alert in told)
    new = Ladder(rungs={n: r for n, r in now_at.items() if n in kept}, untold=(*standing.untold, *alerts))
    if new != standing:
        try:
            version = LADDER.put(deps.state, deps.name, new, if_version=version)
        except Conflict:
            return ()  # Another tick is at it; this one's figures are no newer.
    _send(deps, new, version)
    return tuple(alert.what for alert in told)


def _send(deps: Deps, ladder: Ladder, version: int) -> None:
    if not ladder.untold:
        return
    deps.outbox.publish(ladder.untold)
    try:
        sent = msgspec.structs.replace(ladder, untold=())
        LADDER.put(deps.state, deps.name, sent, if_version=version)
    except Conflict:
        return


def _furthest(spent: Sequence[Spent]) -> list[Spent]:
    """Of each budget the measure that is used up furthest."""
    found: dict[str, Spent] = {}
    for one in spent:
        name = one.meter.budget.name
        if name not in found or one.share > found[name].share:
            found[name] = one
    return list(found.values())


def _changes(deps: Deps, before: Rung | None, after: Rung, spent: Spent, now: datetime) -> list[Alert]:
    """The alerts of a change: of the step that was reached, or left. Those passed on the way are silent."""
    by_share = {step.at: step for step in spent.meter.budget.ladder}
    ended = before is not None and before.start != after.start
    alerts: list[Alert] = []
    if before is not None and before.at in by_share and (ended or after.at < before.at):
        alerts.append(_alert(deps, by_share[before.at], spent, before.start, now, resolved=True))
    if after.at in by_share and (before is None or ended or after.at > before.at):
        alerts.append(_alert(deps, by_share[after.at], spent, after.start, now, resolved=False))
    return alerts


def _alert(deps: Deps, step: LadderStep, spent: Spent, start: datetime, now: datetime, *, resolved: bool) -> Alert:
    """A step reached, or left, in the period that began at ``start``."""
    budget = spent.meter.budget
    return Alert(
        cluster=deps.name,
        kind=f"budget-{step.do}",
        severity="info" if resolved else _SEVERITY[step.do],
        fingerprint=f"budget/{budget.name}/{start:%Y%m%dT%H%M}/{step.at}",
        what=f"{budget_owner(spent.meter)}: {'less than ' if resolved else ''}"
        f"{percent(step)} of {limit(spent.meter)} is spent",
        why=f"{figures(spent)}; {outlook(spent)}",
        next=_next(budget, step, resolved),
        how=f"pilotlight budget; budgets.{budget.name} in the policy sets limit and ladder",
        usd=str(round_usd(spent.total)) if spent.meter.measure == "usd" else "",
        resolved=resolved,
        team=(budget.scope.team or "") if isinstance(budget.scope, BudgetScope) else "",
        at=now,
    )


_SEVERITY: Mapping[StepDoes, Literal["info", "warning", "critical"]] = {
    "notify": "info",
    "spot-only": "warning",
    "no-new-buys": "critical",
}


def _next(budget: Budget, step: LadderStep, resolved: bool) -> str:
    if step.do == "notify":
        return "nothing changes"
    if resolved:
        return "the step is taken back"
    does = rule(step) if not budget.ladder_dry_run else f"would: {rule(step)} (ladder_dry_run)"
    return f"{does}; serving and what runs are left alone"


def outlook(spent: Spent) -> str:
    """The forecast of a period's end, as people read it."""
    coming, meter = spent.forecast, spent.meter
    said = f"the {meter.budget.period} will end with about {amount(meter, coming.likely)}"
    if coming.low is not None and coming.high is not None:
        said += f" ({amount(meter, coming.low)} to {amount(meter, coming.high)})"
    if coming.runs_out is not None:
        said += f", and it runs out on {coming.runs_out:%Y-%m-%d %H:%M} UTC"
    return said
