"""Which pods are near which: affinity, anti-affinity and topology spread, kept up while a plan places pods.

As the scheduler does it, each pod is judged by what is there before it. Source: Kubernetes 1.36, the plugins
InterPodAffinity and PodTopologySpread.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from pilotlight.facts.capacity import Taint
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.workload import Near, NearRule, PodShape


class Place(Protocol):
    """A node, or one to come."""

    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def taints(self) -> Sequence[Taint]: ...
    def domain(self, topology: str) -> str | None:
        """The value of a label there."""


class Neighbours:
    """Pods that each rule counts in each domain: at first ``around``, as the cluster tells it."""

    def __init__(self, around: Mapping[str, Mapping[str, int]], shapes: Iterable[PodShape]) -> None:
        rules = {rule.key: rule for shape in shapes if shape.near for rule in shape.near.rules}
        self._counts = {key: dict(around.get(key, {})) for key in rules}
        self._of_group: dict[str, list[NearRule]] = {}
        for rule in rules.values():
            self._of_group.setdefault(rule.group, []).append(rule)
        self._spreads = [rule for rule in rules.values() if rule.kind == "spread"]

    def add_place(self, place: Place) -> None:
        """Another node is there, or will be: a domain to spread over, perhaps a new one."""
        for rule in self._spreads:
            if (domain := _spread_domain(rule, place)) is not None:
                self._counts[rule.key].setdefault(domain, 0)

    def put(self, near: Near, place: Place, pods: int) -> None:
        """So many pods are there."""
        for group in near.groups:
            for rule in self._of_group.get(group, ()):
                spread = rule.kind == "spread"
                domain = _spread_domain(rule, place) if spread else place.domain(rule.topology)
                if domain is not None:
                    counts = self._counts[rule.key]
                    counts[domain] = counts.get(domain, 0) + pods

    def allow(self, near: Near, place: Place) -> bool:
        """True where one more such pod may be there, by its rules."""
        return self.broken_rule(near, place) is None

    def broken_rule(self, near: Near, place: Place) -> NearRule | None:
        """The rule that keeps one more such pod off, or None."""
        beside = [rule for rule in near.rules if rule.kind == "with"]
        first = bool(beside) and beside[0].own and not any(self._counts[rule.key] for rule in beside)
        return next((rule for rule in near.rules if not self._holds(rule, place, first=first)), None)

    def _holds(self, rule: NearRule, place: Place, *, first: bool) -> bool:
        domain, counts = place.domain(rule.topology), self._counts[rule.key]
        if rule.kind == "apart":
            return domain is None or not counts.get(domain)
        if domain is None:
            return False
        if rule.kind == "with":
            return first or counts.get(domain, 0) > 0
        return _skew(rule, counts, domain) <= rule.max_skew

    def copy_counts(self) -> dict[str, dict[str, int]]:
        """All counts, to give back to ``restore``."""
        return {key: dict(counts) for key, counts in self._counts.items()}

    def restore(self, saved: Mapping[str, Mapping[str, int]]) -> None:
        """Count as it was."""
        self._counts = {key: dict(counts) for key, counts in saved.items()}


def _skew(rule: NearRule, counts: Mapping[str, int], domain: str) -> int:
    """Pods that a domain has more than the least, with one more pod."""
    least = min(counts.values(), default=0) if len(counts) >= rule.min_domains else 0
    return counts.get(domain, 0) + rule.own - least


def _spread_domain(rule: NearRule, place: Place) -> str | None:
    """The domain of a node that a rule spreads over; None where it does not look at that node."""
    if any(place.domain(key) is None for key in rule.keys) or not selects(place.labels, rule.nodes):
        return None
    if rule.bears is not None and untolerated_taint(place.taints, rule.bears) is not None:
        return None
    return place.domain(rule.topology)


NOBODY = Neighbours({}, ())
