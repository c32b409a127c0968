"""Claims of pods, settled: whose money a pod spends, what class it is of and by what priority it is bought for.

A pod's labels are its tenant's to write. The policy and the namespace come first (ADR 52): a claim that they do not
permit counts for nothing, and is told.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from pilotlight.facts.labels import TEAM
from pilotlight.facts.policy import HIGHEST_PRIORITY, Policy
from pilotlight.facts.workload import CLAIM_REFUSED, Classifier, Finding, PodTraits, WorkloadClass

_TEAM_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PLAIN = r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[a-z][-a-z0-9_.]*"
_NO_POLICY = "no policy can permit it"


class Settled(NamedTuple):
    """Claims as they count. ``refused`` are those that do not, each a sentence that says how to permit it."""

    team: str
    workload_class: WorkloadClass
    class_reason: str
    priority: int
    refused: tuple[str, ...] = ()


def settle_claims(
    policy: Policy,
    namespace: str,
    of_namespace: Mapping[str, str] | None,
    traits: PodTraits,
    priority: int,
    classify: Classifier,
) -> Settled:
    """A pod's claims as its namespace's entry permits them. ``of_namespace`` are the namespace's labels, where they
    were read."""
    pays, team, other = _team(policy, namespace, of_namespace, traits.labels)
    permit = _Permit(policy, namespace, pays)
    kind, reason, no = _class(permit, traits, classify)
    highest = policy.claims_of(namespace).priority
    over = ""
    if priority > highest:
        over = permit.says(f"claims priority {priority}", f"it counts as {highest}", permit.priority(priority))
    refused = tuple(each for each in (other, no, over) if each)
    return Settled(team, kind, reason, min(priority, highest), refused)


class Refused(NamedTuple):
    """A pod's claims that do not count."""

    namespace: str
    created_at: datetime
    pod: str
    team: str
    refused: tuple[str, ...]


def refusals(pods: Iterable[Refused]) -> Iterator[Finding]:
    """One for each claim that is refused to a namespace, on the oldest of the pods that make it, with their number."""
    same: dict[tuple[str, str], set[tuple[datetime, str, str]]] = {}
    for each in pods:
        for why in each.refused:
            same.setdefault((each.namespace, why), set()).add((each.created_at, each.pod, each.team))
    for (_, why), alike in sorted(same.items()):
        _, oldest, team = min(alike)
        others = f" (and {len(alike) - 1:,} more)" if len(alike) > 1 else ""
        yield Finding(subject=oldest, code=CLAIM_REFUSED, message=f"{why}{others}", team=team)


def same_claim(message: str) -> str:
    """A finding's message without the number of pods, which changes while the claim is the same."""
    return re.sub(r" \(and [\d,]+ more\)$", "", message)


def _team(
    policy: Policy, namespace: str, of_namespace: Mapping[str, str] | None, of_pod: Mapping[str, str]
) -> tuple[str, str, str]:
    """The team that pays for the namespace, the one for this pod, and the refusal of the one that the pod names."""
    claims = policy.claims_of(namespace)
    own, said = claims.team or _named(of_namespace or {}) or namespace, _named(of_pod)
    pays = policy.payer(own)
    if said in ("", own) or any(fnmatchcase(said, each) for each in claims.teams):
        return pays, policy.payer(said or own), ""
    unread = "" if claims.team or of_namespace is not None else " (the namespace's own labels were not read)"
    permit = _Permit(policy, namespace, pays)
    how = permit.team(said) if re.fullmatch(_TEAM_NAME, said) else f"{_NO_POLICY}: it is no name that a team has"
    return pays, pays, permit.says(f"claims team {said[:63]}", f"team {pays} pays{unread}", how)


def _named(labels: Mapping[str, str]) -> str:
    return next((labels[name] for name in TEAM if labels.get(name)), "")


def _class(permit: "_Permit", traits: PodTraits, classify: Classifier) -> tuple[WorkloadClass, str, str]:
    """The class, why it is that, and the refusal of the one that the pod's labels name."""
    policy, namespace = permit.policy, permit.namespace
    allowed = policy.claims_of(namespace).classes
    found, reason = classify(traits)
    if found in allowed if allowed is not None else not policy.has_class_budgets:
        return found, reason, ""
    bare, why = classify(msgspec.structs.replace(traits, labels={}))
    own = bare if allowed is None or bare in allowed else allowed[0]
    said = why if own == bare else f"namespace {namespace} may be {', '.join(allowed or ())}"
    if own == found:
        return found, reason, ""
    if bare == found:
        return own, said, ""
    no = permit.says(f"claims class {found} ({reason})", f"it counts as {own}", permit.of_class(found, own))
    return own, f"{reason} is not permitted; {said}", no


class _Permit(NamedTuple):
    """Edits of the policy that permit a claim of a namespace's pods, and change nothing else of its entry."""

    policy: Policy
    namespace: str
    pays: str

    @staticmethod
    def yaml_quoted(text: str) -> str:
        """Text as YAML reads it back."""
        return text if re.fullmatch(_PLAIN, text, re.IGNORECASE) else json.dumps(text)

    def says(self, claim: str, instead: str, how: str) -> str:
        """The refusal of a claim."""
        return f"{claim}, which namespace {self.namespace} may not: {instead}; {how}"

    def team(self, said: str) -> str:
        """To let pods name a team."""
        name, entry = self.yaml_quoted(said), self.policy.claims_entry(self.namespace)
        return f"to permit it add {name} to claims.{entry}.teams" if entry else self._whole(f"teams: [{name}]")

    def of_class(self, found: WorkloadClass, own: WorkloadClass) -> str:
        """To let pods be of a class. Where an entry names none, those that it does not list would become the first."""
        entry, lists = self.policy.claims_entry(self.namespace), f"classes: [{own}, {found}]"
        if entry and self.policy.claims[entry].classes is not None:
            return f"to permit it add {found} to claims.{entry}.classes"
        what = f"to permit it write {lists} in claims.{entry}" if entry else self._whole(lists)
        return f"{what} (and every other class its pods may be: what is not listed counts as {own})"

    def priority(self, wanted: int) -> str:
        """To let pods be bought for by a priority, where a policy can."""
        if wanted > HIGHEST_PRIORITY:
            return f"{_NO_POLICY}: the highest is {HIGHEST_PRIORITY:,}, above are Kubernetes' own system-* classes"
        entry = self.policy.claims_entry(self.namespace)
        says = f"priority: {wanted}"
        return f"to permit it write {says} in claims.{entry}" if entry else self._whole(says)

    def _whole(self, permits: str) -> str:
        """An entry where none applies: it names who pays today, so that this stays. Two of them make one entry."""
        return f"to permit it write team: {self.yaml_quoted(self.pays)} and {permits} in claims.{self.namespace}"
