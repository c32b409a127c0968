"""Pods that start together: who says so, and how many they are.

A plain Job with parallelism is no gang: its pods start one by one. Sources of the names: Kueue plain pod groups,
Volcano, the scheduler plugins' coscheduling, JobSet, Kubeflow training operator, and Pilotlight's own annotation.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pilotlight.codec.kubernetes.companions import PodGroup
from pilotlight.codec.kubernetes.objects import Pod
from pilotlight.facts.labels import GANG, GANG_SIZE
from pilotlight.facts.workload import Gang

_ANNOTATIONS = (GANG, "scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_LABELS = (
    "kueue.x-k8s.io/pod-group-name",
    "scheduling.x-k8s.io/pod-group",
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
)
_SIZES = (GANG_SIZE, "kueue.x-k8s.io/pod-group-total-count")


def gang_key(pod: Pod) -> str:
    """The gang a pod belongs to, as "namespace/name", or empty."""
    meta = pod.metadata
    named = [meta.annotations[a] for a in _ANNOTATIONS if meta.annotations.get(a)]
    named += [meta.labels[n] for n in _LABELS if meta.labels.get(n)]
    return f"{meta.namespace}/{named[0]}" if named else ""


def gang_sizes(pods: Iterable[tuple[Pod, bool]], groups: Mapping[str, PodGroup]) -> dict[str, Gang]:
    """Every gang by key, from all live pods and whether each holds a GPU.

    Its size is what its pods or its PodGroup declare, else the number of its pods there are; members that hold no
    GPU (an MPI launcher) are not counted.
    """
    with_gpu: dict[str, int] = defaultdict(int)
    without: dict[str, int] = defaultdict(int)
    declared: dict[str, int] = {}
    for pod, has_gpu in pods:
        key = gang_key(pod)
        if not key:
            continue
        (with_gpu if has_gpu else without)[key] += 1
        size = _declared(pod, groups.get(key))
        if size:
            declared[key] = size
    return {
        key: Gang(key=key, size=max(1, declared[key] - without[key] if key in declared else count))
        for key, count in with_gpu.items()
    }


def _declared(pod: Pod, group: PodGroup | None) -> int:
    meta = pod.metadata
    for name in _SIZES:
        text = meta.annotations.get(name) or meta.labels.get(name) or ""
        if text.isascii() and text.isdigit() and int(text[:9]) > 0:
            return int(text[:9])
    return group.spec.min_member if group else 0
