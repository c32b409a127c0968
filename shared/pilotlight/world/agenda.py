"""Agenda of events, each at its second."""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from pilotlight.units import Seconds

T = TypeVar("T")


class Agenda(Generic[T]):
    """Things due, soonest first, those of one moment in the order they were put on it.

    ``alive`` says whether a thing still means anything; what does not is dropped.
    """

    def __init__(self, alive: Callable[[T], bool]) -> None:
        self._heap: list[tuple[Seconds, int, T]] = []
        self._order = count()
        self._alive = alive

    def add(self, at_s: Seconds, what: T) -> None:
        """Put something on it."""
        heappush(self._heap, (at_s, next(self._order), what))

    def next_s(self) -> Seconds | None:
        """When the next thing is due, or None."""
        while self._heap and not self._alive(self._heap[0][2]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, by_s: Seconds) -> Iterator[T]:
        """Everything due by then that still means something when its turn comes."""
        while self._heap and self._heap[0][0] <= by_s:
            what = heappop(self._heap)[2]
            if self._alive(what):
                yield what
