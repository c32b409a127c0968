"""Nodes that a burst will call for: learned from a pool's own past, by the size that demand had grown to.

A size is how many nodes are on their way for demands, in powers of two. A window opens at a demand, if none of its size
is open, and tells a lead time later how many more nodes than fell idle were asked for meanwhile, at most. Of each size
the share of windows is kept that came to so many, averaged over about the last hundred.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from pilotlight.facts.memory import Followed, Hits, Window
from pilotlight.units import Seconds

LEVELS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""So many more nodes, or more: what is counted."""
ENOUGH = 3
"""A size seen in fewer windows is judged by the next smaller."""
REMEMBERED = 100
"""What followed is averaged over about so many windows, and one more in which nothing did."""

_NOTHING = Followed(shares=(0.0,) * len(LEVELS))


def likely_to_follow(hits: Hits, least: float) -> int:
    """Count of further nodes asked for within a lead time with a chance of more than ``least``."""
    chances = zip(LEVELS, _chances(hits), strict=False)
    return max((level for level, chance in chances if chance > least), default=0)


def chance_of(hits: Hits, more: int) -> float:
    """In what share of cases like this at least so many more nodes were asked for within a lead time."""
    chances = zip(LEVELS, _chances(hits), strict=False)
    return next((chance for level, chance in chances if level >= more), 0.0)


def smaller_at_s(hits: Hits) -> Seconds:
    """When what was asked for of late counts as demand of a smaller size, if no more is asked for."""
    return hits.coming[len(hits.coming) - (1 << _size(len(hits.coming)))] if hits.coming else hits.at


def count_burst(windows: tuple[Window, ...], nodes: int, until: Seconds, coming: int) -> tuple[Window, ...]:
    """The windows after ``nodes`` more were asked for, and one of the size that ``coming`` then is, up to ``until``.

    One that began at this moment does not count them: they were seen when it began.
    """
    size = _size(coming)
    after = tuple(
        replace(w, net=w.net + nodes, most=max(w.most, w.net + nodes)) if w.until < until else w for w in windows
    )
    return after if any(w.size == size for w in after) else (*after, Window(size=size, until=until))


def drop_ended_windows(hits: Hits) -> Hits:
    """The history without the windows that are over: what they came to is learned."""
    if not hits.windows or all(window.until > hits.at for window in hits.windows):
        return hits
    followed = list(hits.followed)
    for window in hits.windows:
        if window.until <= hits.at:
            followed += [_NOTHING] * (window.size + 1 - len(followed))
            followed[window.size] = _learned(followed[window.size], window.most)
    return replace(hits, windows=tuple(w for w in hits.windows if w.until > hits.at), followed=tuple(followed))


def _learned(past: Followed, most: int) -> Followed:
    count = min(past.count + 1, REMEMBERED)
    shares = tuple(
        share + ((most >= level) - share) / (count + 1) for level, share in zip(LEVELS, past.shares, strict=True)
    )
    return Followed(count=count, shares=shares)


def _chances(hits: Hits) -> Sequence[float]:
    """Chances of what follows on demand of this size, or of the largest smaller one that was seen often enough."""
    size = _size(len(hits.coming)) if hits.coming else -1
    return next((past.shares for past in reversed(hits.followed[: size + 1]) if past.count >= ENOUGH), ())


def _size(nodes: int) -> int:
    return nodes.bit_length() - 1
