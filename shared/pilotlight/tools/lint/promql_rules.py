"""Rules on PromQL: names that no exporter writes, gauges taken for counters, containers taken for GPUs.

Names and kinds are those of dcgm-exporter 4.8, kube-state-metrics and Kueue.
"""

import re
from collections.abc import Iterator

from pilotlight.tools.lint.fault import Lint

_COUNTERS = ("TOTAL_ENERGY_CONSUMPTION", "BANDWIDTH_TOTAL", "REPLAY_COUNTER", "VIOLATION", "ECC_", "_REMAPPED_ROWS")
_RENAMED = {
    "dcgm_gpu_utilization": "DCGM_FI_DEV_GPU_UTIL",
    "nvidiagpuutilization": "DCGM_FI_DEV_GPU_UTIL",
    "nvidia_gpu_utilization": "DCGM_FI_DEV_GPU_UTIL",
    "dcgm_fb_used": "DCGM_FI_DEV_FB_USED",
    "dcgm_fb_free": "DCGM_FI_DEV_FB_FREE",
    "dcgm_dram_active": "DCGM_FI_PROF_DRAM_ACTIVE",
    "dcgm_gpu_temp": "DCGM_FI_DEV_GPU_TEMP",
    "dcgm_power_usage": "DCGM_FI_DEV_POWER_USAGE",
    "dcgm_nvlink_bandwidth_total": "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
}
_NAME = re.compile(r"(?<![\w:])[a-zA-Z_:][\w:]*")
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
_LABELS = re.compile(r"\{[^{}]*\}")
_FREE = re.compile(r"FB_USED\b[^/+]*/[^/+]*FB_FREE\b|fb_used\b[^/+]*/[^/+]*fb_free\b")
_RATE = re.compile(r"\b(?:rate|irate|increase)\s*\(\s*(\w+)")
_COUNT = re.compile(
    r"\bcount\s*(?:by\s*\([^)]*\)\s*|without\s*\([^)]*\)\s*)?\(\s*(kube_pod_container_resource_(?:limits|requests))"
)
_HISTOGRAM = re.compile(r"\b(kueue_\w*wait_time_seconds)\b(?!_)")
_GPU_LABEL = re.compile(r"[{,]\s*nvidia_com_gpu\s*[=!]")
_SPOT = re.compile(r"capacity_?type\"?\s*=~?\s*[\"'][^\"']*spot", re.IGNORECASE)
_ON_NODE = re.compile(r"\bon\s*\(\s*node\s*\)")


def promql_rules(where: str, query: str) -> Iterator[Lint]:
    """Faults of one query."""

    def fault(rule: str, what: str, fix: str) -> Lint:
        return Lint(rule=rule, level="fault", where=where, what=what, fix=fix)

    plain = _TEXT.sub('""', query)  # No name is looked for in a label's value.
    bare = _LABELS.sub("", plain)
    for name in sorted({name for name in _NAME.findall(bare) if name.lower() in _RENAMED}):
        yield fault("metric-name", f"{name} is no metric of today's exporter", f"write {_RENAMED[name.lower()]}")
    if _FREE.search(bare):
        what = "used over free memory is no share: 0.95 of it is 49 % full"
        fix = "divide by (FB_USED + FB_FREE + FB_RESERVED)"
        yield fault("memory-share", what, fix)
    for name in sorted(set(_RATE.findall(bare))):
        if _is_gauge(name):
            yield fault("rate-of-gauge", f"rate() of {name}, which is a gauge", f"use deriv({name}[...]) or delta()")
    for name in sorted(set(_COUNT.findall(bare))):
        yield fault(
            "count-of-gpus", f"count({name}) counts containers, not GPUs", f"use sum({name}" + "{resource=...})"
        )
    if _GPU_LABEL.search(plain):
        what = "nvidia_com_gpu is no label: it is the value of the label resource"
        yield fault("gpu-label", what, 'write {resource="nvidia_com_gpu"}')
    for name in sorted(set(_HISTOGRAM.findall(bare))):
        what = f"{name} is a histogram: no series has that bare name"
        fix = f"use histogram_quantile(0.95, sum by (le) (rate({name}_bucket[5m])))"
        yield fault("histogram", what, fix)
    if _ON_NODE.search(bare) and "DCGM_" in bare.upper():
        yield fault("dcgm-join", "DCGM's series carry no label node", "join on Hostname, or by namespace and pod")
    if _SPOT.search(query) and "/" in bare and not _of_gpus(query):
        what = "a share of spot that counts every node, also those without GPUs"
        yield fault("spot-share", what, "select GPU nodes on both sides of the division")


def _is_gauge(name: str) -> bool:
    return name.lower().startswith(("dcgm_", "kueue_pending")) and not any(each in name.upper() for each in _COUNTERS)


def _of_gpus(query: str) -> bool:
    return "gpu" in query.lower() or "DCGM" in query
