"""Notes on a policy: claims and payers that are permitted and seldom meant, and the runs that its budgets hold for."""

import re
from collections.abc import Iterator

from pilotlight.codec.policy_claims import TEAM, paying_teams
from pilotlight.decide.money.economics import TYPICAL_RUN_S
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import DEFAULT_CLASSES, ClassPolicy, Policy
from pilotlight.facts.workload import WorkloadClass
from pilotlight.units import Seconds


def claim_notes(policy: Policy) -> Iterator[str]:
    """Notes on claims and payers that are permitted, and seldom meant."""
    if unpaid := _unpaid_work(policy):
        yield unpaid
    paying = paying_teams(policy)
    for namespace, claims in policy.claims.items() if paying else ():
        named = [("team", claims.team), *((f"teams[{i}]", team) for i, team in enumerate(claims.teams))]
        for key, team in named:
            if team and re.fullmatch(TEAM, team) and team not in paying:
                pays = (
                    f"{policy.default_team} pays (default_team)" if policy.default_team else "no budget of a team pays"
                )
                yield f"claims.{namespace}.{key}: {team} has no budget: {pays}"


def _unpaid_work(policy: Policy) -> str:
    """Work that nobody's budget pays for, so that nothing is bought for it; empty where there is none."""
    hard = [b for b in policy.budgets if b.hard]
    named = [b.name for b in hard if isinstance(b.scope, BudgetScope) and b.scope.team is not None]
    if not named or policy.default_team or any(b.scope == "all" for b in hard):
        return ""
    return (
        f"default_team is not written, and hard budget {named[0]} is of a team. Nothing is bought for teams without a "
        "budget: name the team that pays for them, or write a hard budget of scope all"
    )


def endless_notes(policy: Policy) -> Iterator[str]:
    """Classes without an end under a hard budget: what is held for them, and what happens where it has no more room."""
    for budget in policy.budgets:
        endless = [name for name in classes_of(budget) if not policy.ends(name)]
        if not budget.hard or budget.period == "hour" or not endless:
            continue
        named = " and ".join([", ".join(endless[:-1]), endless[-1]][len(endless) == 1 :])
        stops = ", ".join(f"{name}: {{may_move: [hard-cap]}}" for name in endless)
        yield (
            f"budgets.{budget.name}: {named} {'has' if len(endless) == 1 else 'have'} no end, so a day of each node is "
            "held ahead, again and again while there is room. Without room nothing more is bought, you are told, and "
            f"what runs goes on beyond the budget. To have it stopped there in order, write classes: {{{stops}}}"
        )


def classes_of(budget: Budget) -> list[WorkloadClass]:
    """The classes whose nodes a budget may count."""
    only = budget.scope.workload_class if isinstance(budget.scope, BudgetScope) else None
    return [only] if only else list(DEFAULT_CLASSES)


def runs_held(budget: Budget, policy: Policy) -> dict[str, Seconds]:
    """The run that a budget holds a node for, by class, where no pod names a deadline; nothing for a rate alone.

    Of classes that may be stopped at its cap that is the first stretch.
    """
    if budget.period == "hour":
        return {}
    return {name: _run_held(budget, policy.of_class(name)) for name in classes_of(budget)}


def _run_held(budget: Budget, rules: ClassPolicy) -> Seconds:
    if not budget.hard:
        return min(rules.longest_run_s, TYPICAL_RUN_S)
    return min(rules.longest_run_s, rules.hold) if rules.stops else rules.longest_run_s
