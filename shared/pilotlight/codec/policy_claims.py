"""Rules over a policy's claims, and over who pays for teams without a budget."""

import re
from collections.abc import Iterator

from pilotlight.codec.policy_values import quote_text
from pilotlight.facts.money.money_policy import BudgetScope
from pilotlight.facts.policy import Claims, Policy

Problem = tuple[str, str]

_NAMESPACES = r"[a-z0-9*?](?:[-a-z0-9*?]{0,61}[a-z0-9*?])?"
TEAM = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_TEAMS = r"[A-Za-z0-9*?](?:[-A-Za-z0-9_.*?]{0,61}[A-Za-z0-9*?])?"
_LETTERS = "write letters, digits, dashes, dots or underscores, at most 63, as a label's value"


def claim_problems(policy: Policy) -> Iterator[Problem]:
    """Every contradiction, as path and reason."""
    for namespace, claims in policy.claims.items():
        yield from _claims(f"claims.{namespace}", namespace, claims)
    if policy.default_team and policy.default_team not in paying_teams(policy):
        team = policy.default_team
        yield "default_team", f"{quote_text(team)} has no budget: write one with scope: {{team: {team}}}"


def _claims(path: str, namespace: str, claims: Claims) -> Iterator[Problem]:
    if not re.fullmatch(_NAMESPACES, namespace):
        yield path, f"{quote_text(namespace)} is no namespace: write its name, or a pattern of names with * and ?"
    if claims.classes == ():
        yield f"{path}.classes", "is empty: name at least one; the first is what a pod is that may not be another"
    if claims.team and not re.fullmatch(TEAM, claims.team):
        yield f"{path}.team", f"{quote_text(claims.team)} is no name of one team: {_LETTERS}"
    if claims.priority < 0:
        yield f"{path}.priority", f"{claims.priority} is negative: 0 permits no priority"
    for i, team in enumerate(claims.teams):
        if not team:
            yield f"{path}.teams[{i}]", "is empty"
        elif not re.fullmatch(_TEAMS, team):
            yield f"{path}.teams[{i}]", f"{quote_text(team)} is no team and no pattern with * and ?: {_LETTERS}"


def paying_teams(policy: Policy) -> set[str]:
    """The teams that have a budget of their own."""
    scopes = (budget.scope for budget in policy.budgets if isinstance(budget.scope, BudgetScope))
    return {scope.team for scope in scopes if scope.team is not None}
