"""Under which partition keys the items of a DynamoDB table lie: each family of each cluster has one of its own.

The partition key ``room`` of ``decision/c/17`` is ``decision/c``: the first two parts of a key. So no partition takes
the writes of all, and a scan of ``decision/c/`` is one Query. A scan that reaches further asks each room that the index
knows: the items of the room ``//rooms``, whose ``key`` is a room's name.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from threading import RLock
from typing import NamedTuple, TypeVar

INDEX = "//rooms"

T = TypeVar("T")


class Items(NamedTuple):
    """Operations on a table: the keys of a room, and a new item.

    The first argument of each is the key for which it is asked: an error names it.
    """

    keys: Callable[[str, str], Sequence[str]]
    add: Callable[[str, str, str], None]


class Rooms:
    """The rooms of one table. What is known of them is kept for the life of the process: rooms never go."""

    def __init__(self, items: Items) -> None:
        self._items = items
        self._lock = RLock()
        self._known: set[str] | None = None

    def enter(self, key: str) -> str:
        """The room of a key that is about to be written: the index knows it from then on."""
        room = room_of(key)
        with self._lock:
            known = self._index(key)
            if room not in known:
                self._items.add(key, INDEX, room)
                known.add(room)
        return room

    def rooms_with_prefix(self, prefix: str) -> Sequence[str]:
        """The rooms that may hold keys which begin so."""
        if prefix.count("/") > 1:
            return [room_of(prefix)]
        with self._lock:
            self._known = None  # Another worker may have made one since.
            return sorted(room for room in self._index(prefix) if room.startswith(prefix))

    def _index(self, key: str) -> set[str]:
        if self._known is None:
            self._known = set(self._items.keys(key, INDEX))
        return self._known


def room_of(key: str) -> str:
    """The room that a key lies in."""
    return "/".join(key.split("/", 2)[:2])


def merge_rooms(rooms: Sequence[str], keys: Callable[[str], Iterator[tuple[str, T]]]) -> Iterator[tuple[str, T]]:
    """The keys of many rooms in order. A room is not asked before its first possible key, its own name, is next."""
    heap: list[tuple[str, int, tuple[str, T] | None]] = [(room, n, None) for n, room in enumerate(rooms)]
    heapify(heap)
    streams = {n: keys(room) for n, room in enumerate(rooms)}
    while heap:
        _, n, found = heappop(heap)
        if found is not None:
            yield found
        following = next(streams[n], None)
        if following is not None:
            heappush(heap, (following[0], n, following))
