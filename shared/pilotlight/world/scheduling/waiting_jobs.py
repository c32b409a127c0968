"""Jobs that wait for room."""

from bisect import insort
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from pilotlight.world.scheduling.scheduler import Ask
from pilotlight.world.world_nodes import WorldJob

Asks = tuple[Ask, ...]
"""What each pod of a job asks for."""


class Waiting:
    """Pending jobs in groups that ask for the same: when the first of a group finds no room, none of it does.

    A job's turn is its priority, then its submit order.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, WorldJob] = {}
        self._groups: dict[Asks, list[WorldJob]] = {}
        self._asks: dict[str, Asks] = {}
        self._of_pod: dict[str, WorldJob] = {}

    def add(self, asks: Asks, job: WorldJob) -> None:
        """Queue a job behind those whose turn is earlier."""
        self.jobs[job.id] = job
        self._asks[job.id] = asks
        self._of_pod.update((pod.uid, job) for pod in job.demands)
        insort(self._groups.setdefault(asks, []), job, key=_turn)

    def of_pod(self, uid: str) -> WorldJob | None:
        """The job of a pod that waits."""
        return self._of_pod.get(uid)

    def remove(self, job: WorldJob) -> None:
        """It waits no longer."""
        self._forget(job)
        asks = self._asks.pop(job.id)
        self._groups[asks].remove(job)
        if not self._groups[asks]:
            del self._groups[asks]

    def _forget(self, job: WorldJob) -> None:
        del self.jobs[job.id]
        for pod in job.demands:
            self._of_pod.pop(pod.uid, None)

    def serve(self, start: Callable[[Asks, WorldJob], bool]) -> None:
        """Offer every group's first job in turn. Where ``start`` takes it the next follows, else the group waits on."""
        heads = [(_turn(group[0]), asks) for asks, group in self._groups.items()]
        heapify(heads)
        while heads:
            _, asks = heappop(heads)
            group = self._groups[asks]
            if not start(asks, group[0]):
                continue
            self._forget(group[0])
            del self._asks[group.pop(0).id]
            if group:
                heappush(heads, (_turn(group[0]), asks))
            else:
                del self._groups[asks]


def _turn(job: WorldJob) -> tuple[int, int]:
    return -job.priority, job.order
