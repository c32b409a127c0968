"""Reasons that would stop a pod's eviction, by the rules that cluster autoscalers follow."""

from msgspec.structs import replace

from pilotlight.codec.kubernetes.companions import DisruptionBudget, Objects
from pilotlight.codec.kubernetes.pods.pods import is_daemon, is_mirror
from pilotlight.codec.kubernetes.selectors import covers
from pilotlight.codec.kubernetes.typed_objects import Pod

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_SAYS = frozenset((SAFE_TO_EVICT, DO_NOT_DISRUPT))


def blocks_drain(pod: Pod, objects: Objects) -> str:
    """Why a pod on a node would stop its drain, or empty. DaemonSet and mirror pods never do."""
    annotations = pod.metadata.annotations
    local = _has_local_storage(pod)
    if not (local or objects.budgets) and _SAYS.isdisjoint(annotations):
        return ""
    if is_daemon(pod) or is_mirror(pod):
        return ""
    if annotations.get(SAFE_TO_EVICT) == "false":
        return f"annotation {SAFE_TO_EVICT}=false"
    if annotations.get(DO_NOT_DISRUPT) == "true":
        return f"annotation {DO_NOT_DISRUPT}=true"
    budget = _exhausted_budget(pod, objects)
    if budget:
        return f"PodDisruptionBudget {budget} allows no disruption"
    if annotations.get(SAFE_TO_EVICT) != "true" and local:
        return "local storage (emptyDir or hostPath)"
    return ""


def _has_local_storage(pod: Pod) -> bool:
    for volume in pod.spec.volumes:
        if volume.host_path is not None or (volume.empty_dir and volume.empty_dir.medium != "Memory"):
            return True
    return False


def _exhausted_budget(pod: Pod, objects: Objects) -> str:
    for budget in objects.budgets.values():
        selector = budget.spec.selector if budget.metadata.namespace == pod.metadata.namespace else None
        if selector and is_exhausted(budget) and covers(selector, pod.metadata.labels):
            return budget.metadata.name
    return ""


def is_exhausted(budget: DisruptionBudget) -> bool:
    """True where it lets no pod go now."""
    return budget.status.disruptions_allowed < 1


def only_exhausted(objects: Objects) -> Objects:
    """The objects with those disruption budgets alone that let no pod go now: no other holds a pod."""
    return replace(objects, budgets={name: one for name, one in objects.budgets.items() if is_exhausted(one)})
