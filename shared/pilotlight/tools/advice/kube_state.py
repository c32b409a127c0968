"""Free GPUs by node, what waits and what pods held, from kube-state-metrics in the same Prometheus."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from math import isfinite

from pilotlight.adapters.prometheus_api import Labels, PrometheusApi
from pilotlight.tools.advice.money.spend_by import PodTime

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
RAN = (
    f'sum by (node,exported_node,namespace,pod) (sum_over_time(({_ASKED[:-1]},node!=""}} * on(namespace,pod) '
    'group_left() max by (namespace,pod) (kube_pod_status_phase{phase="Running"} == 1))[SPAN:60s]))'
)
"""GPU-minutes that pods held on nodes in a span."""


def free_gpus(api: PrometheusApi, at_s: float) -> tuple[Mapping[str, int], tuple[int, ...]] | None:
    """Free GPUs by node and what each waiting pod asks for; None where Prometheus has no nodes with GPUs."""
    have = {_name(labels): _count(value) for labels, value in api.vector(ALLOCATABLE, at_s)}
    if not have:
        return None
    held = {_name(labels): _count(value) for labels, value in api.vector(HELD, at_s)}
    waiting = tuple(_count(value) for _, value in api.vector(WAITING, at_s))
    return {node: max(0, count - held.get(node, 0)) for node, count in have.items()}, waiting


def pod_times(api: PrometheusApi, days: Iterable[date], now: datetime, label: str = "") -> Iterator[PodTime]:
    """GPU-time of pods by day and node, under their names or the values of a label of theirs; without it, under ""."""
    for day in days:
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        end = min(now, start + timedelta(days=1))
        if end <= start:
            continue
        span = f"{round((end - start).total_seconds())}s"
        names = _labels(api, label, span, end.timestamp()) if label else {}
        for labels, value in api.vector(RAN.replace("SPAN", span), end.timestamp()):
            pod = labels.get("namespace", ""), labels.get("pod", "")
            weight = float(value)
            if isfinite(weight) and weight > 0:
                shown = names.get(pod, "") if label else "/".join(pod)
                yield PodTime(day, _name(labels), pod[0], shown, weight)


def _labels(api: PrometheusApi, label: str, span: str, at_s: float) -> dict[tuple[str, str], str]:
    """The value of a label by pod. kube-state-metrics writes what no name in Prometheus may have as "_"."""
    name = "label_" + re.sub(r"\W", "_", label, flags=re.ASCII)
    found = api.vector(f'max by (namespace,pod,{name}) (last_over_time(kube_pod_labels{{{name}!=""}}[{span}]))', at_s)
    return {(labels.get("namespace", ""), labels.get("pod", "")): labels.get(name, "") for labels, _ in found}


def _name(labels: Labels) -> str:
    return labels.get("exported_node") or labels.get("node", "")


def _count(text: str) -> int:
    value = float(text)
    return round(value) if isfinite(value) and value > 0 else 0
