"""Replicas by what GPUs do: an HPA on DCGM's metrics with its rule for the Prometheus Adapter, and KEDA's ScaledObject.

Replicas are never more than there can be GPUs for. The figures of the HPA's behaviour are those of article 001.
"""

from collections.abc import Iterator

from pilotlight.tools.manifests.pools_on_sale import LABELS, Object

METRIC = "gpu_utilization"
_RULE = """\
rules:
  - seriesQuery: 'DCGM_FI_DEV_GPU_UTIL{namespace!="",pod!=""}'
    resources:
      overrides:
        namespace: {resource: namespace}
        pod: {resource: pod}
    name: {as: "gpu_utilization"}
    metricsQuery: 'avg by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
"""
"""Percent, of the GPUs of each pod. DCGM's exporter must be scraped with honorLabels, else pod is its own."""


def hpa(namespace: str, deployment: str, least: int, most: int, percent: int, adapter: str) -> Iterator[Object]:
    """The HPA, and the adapter's rule as a ConfigMap in its namespace."""
    labels = {"labels": LABELS}
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "pilotlight-adapter-rules", "namespace": adapter, **labels},
        "data": {"config.yaml": _RULE},
    }
    metric = {"metric": {"name": METRIC}, "target": {"type": "AverageValue", "averageValue": str(percent)}}
    up = [{"type": "Percent", "value": 50, "periodSeconds": 60}, {"type": "Pods", "value": 2, "periodSeconds": 60}]
    down = [{"type": "Percent", "value": 10, "periodSeconds": 60}]
    yield {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": f"{deployment}-gpu", "namespace": namespace, **labels},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment},
            "minReplicas": max(1, least),
            "maxReplicas": most,
            "metrics": [{"type": "Pods", "pods": metric}],
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": 60, "policies": up, "selectPolicy": "Max"},
                "scaleDown": {"stabilizationWindowSeconds": 300, "policies": down},
            },
        },
    }


def keda(
    namespace: str, deployment: str, least: int, most: int, prometheus: str, query: str, each: int
) -> Iterator[Object]:
    """A ScaledObject that goes to zero: ``each`` of what the query counts is one replica's share."""
    trigger = {"serverAddress": prometheus, "query": query, "threshold": str(each), "activationThreshold": "0"}
    yield {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": f"{deployment}-gpu", "namespace": namespace, "labels": LABELS},
        "spec": {
            "scaleTargetRef": {"name": deployment},
            "pollingInterval": 30,
            "cooldownPeriod": 300,
            "minReplicaCount": least,
            "maxReplicaCount": most,
            "triggers": [{"type": "prometheus", "metadata": trigger}],
        },
    }
