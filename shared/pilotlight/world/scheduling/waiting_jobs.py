"""Jobs that wait for room."""

from bisect import insort
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from pilotlight.world.scheduling.scheduler import Need
from pilotlight.world.world_nodes import WorldJob

Needs = tuple[Need, ...]
"""What each pod of a job needs."""


class Waiting:
    """Pending jobs in groups of equal needs: when the first of a group finds no room, none of it does.

    A job's turn is its priority, then its submit order.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, WorldJob] = {}
        self._groups: dict[Needs, list[WorldJob]] = {}

    def add(self, needs: Needs, job: WorldJob) -> None:
        """Queue a job behind those whose turn is earlier."""
        self.jobs[job.id] = job
        insort(self._groups.setdefault(needs, []), job, key=_turn)

    def remove(self, job: WorldJob) -> None:
        """It waits no longer."""
        del self.jobs[job.id]
        for needs, group in list(self._groups.items()):
            if job in group:
                group.remove(job)
                if not group:
                    del self._groups[needs]

    def serve(self, start: Callable[[Needs, WorldJob], bool]) -> None:
        """Offer every group's first job in turn. Where ``start`` takes it the next follows, else the group waits on."""
        heads = [(_turn(group[0]), needs) for needs, group in self._groups.items()]
        heapify(heads)
        while heads:
            _, needs = heappop(heads)
            group = self._groups[needs]
            if not start(needs, group[0]):
                continue
            del self.jobs[group.pop(0).id]
            if group:
                heappush(heads, (_turn(group[0]), needs))
            else:
                del self._groups[needs]


def _turn(job: WorldJob) -> tuple[int, int]:
    return -job.priority, job.order
