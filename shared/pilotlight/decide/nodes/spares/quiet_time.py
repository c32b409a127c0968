"""Forecasts of a pool's first spares, set right by how long the pool has been quiet.

A faded rate falls smoothly; people come back minutes after a job ended, or hours later. So hits that came are counted
beside the hits that were foretold, by the length of the quiet that they ended: the time since a node was last asked
for, or fell idle. A forecast is multiplied by what came over what was foretold after as long a quiet. That ratio never
rises with the quiet: lengths at which it would are taken together (isotonic regression by pool-adjacent violators).
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import add

from msgspec.structs import replace

from pilotlight.facts.memory import Hits, Quiet
from pilotlight.units import HOUR, Seconds

LENGTHS_S = (0.0, 120.0, 300.0, 600.0, 900.0, 1800.0, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR)
"""A quiet is at least so long."""
SPARES = 2
"""So many spares of a pool are set right, each by its own hits: those behind them follow on bursts."""
BELIEVED = 1.0
"""So many hits of each length are taken to have come as foretold, before any did."""
REMEMBERED = 60.0
"""Beyond so many hits of a spare all its counts are halved: what a pool is used for changes."""

_NONE = (0.0,) * len(LENGTHS_S)
HitsAhead = Callable[[int, Seconds], float | None]
"""Hits an hour of the k-th spare so many seconds later."""


def corrections(quiet: Quiet) -> tuple[float, ...]:
    """What a forecast is multiplied by, for each length of the quiet: it never rises with the length."""
    blocks: list[tuple[float, float, int]] = []
    for foretold, came in zip(quiet.foretold or _NONE, quiet.came or _NONE, strict=True):
        foretold, came, lengths = foretold + BELIEVED, came + BELIEVED, 1
        while blocks and blocks[-1][1] * foretold < came * blocks[-1][0]:
            before = blocks.pop()
            foretold, came, lengths = foretold + before[0], came + before[1], lengths + before[2]
        blocks.append((foretold, came, lengths))
    return tuple([came / foretold for foretold, came, lengths in blocks for _ in range(lengths)])


def length_at(hits: Hits, after_s: Seconds = 0.0) -> int:
    """The place among ``LENGTHS_S`` of the quiet that there is so many seconds after the history."""
    return bisect_right(LENGTHS_S, max(0.0, hits.at + after_s - hits.quiet_from)) - 1


def count_foretold(hits: Hits, until_s: Seconds, foretell: HitsAhead) -> Hits:
    """The history with the hits foretold from its time on, of the first spares that are there."""
    first, last = len(hits.coming), min(SPARES, len(hits.rates))
    if first >= last:
        return hits
    quiets = list(hits.quiets) + [Quiet()] * (last - len(hits.quiets))
    for k in range(first, last):
        foretold, from_s = list(quiets[k].meanwhile or _NONE), 0.0
        for at in range(length_at(hits), len(LENGTHS_S)):
            ends = LENGTHS_S[at + 1] + hits.quiet_from - hits.at if at + 1 < len(LENGTHS_S) else until_s - hits.at
            to_s = min(until_s - hits.at, ends)
            if to_s > from_s:
                foretold[at] += (foretell(k + 1, (from_s + to_s) / 2) or 0.0) * (to_s - from_s) / HOUR
                from_s = to_s
        quiets[k] = replace(quiets[k], meanwhile=tuple(foretold))
    return replace(hits, quiets=tuple(quiets))


def end_quiet(hits: Hits, hit: Sequence[int] = ()) -> Hits:
    """The history with the quiet ended now, by a hit of each of these spares (0 is the first) or by none."""
    at = length_at(hits)
    quiets = [_counted(quiet, at if k in hit else None) for k, quiet in enumerate(hits.quiets)]
    return replace(hits, quiets=tuple(quiets), quiet_from=hits.at)


def _counted(quiet: Quiet, hit_at: int | None) -> Quiet:
    """The counts with those of the quiet that has ended, by a hit at a length or by none."""
    foretold = list(map(add, quiet.foretold or _NONE, quiet.meanwhile or _NONE))
    came = list(quiet.came or _NONE)
    if hit_at is not None:
        came[hit_at] += 1
    if sum(came) > REMEMBERED:
        foretold, came = [each / 2 for each in foretold], [each / 2 for each in came]
    return Quiet(foretold=tuple(foretold), came=tuple(came))
