"""Free GPUs that nothing waiting can take: on each node they are fewer than the least of what waits asks for."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Fragments(NamedTuple):
    """``free`` GPUs by node, those ``stranded`` while pods wait, and how broken up they are (0 whole, towards 1)."""

    free: Mapping[str, int]
    waiting: tuple[int, ...]
    stranded: int
    score: float

    @property
    def all_free(self) -> int:
        """On all nodes."""
        return sum(self.free.values())


def fragments(free: Mapping[str, int], waiting: Sequence[int]) -> Fragments:
    """``free``: by node, never below 0. ``waiting``: what each waiting pod asks for. Score: article 003's."""
    have = {node: count for node, count in sorted(free.items()) if count > 0}
    asked = tuple(sorted(count for count in waiting if count > 0))
    stranded = sum(count for count in have.values() if count < asked[0]) if asked else 0
    score = 1 - max(have.values()) / sum(have.values()) if have else 0.0
    return Fragments(have, asked, stranded, score)
