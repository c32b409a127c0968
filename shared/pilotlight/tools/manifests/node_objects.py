"""Objects on nodes or behind them: Karpenter's NodePools, and a DaemonSet that has images there before pods come."""

from collections.abc import Iterator, Sequence

from pilotlight.facts.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from pilotlight.tools.manifests.pools_on_sale import LABELS, Object, Sold, tolerations, types_of

PAUSE = "registry.k8s.io/pause:3.10"


def nodepools(pools: Sequence[Sold], node_class: str) -> Iterator[Object]:
    """A NodePool a pool: the same types, zones, labels, taints and most GPUs, and only empty nodes go."""
    for each in pools:
        wanted = [(INSTANCE_TYPE, [each.pool.instance_type]), (CAPACITY_TYPE, [each.pool.capacity_type])]
        wanted += [(ZONE, list(each.pool.zones))] if each.pool.zones else []
        spec: Object = {
            "requirements": [{"key": key, "operator": "In", "values": values} for key, values in wanted],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": node_class},
            "expireAfter": f"{int(each.pool.renew.max_age // 3600)}h" if each.pool.renew.max_age else "Never",
        }
        if each.pool.taints:
            spec["taints"] = [_taint(t.key, t.value, t.effect) for t in each.pool.taints]
        idle = int(each.pool.idle_timeout if each.pool.idle_timeout is not None else 300)
        yield {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": each.name, "labels": LABELS},
            "spec": {
                "template": {"metadata": {"labels": each.pool.labels}, "spec": spec},
                "limits": {each.machine.gpu_resource: str(each.gpus)},
                "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": f"{idle}s"},
            },
        }


def prepull(pools: Sequence[Sold], images: Sequence[str], namespace: str) -> Iterator[Object]:
    """A DaemonSet of one pod a GPU node that asks for no GPU: each image is pulled by a container that ends at once."""
    named = {"app.kubernetes.io/name": "pilotlight", "app.kubernetes.io/component": "prepull"}
    terms = [{"matchExpressions": [{"key": INSTANCE_TYPE, "operator": "In", "values": types_of(pools)}]}]
    least = {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}}
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    pulls = [
        {
            "name": f"pull-{n}",
            "image": image,
            "command": ["sh", "-c", "exit 0"],
            "resources": least,
            "securityContext": safe,
        }
        for n, image in enumerate(images)
    ]
    yield {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "pilotlight-prepull", "namespace": namespace, "labels": named},
        "spec": {
            "selector": {"matchLabels": named},
            "template": {
                "metadata": {"labels": named},
                "spec": {
                    "affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}},
                    "tolerations": tolerations(pools),
                    "automountServiceAccountToken": False,
                    "securityContext": {"runAsNonRoot": True, "runAsUser": 65532},
                    "initContainers": pulls,
                    "containers": [{"name": "stay", "image": PAUSE, "resources": least, "securityContext": safe}],
                    "terminationGracePeriodSeconds": 1,
                },
            },
        },
    }


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _taint(key: str, value: str, effect: str) -> Object:
    return {"key": key, "effect": effect} | ({"value": value} if value else {})
