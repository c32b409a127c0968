"""Requests to pods that run: a checkpoint, or an end within their grace; and how many may be down at once."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal

from pilotlight.units import Seconds
from pilotlight.world.world_jobs import Workload
from pilotlight.world.world_nodes import WorldJob

PodEnding = Literal["saved", "stop"]


class Evictions:
    """The pods of a world that are being stopped. Whoever calls holds the world's lock.

    ``due`` has the world hand a job back to ``saved`` or ``stop`` after so many seconds, if that run lasts till then.
    """

    def __init__(self, workload: Workload, due: Callable[[PodEnding, WorldJob, Seconds], None]) -> None:
        self._workload = workload
        self._due = due
        self._stopping: dict[str, int] = {}  # By job, which of its runs it is: another end of that stops nothing later.
        self.lingers = False
        """Pods take the whole of their grace to stop."""
        self.disruptions: dict[str, int] = {}
        """PodDisruptionBudgets: the pods of a namespace that may be unavailable at once."""

    def checkpoint(self, namespace: str, name: str, now_s: Seconds) -> None:
        """Ask a pod for a checkpoint; the whole of its job saves where it is now, as soon as that is written."""
        job = self._workload.running_pod(lambda d: (d.namespace, d.name) == (namespace, name))
        takes_s = job.demands[0].checkpoint_takes_s if job else 0
        if job is not None and takes_s and job.saves_s is None:
            job.saves_s, job.saving_s = now_s + takes_s, job.reached_s(now_s)
            self._due("saved", job, takes_s)

    def evict(self, uid: str, now_s: Seconds, grace_s: Seconds | None = None) -> None:
        """Stop a pod, and with it its job, which queues again. A checkpoint it is at is ended within its grace.

        ``grace_s`` is the grace it is given, where that is not its own.
        """
        job = self._workload.running_pod(lambda d: d.uid == uid)
        if job is None or self._stops(job):
            return
        left_s = max(0.0, (job.saves_s or now_s) - now_s)
        self._stopping[job.id] = job.starts
        own_s = job.demands[0].grace_s if grace_s is None else grace_s
        self._due("stop", job, own_s if self.lingers else min(left_s, own_s))

    def write_checkpoint(self, job: WorldJob) -> None:
        """The checkpoint is written."""
        job.asked_s, job.saves_s = job.saving_s, None
        for placement in job.placement:
            placement.node.value = None

    def stop(self, job: WorldJob, now_s: Seconds, now: datetime) -> None:
        """The grace is over."""
        self._stopping.pop(job.id, None)
        self._workload.evict(job, now_s, now)

    def runs(self, uid: str) -> bool:
        """True where a pod runs."""
        return self._workload.running_pod(lambda d: d.uid == uid) is not None

    def unavailable(self, namespace: str) -> int:
        """Pods of a namespace that wait or are being stopped: those a PodDisruptionBudget counts."""
        waiting = sum(d.namespace == namespace for job in self._workload.waiting.jobs.values() for d in job.demands)
        running = self._workload.running
        stopping = (
            d for id in self._stopping if id in running and self._stops(running[id]) for d in running[id].demands
        )
        return waiting + sum(d.namespace == namespace for d in stopping)

    def _stops(self, job: WorldJob) -> bool:
        return self._stopping.get(job.id) == job.starts

    def refuses(self, namespace: str) -> bool:
        """True where a disruption budget lets no more pods of a namespace go now."""
        most = self.disruptions.get(namespace)
        return most is not None and self.unavailable(namespace) >= most
