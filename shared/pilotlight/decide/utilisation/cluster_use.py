"""Use of a cluster's GPUs now: waste by owner, at what its own nodes cost, and the use of each pool.

Waste is idle pods, idle devices and replicas beyond need. Judged by class where the cluster says it: only serving is
asked how few replicas would do, for a training job's pods all wait for the slowest. An owner of whose GPUs one has no
known price has no dollars here, which is not $0. A pool with a pod that was not measured is not known.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import isnan, nan
from typing import NamedTuple

import msgspec

from pilotlight.decide.demand.classify import made_by
from pilotlight.decide.utilisation.gpu_waste import Waste, waste
from pilotlight.decide.utilisation.idle_pods import IdlePod
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.utilisation.pool_use import PoolUse
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.units import MILLI_PER_GPU, Seconds, UsdPerHour, human

LEAD_S: Seconds = 240
"""Until a new replica works: boot and load of the model."""

LATELY = 5
"""One of so many samples at the end was measured, or the series is over."""


class Wasted(NamedTuple):
    """An owner's waste: devices, of how many that it holds (its part of those that it shares), and the evidence.

    Dollars an hour are by what its pods ask for of their nodes, where prices are known.
    """

    owner: str
    gpus: float
    held: float
    usd_per_hour: UsdPerHour | None
    why: str


class Found(NamedTuple):
    """Dearest first. ``unseen``: GPU pods on nodes of which nothing is measured now."""

    owners: tuple[Wasted, ...]
    unseen: int

    @property
    def usd_per_hour(self) -> UsdPerHour:
        """Of the owners whose dollars are known."""
        return sum((one.usd_per_hour for one in self.owners if one.usd_per_hour is not None), UsdPerHour(0))


def find_waste(telemetry: Telemetry, nodes: Iterable[Node], prices: Mapping[str, UsdPerHour]) -> Found:
    """``prices``: dollars an hour by node; unknown ones are missing."""
    on = {f"{pod.namespace}/{pod.name}": (node, pod) for node in nodes for pod in node.gpu_pods}
    bare = _sane(telemetry, {name: pod for name, (_, pod) in on.items()})
    devices = Counter(one.pod for one in bare.series if _now(one))
    dollars = {}
    for name, (node, pod) in on.items():
        if pod.gpu is not None and node.gpus and node.name in prices and name in devices:
            part = min(1, pod.gpu.total_milli / (node.gpus * MILLI_PER_GPU))
            dollars[name] = prices[node.name] * UsdPerHour(repr(part)) / devices[name]
    holding: dict[str, list[str]] = defaultdict(list)
    for name in devices.elements():
        holding[made_by(name)].append(name)
    rows = waste(bare, UsdPerHour(1), LEAD_S)
    classes = {name: pod.workload_class for name, (_, pod) in on.items()}
    found = [_of(row, holding[row.owner], classes, dollars) for row in rows]
    there = [one for one in found if one.gpus]
    return Found(tuple(sorted(there, key=lambda one: (-(one.usd_per_hour or 0), one.owner))), len(on.keys() - devices))


def _sane(telemetry: Telemetry, there: Mapping[str, BoundPod]) -> Telemetry:
    """The same without values that no activity has, and without pods that are unknown: whose series are there twice, or
    are not as many as their GPUs, and those that are measured now and not on these nodes, as of another cluster.

    Without memory too: sharing is left to the command, for it takes longest.
    """
    twice = {pod for (pod, _), n in Counter((one.pod, one.device) for one in telemetry.series).items() if n > 1}
    now = Counter(one.pod for one in telemetry.series if _now(one))
    odd = twice | {name for name, count in now.items() if name not in there or _gpus(there[name]) != count}
    series = tuple(
        msgspec.structs.replace(one, activity=[v if 0 <= v <= 1 else nan for v in one.activity], memory=())
        for one in telemetry.series
        if one.pod not in odd
    )
    return msgspec.structs.replace(telemetry, series=series)


def _now(one: GpuSeries) -> bool:
    """True where it was measured in the last sample."""
    return bool(one.activity) and one.activity[-1] == one.activity[-1]


def _gpus(pod: BoundPod) -> int:
    """Count of its series."""
    return 0 if pod.gpu is None else pod.gpu.count if pod.gpu.milli >= MILLI_PER_GPU else 1


def _of(row: Waste, held: Sequence[str], classes: Mapping[str, str], dollars: Mapping[str, UsdPerHour]) -> Wasted:
    spare = row.spare if all(classes.get(pod) == "serving" for pod in held) else 0
    silent = [one.pod for one in (*row.idle, *row.beyond)]
    usd: UsdPerHour | None = None
    if all(pod in dollars for pod in held):
        at_work = [dollars[pod] for pod in (Counter(held) - Counter(silent)).elements()]
        mean = sum(at_work, UsdPerHour(0)) / max(1, len(at_work))
        usd = sum((dollars[pod] for pod in silent), UsdPerHour(0)) + spare * mean
    # At a dollar a device dollars are devices.
    devices = row.idle_usd + row.beyond_usd + (row.spare_usd if spare else 0)
    return Wasted(row.owner, float(devices), row.held, usd, "; ".join(_evidence(row, spare)))


def _evidence(row: Waste, spare: int) -> Iterable[str]:
    for those, what in ((row.idle, "idle"), (row.beyond, "beyond use, on pods that work on others")):
        if those:
            yield f"{len(those)} {what} {_silence(those)}"
    if spare:
        yield f"{spare} replicas more than would do ({row.running - spare - len(row.idle) - len(row.beyond)} would)"


def _silence(those: Sequence[IdlePod]) -> str:
    worst = max(those, key=lambda one: one.evidence.seen.chance).evidence
    return f"for {human(min(one.silent_s for one in those))} or more ({worst})"


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
