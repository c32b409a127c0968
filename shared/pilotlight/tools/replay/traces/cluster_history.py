"""A cluster's own past as a trace: the GPU pods that kube-state-metrics told Prometheus of, day by day.

A pod is there from ``kube_pod_created`` on, runs from ``kube_pod_start_time`` to ``kube_pod_completion_time``, or to
the last sample of it where it was deleted while it ran. Pods that one MPIJob, PyTorchJob or JobSet made are one job.
What a pod may run on nobody tells: a job names no model. Metrics: kube-state-metrics 2.x, pod-metrics.md of its docs.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pilotlight.errors import BadInput
from pilotlight.tools.replay.traces.trace_file import DAY
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.units import Seconds

STEP_S: Seconds = 60
"""How exactly the end of a deleted pod is known."""
GANGS = (
    "MPIJob", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "TrainJob", "JobSet", "LeaderWorkerSet", "RayCluster",
)  # fmt: skip
"""Kinds of owners whose pods start together."""
_GPUS = 'kube_pod_container_resource_requests{resource=~"nvidia_com_gpu|amd_com_gpu"}'
_OWNERS = f'kube_pod_owner{{owner_kind=~"{"|".join(GANGS)}"}}'

Labels = Mapping[str, str]
Query = Callable[[str, float], list[tuple[Labels, float]]]
"""A PromQL query at a moment, in seconds since 1970, to its series with their values."""


@dataclass(slots=True)
class _Seen:
    namespace: str
    pod: str
    containers: dict[str, float] = field(default_factory=dict)
    created: float | None = None
    started: float | None = None
    ended: float | None = None
    last: float = 0.0
    owner: str = ""


class History(NamedTuple):
    """The jobs, and how many pods are in none of them: those that never started."""

    jobs: tuple[Job, ...]
    never_started: int


def history(ask: Query, since: float, until: float) -> History:
    """The jobs of the GPU pods seen in [since, until), times from ``since`` on. What ran before begins at 0; what runs
    on is cut at the end. Raises ``BadInput`` where there is none, and what asking raises."""
    seen: dict[str, _Seen] = {}
    begin = since
    while begin < until:
        end = min(until, begin + DAY)
        _day(ask, seen, end, end - begin)
        begin = end
    if not seen:
        raise BadInput("Prometheus has no GPU pods in this time: does it scrape kube-state-metrics, and keep so much?")
    gangs: dict[str, list[_Seen]] = {}
    never = 0
    for uid, pod in seen.items():
        if pod.started is None or _end(pod, until) <= since:
            never += pod.started is None
        else:
            gangs.setdefault(f"{pod.namespace}/{pod.owner}" if pod.owner else uid, []).append(pod)
    jobs = sorted((_job(pods, since, until) for pods in gangs.values()), key=lambda job: (job.submit_s, job.team))
    return History(tuple(_numbered(jobs)), never)


def _day(ask: Query, seen: dict[str, _Seen], end: float, span_s: Seconds) -> None:
    """Read a day's pods at its end: later days know better."""
    over = f"[{math.ceil(span_s)}s]"
    for labels, gpus in ask(f"max_over_time({_GPUS}{over})", end):
        pod = seen.setdefault(_uid(labels), _Seen(labels.get("namespace", ""), labels.get("pod", "")))
        pod.containers[labels.get("container", "")] = gpus
    if not seen:
        return
    for labels, at in ask(f"max_over_time(timestamp({_GPUS})[{math.ceil(span_s)}s:{STEP_S:g}s])", end):
        seen[_uid(labels)].last = max(seen[_uid(labels)].last, at) if _uid(labels) in seen else at
    for metric, name in (("created", "created"), ("start_time", "started"), ("completion_time", "ended")):
        for labels, at in ask(f"last_over_time(kube_pod_{metric}{over})", end):
            if (known := seen.get(_uid(labels))) is not None:
                setattr(known, name, at)
    for labels, _ in ask(f"last_over_time({_OWNERS}{over})", end):
        if (known := seen.get(_uid(labels))) is not None:
            known.owner = f"{labels.get('owner_kind', '')}/{labels.get('owner_name', '')}"


def _uid(labels: Labels) -> str:
    return labels.get("uid") or f"{labels.get('namespace', '')}/{labels.get('pod', '')}"


def _end(pod: _Seen, until: float) -> float:
    return min(until, pod.ended if pod.ended is not None else max(pod.last, pod.started or 0.0))


def _job(pods: list[_Seen], since: float, until: float) -> Job:
    started = [pod.started for pod in pods if pod.started is not None]
    begun = max(since, max(started))
    created = min(pod.created if pod.created is not None else begun for pod in pods)
    gpus = sum(max(1, round(sum(pod.containers.values()))) for pod in pods)
    return Job(
        job_id="",
        submit_s=round(max(0.0, created - since), 3),
        duration_s=round(max(0.0, max(_end(pod, until) for pod in pods) - begun), 3),
        gpus=gpus,
        team=pods[0].namespace,
    )


def _numbered(jobs: Iterable[Job]) -> Iterable[Job]:
    from msgspec.structs import replace

    return (replace(job, job_id=f"j{n}") for n, job in enumerate(jobs))
