"""Free GPUs by node and what waits, from kube-state-metrics in the same Prometheus."""

from collections.abc import Mapping
from math import isfinite

from pilotlight.adapters.prometheus_api import Labels, PrometheusApi

GPU = 'resource="nvidia_com_gpu"'
ALLOCATABLE = f"kube_node_status_allocatable{{{GPU}}}"
_ASKED = f"kube_pod_container_resource_requests{{{GPU}}}"
HELD = (
    f'sum by (node) ({_ASKED[:-1]},node!=""}} * on(namespace,pod) group_left() '
    'max by (namespace,pod) (kube_pod_status_phase{phase=~"Pending|Running"} == 1))'
)
WAITING = (
    f"sum by (namespace,pod) ({_ASKED} * on(namespace,pod) group_left() "
    "max by (namespace,pod) (kube_pod_status_unschedulable == 1))"
)
"""Sums, for a count would count containers."""


def free_gpus(api: PrometheusApi, at_s: float) -> tuple[Mapping[str, int], tuple[int, ...]] | None:
    """Free GPUs by node and what each waiting pod asks for; None where Prometheus has no nodes with GPUs."""
    have = {_name(labels): _count(value) for labels, value in api.vector(ALLOCATABLE, at_s)}
    if not have:
        return None
    held = {_name(labels): _count(value) for labels, value in api.vector(HELD, at_s)}
    waiting = tuple(_count(value) for _, value in api.vector(WAITING, at_s))
    return {node: max(0, count - held.get(node, 0)) for node, count in have.items()}, waiting


def _name(labels: Labels) -> str:
    return labels.get("exported_node") or labels.get("node", "")


def _count(text: str) -> int:
    value = float(text)
    return round(value) if isfinite(value) and value > 0 else 0
