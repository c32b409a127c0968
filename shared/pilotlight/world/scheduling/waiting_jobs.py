"""Jobs that wait for room."""

from bisect import insort
from collections.abc import Callable, Collection
from heapq import heapify, heappop, heappush
from typing import TypeVar

from pilotlight.world.scheduling.scheduler import EVERY_HOME, Ask, Need
from pilotlight.world.world_nodes import WorldJob

Asks = tuple[Ask, ...]
"""What each pod of a job asks for."""
Needs = tuple[Need, ...]
"""The same without homes."""


K = TypeVar("K")


class Waiting:
    """Pending jobs in groups that ask for the same: when the first of a group finds no room, none of it does.

    A job's turn is its priority, then its submit order. Groups are found by their needs, and by their homes.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, WorldJob] = {}
        self._groups: dict[Asks, list[WorldJob]] = {}
        self._by_needs: dict[Needs, dict[Asks, None]] = {}
        self._by_home: dict[str, dict[Asks, None]] = {}
        self._asks: dict[str, Asks] = {}
        self._of_pod: dict[str, WorldJob] = {}

    def add(self, asks: Asks, job: WorldJob) -> None:
        """Queue a job behind those whose turn is earlier."""
        self.jobs[job.id] = job
        self._asks[job.id] = asks
        self._of_pod.update((pod.uid, job) for pod in job.demands)
        insort(self._groups.setdefault(asks, []), job, key=_turn)
        self._by_needs.setdefault(_needs(asks), {})[asks] = None
        for home in _homes(asks):
            self._by_home.setdefault(home, {})[asks] = None

    def of_pod(self, uid: str) -> WorldJob | None:
        """The job of a pod that waits."""
        return self._of_pod.get(uid)

    def remove(self, job: WorldJob) -> None:
        """It waits no longer."""
        asks = self._asks.pop(job.id)
        del self.jobs[job.id]
        for pod in job.demands:
            self._of_pod.pop(pod.uid, None)
        self._groups[asks].remove(job)
        if not self._groups[asks]:
            del self._groups[asks]
            _discard(self._by_needs, _needs(asks), asks)
            for home in _homes(asks):
                _discard(self._by_home, home, asks)

    def serve(
        self, start: Callable[[Asks, WorldJob], bool], helps: Callable[[Needs], bool], homes: Collection[str]
    ) -> None:
        """Offer the first job of each group in turn that has needs that were helped, or one of these homes.

        Where ``start`` takes it the next follows, else the group waits on.
        """
        found = dict.fromkeys(asks for needs, groups in self._by_needs.items() if helps(needs) for asks in groups)
        for home in (*homes, EVERY_HOME) if homes else ():
            found.update(self._by_home.get(home, {}))
        heads = [(_turn(self._groups[asks][0]), asks) for asks in found]
        heapify(heads)
        while heads:
            _, asks = heappop(heads)
            job = self._groups[asks][0]
            if not start(asks, job):
                continue
            self.remove(job)
            if asks in self._groups:
                heappush(heads, (_turn(self._groups[asks][0]), asks))


def _needs(asks: Asks) -> Needs:
    return tuple(ask.need for ask in asks)


def _homes(asks: Asks) -> dict[str, None]:
    return dict.fromkeys(home for ask in asks for home in ask.homes)


def _discard(index: dict[K, dict[Asks, None]], key: K, asks: Asks) -> None:
    del index[key][asks]
    if not index[key]:
        del index[key]


def _turn(job: WorldJob) -> tuple[int, int]:
    return -job.priority, job.order
