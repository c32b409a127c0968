"""Claims of pods, settled: whose money a pod spends, what class it is of and by what priority it is bought for.

A pod's labels are its tenant's to write. The policy and the namespace come first (ADR 51): a claim that they do not
permit counts for nothing, and is told.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from pilotlight.facts.labels import TEAM
from pilotlight.facts.policy import BudgetScope, Policy
from pilotlight.facts.workload import Classifier, PodTraits, WorkloadClass


class Settled(NamedTuple):
    """Claims as they count. ``refused`` are those that do not, each a sentence that says how to permit it."""

    team: str
    workload_class: WorkloadClass
    class_reason: str
    priority: int
    refused: tuple[str, ...] = ()


def settled(
    policy: Policy,
    namespace: str,
    of_namespace: Mapping[str, str] | None,
    traits: PodTraits,
    priority: int,
    classify: Classifier,
) -> Settled:
    """A pod's claims as its namespace's entry permits them. ``of_namespace`` are the namespace's labels, where they
    were read."""
    team, other = _team(policy, namespace, of_namespace, traits.labels)
    kind, reason, no = _class(policy, namespace, traits, classify)
    highest = policy.claims_of(namespace).priority
    above = priority > highest
    over = _says(f"claims priority {priority}", f"it counts as {highest}", namespace, f"priority: {priority}")
    refused = tuple(each for each in (other, no, over if above else "") if each)
    return Settled(team, kind, reason, min(priority, highest), refused)


def _team(
    policy: Policy, namespace: str, of_namespace: Mapping[str, str] | None, of_pod: Mapping[str, str]
) -> tuple[str, str]:
    """Who pays, and the refusal of whom the pod names."""
    claims = policy.claims_of(namespace)
    own, said = claims.team or _named(of_namespace or {}) or namespace, _named(of_pod)
    if said in ("", own) or any(fnmatchcase(said, each) for each in claims.teams):
        return policy.payer(said or own), ""
    pays = policy.payer(own)
    unread = "" if claims.team or of_namespace is not None else " (the namespace's own labels were not read)"
    return pays, _says(f"claims team {said[:63]}", f"team {pays} pays{unread}", namespace, f"teams: [{said[:63]}]")


def _named(labels: Mapping[str, str]) -> str:
    return next((labels[name] for name in TEAM if labels.get(name)), "")


def _class(policy: Policy, namespace: str, traits: PodTraits, classify: Classifier) -> tuple[WorkloadClass, str, str]:
    """The class, why it is that, and the refusal of the one that the pod's labels name."""
    allowed = policy.claims_of(namespace).classes
    found, reason = classify(traits)
    if found in allowed if allowed is not None else not _budgets_by_class(policy):
        return found, reason, ""
    bare, why = classify(msgspec.structs.replace(traits, labels={}))
    own = bare if allowed is None or bare in allowed else allowed[0]
    said = why if own == bare else f"namespace {namespace} may be {', '.join(allowed or ())}"
    if own == found:
        return found, reason, ""
    if bare == found:
        return own, said, ""
    no = _says(f"claims class {found} ({reason})", f"it counts as {own}", namespace, f"classes: [{found}]")
    return own, f"{reason} is not permitted; {said}", no


def _budgets_by_class(policy: Policy) -> bool:
    return any(isinstance(b.scope, BudgetScope) and b.scope.workload_class for b in policy.budgets)


def _says(claim: str, instead: str, namespace: str, permits: str) -> str:
    return (
        f"{claim}, which namespace {namespace} may not: {instead}; "
        f"to permit it write claims: {{{namespace}: {{{permits}}}}} in the policy"
    )
