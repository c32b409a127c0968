"""Notes on a policy's claims and payers, which are permitted and seldom meant."""

from collections.abc import Iterator

from pilotlight.codec.policy_claims import TEAM, paying_teams
from pilotlight.facts.money.money_policy import BudgetScope
from pilotlight.facts.policy import Policy


def claim_notes(policy: Policy) -> Iterator[str]:
    """Notes on claims and payers that are permitted, and seldom meant."""
    if unpaid := _unpaid_work(policy):
        yield unpaid
    paying = paying_teams(policy)
    for namespace, claims in policy.claims.items() if paying else ():
        named = [("team", claims.team), *((f"teams[{i}]", team) for i, team in enumerate(claims.teams))]
        for key, team in named:
            if team and TEAM.fullmatch(team) and team not in paying:
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
        f"default_team is not written, and hard budget {named[0]} is of a team: nothing is bought for teams without a "
        "budget; name the team that pays for them, or write a hard budget of scope all"
    )
