"""Shares of the pools' GPUs by team: ResourceQuota and LimitRange, Kueue's flavors and queues, Volcano's queues.

A quota counts what runs at once, a budget what it costs over a period: no quota here refuses what a budget would allow.
"""

from collections.abc import Iterator, Sequence

from pilotlight.facts.labels import INSTANCE_TYPE
from pilotlight.tools.manifests.pools_on_sale import LABELS, Object, Sold, Team, tolerations

COHORT = "pilotlight"
KUEUE = "kueue.x-k8s.io/v1beta2"
_PRIORITIES = (
    ("gpu-production", 1_000_000),
    ("gpu-training", 100_000),
    ("gpu-development", 10_000),
    ("gpu-experiment", 1_000),
)
"""As infra/kubernetes/priority-classes.yaml ranks pods."""


def quotas(pools: Sequence[Sold], teams: Sequence[Team]) -> Iterator[Object]:
    """ResourceQuotas: GPUs that a team's namespace may ask for at once, and those that one container of it may."""
    resources = sorted({each.machine.gpu_resource for each in pools})
    largest = {r: max(s.machine.gpus for s in pools if s.machine.gpu_resource == r) for r in resources}
    for team in teams:
        meta = {"name": "pilotlight-gpus", "namespace": team.namespace, "labels": LABELS}
        hard = {f"requests.{resource}": str(team.gpus) for resource in resources}
        yield {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}
        limit = {"type": "Container", "max": {resource: str(n) for resource, n in largest.items()}}
        yield {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": [limit]}}


def kueue(pools: Sequence[Sold], teams: Sequence[Team]) -> Iterator[Object]:
    """A flavor a pool, a ClusterQueue a team in one cohort with its LocalQueue, and the ranks of work.

    What a team does not use the others may borrow; its share of a pool is as its GPUs are to all teams'.
    """
    for each in pools:
        spec: Object = {"nodeLabels": {**each.pool.labels, INSTANCE_TYPE: each.pool.instance_type}}
        if each.pool.taints:
            taints = [{"key": t.key, "value": t.value, "effect": t.effect} for t in each.pool.taints]
            spec |= {"nodeTaints": taints, "tolerations": tolerations([each])}
        yield _kueue("ResourceFlavor", each.name, spec)
    for name, rank in _PRIORITIES:
        yield {
            "apiVersion": KUEUE,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": name, "labels": LABELS},
            "value": rank,
        }
    everybody = sum(team.gpus for team in teams) or 1
    for n, team in enumerate(teams):
        flavors = [_flavor(each, _share(each.gpus, teams, n, everybody)) for each in pools]
        covered = ["cpu", "memory", *sorted({each.machine.gpu_resource for each in pools})]
        groups = [{"coveredResources": covered, "flavors": [_covering(flavor, covered) for flavor in flavors]}]
        queue: Object = {"cohortName": COHORT, "namespaceSelector": {}, "resourceGroups": groups}
        queue |= {"preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}}
        yield _kueue("ClusterQueue", f"{team.name}-gpus", queue)
        yield _kueue("LocalQueue", "gpus", {"clusterQueue": f"{team.name}-gpus"}, team.namespace)


def volcano(pools: Sequence[Sold], teams: Sequence[Team]) -> Iterator[Object]:
    """A Queue a team: its weight is its share, its capability what it may have at once."""
    resources = sorted({each.machine.gpu_resource for each in pools})
    for team in teams:
        spec: Object = {"weight": max(1, team.gpus), "reclaimable": True}
        spec |= {"capability": {resource: str(team.gpus) for resource in resources}}
        meta = {"name": f"{team.name}-gpus", "labels": LABELS}
        yield {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": meta, "spec": spec}


def _share(gpus: int, teams: Sequence[Team], n: int, everybody: int) -> int:
    """A team's share in whole GPUs: all shares together are all GPUs."""
    before = sum(team.gpus for team in teams[:n])
    return gpus * (before + teams[n].gpus) // everybody - gpus * before // everybody


def _flavor(each: Sold, gpus: int) -> Object:
    """CPU and memory are not what is short: a flavor has all that its pool's nodes have."""
    nodes = max(1, each.pool.max)
    return {
        "name": each.name,
        "resources": {"cpu": f"{1000 * nodes}", "memory": f"{16 * nodes}Ti", each.machine.gpu_resource: str(gpus)},
    }


def _covering(flavor: Object, covered: Sequence[str]) -> Object:
    resources = [{"name": name, "nominalQuota": flavor["resources"].get(name, "0")} for name in covered]
    return {"name": flavor["name"], "resources": resources}


def _kueue(kind: str, name: str, spec: Object, namespace: str = "") -> Object:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name, **where, "labels": LABELS}, "spec": spec}
