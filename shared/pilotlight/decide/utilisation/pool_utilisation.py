"""Use of a pool's GPUs, from telemetry: a pool with a pod that was not measured is not known."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from math import isnan

from pilotlight.facts.capacity import Node
from pilotlight.facts.utilisation.pool_use import PoolUse
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.units import MILLI_PER_GPU

LATELY = 5
"""One of so many samples at the end was measured, or the series is over."""


def measure_pool_use(telemetry: Telemetry, nodes: Iterable[Node], now: datetime) -> PoolUse:
    """The use of each pool whose pods were all measured; a GPU without a pod did nothing."""
    series: dict[str, list[float]] = defaultdict(list)
    for one in telemetry.series:
        series[one.pod].append(_mean(one))
    used: dict[str, float] = defaultdict(float)
    whole: dict[str, int] = defaultdict(int)
    unknown: set[str] = set()
    for node in nodes:
        if not node.ready:
            continue
        whole[node.pool] += node.gpus
        for pod in node.gpu_pods:
            did = series.get(f"{pod.namespace}/{pod.name}", [])
            devices = pod.gpu.count if pod.gpu is not None and pod.gpu.milli >= MILLI_PER_GPU else 1
            if len(did) != devices or any(isnan(mean) for mean in did):
                unknown.add(node.pool)
            used[node.pool] += sum(did)
    pools = {name: min(1.0, used[name] / gpus) for name, gpus in whole.items() if gpus and name not in unknown}
    return PoolUse(at=now, metric=telemetry.metric, pools=pools)


def _mean(one: GpuSeries) -> float:
    """The mean of what was measured and can be; nan where the end was not."""
    values = [value for value in one.activity if 0 <= value <= 1]
    fresh = any(0 <= value <= 1 for value in one.activity[-LATELY:])
    return sum(values) / len(values) if fresh else float("nan")
