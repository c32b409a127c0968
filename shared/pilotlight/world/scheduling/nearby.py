"""Rules on pods near each other: the scheduler's rules, apart from the planner's, so that each checks the other.

Pods are counted anew for each that is bound. Sources: Kubernetes 1.36, plugins InterPodAffinity and PodTopologySpread.
"""

from collections.abc import Iterator, Sequence

from pilotlight.facts.capacity import Taint
from pilotlight.facts.labels import HOME
from pilotlight.facts.workload import Near, NearRule
from pilotlight.world.scheduling.filters import affine, is_repelled
from pilotlight.world.world_nodes import WorldNode

Counts = dict[str, int]
"""Pods by domain: by the value of a label that nodes share."""


class Nearby:
    """The pods on ``nodes`` as one pod sees them that tolerates ``homes`` and is to be bound by its rules ``near``."""

    def __init__(self, near: Near, nodes: Sequence[WorldNode], homes: Sequence[str] = ()) -> None:
        by_kind = [
            [(r, count_by_domain(r, nodes, homes)) for r in near.rules if r.kind == kind]
            for kind in ("with", "apart", "spread")
        ]
        self._beside, self._apart, self._even = by_kind

    def admit(self, node: WorldNode) -> bool:
        """True where the pod may be on this node."""
        labels = node.labels
        if any(rule.topology in labels and counts.get(labels[rule.topology]) for rule, counts in self._apart):
            return False
        return self._has_company(labels) and all(_evens(rule, counts, labels) for rule, counts in self._even)

    def _has_company(self, labels: dict[str, str]) -> bool:
        """Somebody of each rule's pods is in the node's domain; or nobody is anywhere, and the pod is one of them."""
        if any(rule.topology not in labels for rule, _ in self._beside):
            return False
        if all(counts.get(labels[rule.topology], 0) for rule, counts in self._beside):
            return True
        return all(rule.own and not sum(counts.values()) for rule, counts in self._beside)


def count_by_domain(rule: NearRule, nodes: Sequence[WorldNode], homes: Sequence[str] = ()) -> Counts:
    """Number of pods of a rule's group in each domain; of a spread also in those where none is. A spread that honours
    taints looks at open nodes and at ``homes``.
    """
    spread = rule.kind == "spread"
    counts: Counts = {}
    for node, domain in _domains(rule, nodes, homes):
        there = node.groups.get(rule.group, 0)
        if there or spread:
            counts[domain] = counts.get(domain, 0) + there
    return counts


def _domains(rule: NearRule, nodes: Sequence[WorldNode], homes: Sequence[str]) -> Iterator[tuple[WorldNode, str]]:
    """The nodes that a rule looks at, each with its domain."""
    for node in nodes:
        labels = node.labels
        if rule.topology in labels and (rule.kind != "spread" or _spreads_over(rule, node, labels, homes)):
            yield node, labels[rule.topology]


def _spreads_over(rule: NearRule, node: WorldNode, labels: dict[str, str], homes: Sequence[str]) -> bool:
    """It has the labels of all of the pod's spreads, and the pod does not rule it out in a way that counts."""
    if not set(rule.keys) <= set(labels) or not affine(labels, rule.nodes):
        return False
    if rule.bears is None:
        return True
    own = (
        [Taint(key=HOME, value=node.home, effect="NoSchedule")] if node.home and not {node.home, "*"} & {*homes} else ()
    )
    return not is_repelled((*node.machine.pool.taints, *own), rule.bears)


def _evens(rule: NearRule, counts: Counts, labels: dict[str, str]) -> bool:
    """With one more pod its domain has at most ``max_skew`` more than the emptiest; of too few domains: than none."""
    if rule.topology not in labels:
        return False
    emptiest = 0 if len(counts) < rule.min_domains else min(counts.values(), default=0)
    with_it = counts.get(labels[rule.topology], 0) + (1 if rule.own else 0)
    return with_it <= emptiest + rule.max_skew
