"""Answers to questions that were asked before: of pure functions, about objects that do not change.

::

    _ELIGIBLE: Memo[Eligible] = Memo()
    _ELIGIBLE((policy, *offerings), shape.key, lambda: work_it_out(...))
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

MOST = 4096
"""So many answers are kept."""


class Memo(Generic[T]):
    """What was answered about the very same objects. It holds on to them, so no other object has their id."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, ...], Hashable], tuple[tuple[object, ...], T]] = {}

    def __call__(self, about: tuple[object, ...], key: Hashable, work_out: Callable[[], T]) -> T:
        """The answer about these objects under a key."""
        asked = (tuple(map(id, about)), key)
        found = self._known.get(asked)
        if found is not None:
            return found[1]
        answer = work_out()
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[asked] = about, answer
        return answer
