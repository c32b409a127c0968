"""Races of a busy cluster told from disagreements, for ``agreement_random.py``.

Late is a DaemonSet's pod that was bound, to a node that the plan had read, after that read and no later than the pod
that the plan refused. Nobody could have planned by it, so the shape is asked again alone, on a cluster that does
nothing else. It is a race where it agrees each time, and a disagreement where it differs once or cannot be tried.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

ALONE = 3
"""So often a shape must agree alone."""
REFUSED = "was refused ("


class Seen(NamedTuple):
    """What the last plan of a shape had read: its nodes by name, and its bound pods by uid."""

    nodes: frozenset[str]
    bound: frozenset[str]


class Judged(Protocol):
    """A shape that was tried."""

    case: dict[str, Any]
    costs: list[str]
    late: list[str]


def refused_alone(name: str, told: str, node: str) -> str:
    """The cost of a pod that was refused and bound after all: the one cost that a late pod can explain."""
    return f"{name} {REFUSED}{told}) and binds to {node}"


def late_daemons(seen: Seen, pods: Mapping[str, Any], after_all: Sequence[str]) -> list[str]:
    """Pods of DaemonSets that came late to nodes of the plan; none where one of ``after_all`` was bound before them."""
    came = {name: _bound_at(pod) for name, pod in pods.items() if _is_daemon(pod) and _is_late(seen, pod)}
    first = min(came.values(), default="")
    return sorted(came) if came and after_all and all(_bound_at(pods[name]) >= first for name in after_all) else []


def is_race(trial: Judged, again: Callable[[int], Sequence[Judged]]) -> bool:
    """True where nothing but late pods of DaemonSets stands behind its costs: alone it agrees each time."""
    if not trial.late or not all(REFUSED in cost for cost in trial.costs):
        return False
    return all((alone := again(n)) and not any(one.costs for one in alone) for n in range(ALONE))


def _is_daemon(pod: Any) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))


def _is_late(seen: Seen, pod: Any) -> bool:
    return pod["spec"].get("nodeName") in seen.nodes and pod["metadata"]["uid"] not in seen.bound


def _bound_at(pod: Any) -> str:
    """When the scheduler bound it; times of Kubernetes are in order as text."""
    said = pod.get("status", {}).get("conditions", ())
    return next(
        (str(c["lastTransitionTime"]) for c in said if (c["type"], c["status"]) == ("PodScheduled", "True")), ""
    )
