"""Progress of jobs with a deadline: only run that a checkpoint keeps counts, so that no promise rests on more."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.memory import DueJob, Memory
from pilotlight.facts.workload import PodDemand
from pilotlight.units import Seconds, clock_seconds

RESTORE_S: Seconds = 60.0
"""A start is taken to need at least so long before the work goes on."""

FORGET_S: Seconds = 7 * 24 * 3600.0
"""A job that nothing was seen of for so long is forgotten."""

MOST = 500
"""No more jobs are remembered: those seen longest ago are forgotten, and begin anew should they come back."""

SEEN_AGAIN_S: Seconds = 6 * 3600.0
"""That a job still waits is written down so often."""


def saved_s(memory: Memory, job: str) -> Seconds:
    """The run that a job's checkpoints keep."""
    known = memory.due.get(job)
    return known.saved_s if known else 0.0


def restore_s(takes_s: Seconds) -> Seconds:
    """Seconds that a start takes before the work goes on: twice what a checkpoint takes."""
    return max(RESTORE_S, 2 * takes_s)


def with_due(memory: Memory, nodes: Iterable[Node], pending: Sequence[PodDemand], now: datetime) -> Memory:
    """The memory after a look at the jobs with a deadline. Of several pods of one the least far counts."""
    due = dict(memory.due)
    seen: dict[str, list[BoundPod]] = {}
    for node in nodes:
        for pod in node.gpu_pods:
            if pod.shape is not None and pod.shape.due is not None:
                seen.setdefault(pod.shape.due.job, []).append(pod)
    now_s = clock_seconds(now)
    for job, pods in seen.items():
        due[job] = _moved_on(due.get(job), pods, now, now_s)
    for job in {pod.shape.due.job for pod in pending if pod.shape.due is not None} & due.keys() - seen.keys():
        if now_s - due[job].at > SEEN_AGAIN_S:
            due[job] = msgspec.structs.replace(due[job], at=now_s)
    due = {job: one for job, one in due.items() if now_s - one.at <= FORGET_S}
    if len(due) > MOST:
        due = dict(sorted(due.items(), key=lambda item: (-item[1].at, item[0]))[:MOST])
    return msgspec.structs.replace(memory, due=due) if due != memory.due else memory


def taken_on(memory: Memory, promised: Sequence[PodDemand], now: datetime) -> Memory:
    """The memory with the jobs of pods that wait and are promised: no later pod of theirs is turned away."""
    fresh = {pod.shape.due.job for pod in promised if pod.shape.due is not None} - memory.due.keys()
    if not fresh:
        return memory
    due = {**memory.due, **{job: DueJob(at=clock_seconds(now)) for job in sorted(fresh)}}
    return msgspec.structs.replace(memory, due=due)


def _moved_on(known: DueJob | None, pods: Sequence[BoundPod], now: datetime, now_s: Seconds) -> DueJob:
    """After a look at its pods. It stays as it is written where no checkpoint was added."""
    known = known or DueJob(at=now_s)
    began = max((pod.works_since for pod in pods if pod.works_since), default=None)
    if began != known.began:
        known = msgspec.structs.replace(known, base_s=known.saved_s, began=began, at=now_s)
    saved = max(known.saved_s, known.base_s + min(_kept_s(pod, now) for pod in pods))
    fresh = saved != known.saved_s or now_s - known.at > SEEN_AGAIN_S
    return msgspec.structs.replace(known, saved_s=saved, at=now_s) if fresh else known


def _kept_s(pod: BoundPod, now: datetime) -> Seconds:
    """The run since its containers began that a checkpoint keeps: as it tells, else by how often it saves."""
    began = pod.works_since
    if began is None:
        return 0.0
    begins = began + timedelta(seconds=restore_s(pod.checkpoint_takes_s))
    if pod.checkpointed_at is not None:
        return max(0.0, (min(pod.checkpointed_at, now) - begins).total_seconds())
    if not pod.checkpoint_s:
        return 0.0
    return max(0.0, (now - begins).total_seconds()) // pod.checkpoint_s * pod.checkpoint_s
