"""Time that pods still run: by a trace's runs, else by those that the look remembers of their kind or class."""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from pilotlight.decide.demand.run_lengths import ALL, Foretold, expected_run_s, run_quantiles
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.memory import Memory
from pilotlight.facts.workload import GpuRequest, PodDemand, PodShape, WorkloadClass
from pilotlight.units import Seconds, count_of

ENDLESS = ("serving", "notebook")
"""Classes whose pods do not end by themselves."""


Foretells = Callable[[Sequence[str], Seconds], Foretold | None]
"""Forecast of one more run of the first of some groups that knows enough, from so many seconds after its start."""


class TimeLeft(msgspec.Struct, frozen=True, kw_only=True):
    """Time that a pod still runs: the median and P90 (alike where only a mean is known), and what says so."""

    p50_s: Seconds
    p90_s: Seconds
    by: str
    known: bool = True  # False where only a mean says so, of a pod that names no longest run.


class Lengths:
    """Run lengths of pods, by a trace's runs, else by what the look remembers of their kind."""

    def __init__(self, memory: Memory, known: Foretells | None, now: datetime) -> None:
        self._memory, self._known, self.now = memory, known, now

    def of_waiting(self, pod: PodDemand) -> TimeLeft | None:
        shape = pod.shape
        return self._left(shape.workload_class, (shape.team, pod.namespace), shape.gpu, shape.max_run_s, 0.0)

    def of_running(self, pod: BoundPod) -> TimeLeft | None:
        gpu = pod.gpu or GpuRequest(count=0)
        return self._left(pod.workload_class, (pod.team, pod.namespace), gpu, pod.max_run_s, self.ran_s(pod))

    def ran_s(self, pod: BoundPod) -> Seconds:
        return max(0.0, (self.now - pod.started_at).total_seconds()) if pod.started_at else 0.0

    def _left(
        self, workload_class: str, teams: Sequence[str], gpu: GpuRequest, max_run_s: Seconds, ran_s: Seconds
    ) -> TimeLeft | None:
        most = max(0.0, max_run_s - ran_s) if max_run_s else float("inf")
        if workload_class in ENDLESS:
            return TimeLeft(p50_s=most, p90_s=most, by="its deadline") if max_run_s else None
        kind = PodShape(gpu=gpu, workload_class=_class(workload_class), team=teams[0])
        found = self._known(_groups(teams, gpu), ran_s) if self._known is not None else None
        found = found or run_quantiles(self._memory, kind, ran_s)
        if found is not None:
            half, long = (min(most, max(0.0, length - ran_s)) for length in found.lengths_s)
            longer = " that ran longer" if ran_s else ""
            return TimeLeft(p50_s=half, p90_s=long, by=f"{count_of(found.runs, 'run')} of {found.group}{longer}")
        mean = min(most, expected_run_s(self._memory, kind, self.now))
        by = "the mean of its kind" if self._memory.ran else "what is typical: no runs are known"
        if max_run_s and not ran_s:
            return TimeLeft(p50_s=mean, p90_s=most, by=f"{by}, and its longest run")
        return TimeLeft(p50_s=mean, p90_s=mean, by=by, known=False)


def _class(name: str) -> WorkloadClass:
    return "training" if name == "training" else "batch"


def _groups(teams: Sequence[str], gpu: GpuRequest) -> tuple[str, ...]:
    """As ``run_groups.groups_of`` names them; a trace of a cluster's own past has namespaces for teams."""
    shape = f"{gpu.count}x{gpu.milli}"
    names = tuple(dict.fromkeys(team for team in teams if team))
    return (*(f"team {name} {shape}" for name in names), *(f"team {name}" for name in names), f"shape {shape}", ALL)
