"""Where a pod may run: selector, required node affinity, the reach of its volumes, tolerations."""

from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Protocol

from pilotlight.codec.kubernetes.bounds import HOMES, LABEL_VALUE, TERMS, too_many
from pilotlight.codec.kubernetes.typed_objects import Expression, NodeSelector, Pod, Selector, WireToleration
from pilotlight.facts.labels import HOME, NODE_NAME, ZONE, ZONE_ALIASES
from pilotlight.facts.workload import Requirement, Toleration


class Labelled(Protocol):
    """A label, and the values it may have."""

    @property
    def key(self) -> str: ...
    @property
    def values(self) -> tuple[str, ...]: ...


Terms = tuple[tuple[Requirement, ...], ...]
"""Alternatives (OR) of requirements that must all hold (AND); empty means anywhere."""

NOWHERE: Terms = ((Requirement(key=NODE_NAME, operator="In"),),)
"""As in Kubernetes, a selector with no usable term matches no node."""


def pod_terms(pod: Pod, reach: Iterable[Terms] = ()) -> Terms:
    """``nodeSelector`` and required node affinity together, and the ``reach`` of each of its volumes.

    Alternatives multiply: those that several parts have alike are taken once, as volumes of one class do. Raises
    ``Unreadable`` where too many are left, before any is made.
    """
    selector = tuple(_requirement(key, (value,)) for key, value in sorted(pod.spec.node_selector.items()))
    parts: list[Terms] = [(selector,)] if selector else []
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if affinity and affinity.required:
        parts.append(selector_terms(affinity.required))
    parts.extend(terms for terms in reach if terms)
    parts = list(dict.fromkeys(parts))
    if (count := prod(map(len, parts))) > TERMS.most:
        raise too_many("alternatives of where it may run", count, TERMS)
    return tuple(tuple(r for term in combination for r in term) for combination in product(*parts)) if parts else ()


def selector_terms(selector: NodeSelector) -> Terms:
    """The terms of a node selector; ``matchFields`` on the name are requirements on ``metadata.name``."""
    terms = tuple(
        tuple(_of(e) for e in (*term.match_expressions, *term.match_fields))
        for term in selector.node_selector_terms
        if term.match_expressions or term.match_fields
    )
    return terms or NOWHERE


def tolerations(wire: Iterable[WireToleration]) -> tuple[Toleration, ...]:
    """Tolerations as facts, but those of homes. An operator other than Exists and Equal (newer than v1.36) tolerates
    nothing here.
    """
    return tuple(
        Toleration(key=t.key, operator="Exists" if t.operator == "Exists" else "Equal", value=t.value, effect=t.effect)
        for t in wire
        if t.operator in ("Exists", "Equal", "") and t.key != HOME
    )


def homes(wire: Iterable[WireToleration]) -> tuple[str, ...]:
    """Homes that are tolerated, the last ones where there are too many, for ours come last; "*" is every home.

    A value that no taint can have is nobody's home.
    """
    own = [t for t in wire if t.key == HOME and t.effect in ("", "NoSchedule")]
    if any(t.operator == "Exists" for t in own):
        return ("*",)
    named = [t.value for t in own if t.operator in ("Equal", "") and LABEL_VALUE.fullmatch(t.value)]
    return tuple(dict.fromkeys(named))[-int(HOMES.most) :]


def expression_terms(expressions: Iterable[Labelled]) -> tuple[Requirement, ...]:
    """One term: labels that must all have one of their values."""
    return tuple(_requirement(e.key, tuple(sorted(e.values))) for e in expressions)


def label_term(selector: Selector) -> tuple[Requirement, ...]:
    """One term: what a label selector asks for."""
    labels = (_requirement(key, (value,)) for key, value in sorted(selector.match_labels.items()))
    return (*labels, *map(_of, selector.match_expressions))


def _of(expression: Expression) -> Requirement:
    key = ZONE if expression.key in ZONE_ALIASES else expression.key
    return Requirement(key=key, operator=expression.operator, values=tuple(sorted(expression.values)))


def _requirement(key: str, values: tuple[str, ...]) -> Requirement:
    return Requirement(key=ZONE if key in ZONE_ALIASES else key, operator="In", values=values)
