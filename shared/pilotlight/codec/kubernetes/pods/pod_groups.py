"""Pods that start together: who says so, and how many they are.

A plain Job with parallelism is no gang: its pods start one by one. Sources of the names: Kueue plain pod groups,
Volcano, the scheduler plugins' coscheduling, JobSet, Kubeflow training operator, KAI (v2alpha2), LeaderWorkerSet (v1),
Kubernetes' own PodGroups (scheduling.k8s.io/v1alpha2 of 1.36), KubeRay's RayClusters, those of RayJobs too, and
Pilotlight's own annotation.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pilotlight.codec.kubernetes.bounds import GANG_PODS, whole_name
from pilotlight.codec.kubernetes.companions import LeaderWorkerSet, PodGroup
from pilotlight.codec.kubernetes.typed_objects import Pod
from pilotlight.facts.labels import GANG, GANG_SIZE
from pilotlight.facts.workload import Gang

OF_KAI = "pod-group-name"
"""The annotation that KAI's pod grouper puts on pods."""
GANG_ANNOTATIONS = (GANG, "scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name", OF_KAI)
_LABELS = (
    "kueue.x-k8s.io/pod-group-name",
    "scheduling.x-k8s.io/pod-group",
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
)
_LWS = "leaderworkerset.sigs.k8s.io/"
NO_SETS: Mapping[str, LeaderWorkerSet] = {}
LWS_NAME, _LWS_GROUP, _LWS_WORKER = f"{_LWS}name", f"{_LWS}group-index", f"{_LWS}worker-index"
_RAY_CLUSTER, _RAY_NODE = "ray.io/cluster", "ray.io/node-type"
_NAMED = frozenset((*GANG_ANNOTATIONS, *_LABELS, LWS_NAME, _RAY_CLUSTER))
_RAY_SCALER = "autoscaler"
"""The container that KubeRay puts into the head of a RayCluster which scales itself."""
_TOO_MANY = int(GANG_PODS.most) + 1
"""What a size counts as that is larger: no gang of it is ever whole."""
_SIZES = (GANG_SIZE, "kueue.x-k8s.io/pod-group-total-count", f"{_LWS}size")


def gang_key(pod: Pod) -> str:
    """The gang a pod belongs to, as "namespace/name", or empty."""
    meta = pod.metadata
    if pod.spec.scheduling_group is None and _NAMED.isdisjoint(meta.annotations) and _NAMED.isdisjoint(meta.labels):
        return ""
    named = [meta.annotations[a] for a in GANG_ANNOTATIONS if meta.annotations.get(a)]
    named += [meta.labels[n] for n in _LABELS if meta.labels.get(n)]
    if meta.labels.get(LWS_NAME) and meta.labels.get(_LWS_GROUP):
        named.append(f"{meta.labels[LWS_NAME]}-{meta.labels[_LWS_GROUP]}")
    if pod.spec.scheduling_group is not None and pod.spec.scheduling_group.pod_group_name:
        named.append(pod.spec.scheduling_group.pod_group_name)
    if meta.labels.get(_RAY_CLUSTER):
        named.append(meta.labels[_RAY_CLUSTER])
    return f"{meta.namespace}/{whole_name(named[0])}" if named else ""


def in_set(pod: Pod) -> bool:
    """True where a LeaderWorkerSet made it."""
    return LWS_NAME in pod.metadata.labels


def gang_sizes(
    pods: Iterable[tuple[Pod, bool]], groups: Mapping[str, PodGroup], sets: Mapping[str, LeaderWorkerSet] = NO_SETS
) -> dict[str, Gang]:
    """Every gang by key, from all live pods and whether each holds a GPU.

    Its size is what its pods or its PodGroup declare, else the number of its pods there are; members that hold no
    GPU (an MPI launcher) are not counted. A PodGroup of one pod is no gang, nor is a RayCluster that scales itself: its
    workers come one by one. Of a LeaderWorkerSet whose workers are made when their leader is ready, a leader without
    workers needs nobody else.
    """
    with_gpu: dict[str, int] = defaultdict(int)
    without: dict[str, int] = defaultdict(int)
    declared: dict[str, int] = {}
    led: dict[str, bool] = {}
    scaled: set[str] = set()
    for pod, has_gpu in pods:
        key = gang_key(pod)
        if not key:
            continue
        (with_gpu if has_gpu else without)[key] += 1
        size = _declared(pod, groups.get(key))
        if size:
            declared[key] = size
        if _leads_alone(pod, sets) is not None:
            led[key] = led.get(key, True) and bool(_leads_alone(pod, sets))
        if _scales_its_cluster(pod):
            scaled.add(key)
    alone = scaled.union(key for key, leader in led.items() if leader)
    alone |= {key for key, group in groups.items() if group.least <= 1 and declared.get(key, 1) == 1}
    return {
        key: Gang(key=key, size=max(1, declared[key] - without[key] if key in declared else count))
        for key, count in with_gpu.items()
        if key not in alone
    }


def _leads_alone(pod: Pod, sets: Mapping[str, LeaderWorkerSet]) -> bool | None:
    """True where a pod is a leader whose workers wait for it; None for one of no such set."""
    meta = pod.metadata
    made_by = sets.get(f"{meta.namespace}/{meta.labels.get(LWS_NAME, '')}")
    if made_by is None or made_by.spec.startup_policy != "LeaderReady":
        return None
    return meta.labels.get(_LWS_WORKER) == "0"


def _scales_its_cluster(pod: Pod) -> bool:
    """True where a pod is the head of a RayCluster that adds and removes workers as it needs them."""
    head = pod.metadata.labels.get(_RAY_NODE) == "head"
    return head and any(container.name == _RAY_SCALER for container in pod.spec.containers)


def _declared(pod: Pod, group: PodGroup | None) -> int:
    meta = pod.metadata
    for name in _SIZES:
        text = meta.annotations.get(name) or meta.labels.get(name) or ""
        digits = text.lstrip("0") if text.isascii() and text.isdigit() else ""
        if digits:
            return int(digits) if len(digits) < 9 else _TOO_MANY
    return min(group.least, _TOO_MANY) if group else 0
