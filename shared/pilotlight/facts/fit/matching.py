"""Labels and taints: what a node selector chooses and what a toleration bears, by the rules of Kubernetes."""

import re
from collections.abc import Iterable, Mapping, Sequence

from pilotlight.facts.capacity import Taint
from pilotlight.facts.workload import Requirement, Toleration

_INTEGER = r"[+-]?[0-9]{1,19}"


def selects(labels: Mapping[str, str], terms: Sequence[Sequence[Requirement]]) -> bool:
    """True where labels meet node affinity: any of ``terms``, all of whose requirements hold. No terms: anywhere."""
    for term in terms:
        for requirement in term:
            if not holds(labels, requirement):
                break
        else:
            return True
    return not terms


def holds(labels: Mapping[str, str], requirement: Requirement) -> bool:
    """One requirement against labels. As in Kubernetes, NotIn and DoesNotExist hold where the key is absent."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            have, bound = _integer(value or ""), _integer(*requirement.values[:1])
            if have is None or bound is None:
                return False
            return have > bound if requirement.operator == "Gt" else have < bound


def _integer(text: str = "") -> int | None:
    """A number as Go's ParseInt reads it: Python's int() would take "1_0" and " 1" too."""
    return int(text) if re.fullmatch(_INTEGER, text) and -(2**63) <= int(text) < 2**63 else None


def untolerated_taint(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps a pod off (NoSchedule or NoExecute), or None."""
    for taint in taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not any(_tolerates(t, taint) for t in tolerations):
            return taint
    return None


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if not toleration.key:
        return toleration.operator == "Exists"
    if toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value
