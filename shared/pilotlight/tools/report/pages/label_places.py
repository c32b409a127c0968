"""Places of names beside the dots of a drawing: none lies on a dot, on a line, on another name, or over an edge."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

Point = tuple[float, float]

GAP = 6.0
"""Pixels between a dot's rim and its name, at least."""

AROUND = ((1, 0), (1, -1), (1, 1), (-1, 0), (-1, -1), (-1, 1), (0, -1), (0, 1))
"""Where a name is tried, the best first: right of its dot, above right, below right, left, and so on."""

RINGS = 6
"""So many distances are tried: where dots crowd, a name stands further off."""


class Box(NamedTuple):
    """A rectangle: its edges."""

    left: float
    top: float
    right: float
    bottom: float

    def shared_area(self, other: "Box") -> float:
        """The area that both cover."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, wide) * max(0.0, high)


class Dot(NamedTuple):
    """A dot with its radius, and the size of its name."""

    x: float
    y: float
    r: float
    wide: float
    high: float


def boxes(dots: Sequence[Dot], edge: Box, curve: Sequence[Point] = ()) -> list[Box]:
    """A box for each name, in the dots' order; names that come first choose first."""
    taken = [Box(d.x - d.r, d.y - d.r, d.x + d.r, d.y + d.r) for d in dots]
    taken += _along(curve)
    placed: list[Box] = []
    for dot in dots:
        tried = [_beside(dot, across, down, ring) for ring in range(RINGS) for across, down in AROUND]
        inside = [box for box in tried if _within(box, edge)] or tried
        placed.append(min(inside, key=lambda box: sum(box.shared_area(other) for other in (*taken, *placed))))
    return placed


def _beside(dot: Dot, across: int, down: int, ring: int) -> Box:
    """The box of a name in one direction: its near edge, or its middle where it stands above or below."""
    off = dot.r + GAP
    left = dot.x + across * off - (0.0 if across > 0 else dot.wide if across < 0 else dot.wide / 2)
    middle = dot.y + down * (dot.high / 2 + (off if across == 0 else dot.r)) + (down or 1) * ring * dot.high * 0.75
    return Box(left, middle - dot.high / 2, left + dot.wide, middle + dot.high / 2)


def _within(box: Box, edge: Box) -> bool:
    return box.left >= edge.left and box.right <= edge.right and box.top >= edge.top and box.bottom <= edge.bottom


def _along(curve: Sequence[Point]) -> Iterable[Box]:
    """Small boxes over straight pieces, so that names keep off the line."""
    for (x1, y1), (x2, y2) in pairwise(curve):
        steps = max(1, round(max(abs(x2 - x1), abs(y2 - y1)) / 4))
        for n in range(steps + 1):
            x, y = x1 + (x2 - x1) * n / steps, y1 + (y2 - y1) * n / steps
            yield Box(x - 3, y - 3, x + 3, y + 3)
