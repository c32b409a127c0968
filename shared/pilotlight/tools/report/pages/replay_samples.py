"""Samples of a run over time, put into equal stretches for a chart, and the moment at which its axis ends."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from pilotlight.tools.replay.traces.trace_job import Point
from pilotlight.tools.report.pages.axis_ticks import DAY
from pilotlight.units import HOUR, Seconds

Series = Mapping[str, Sequence[Point]]
"""Samples over time by policy, Pilotlight's among them; a sample holds until the next one."""


SEEN = 0.02
"""The part of the most GPUs in use below which a chart shows nothing: some pixels."""

MUCH = 0.9
"""An axis is cut where that takes away at least a tenth of it."""


class Bucket(NamedTuple):
    """A stretch of a run: mean GPUs paid and used in it, dollars and waiting jobs at its end."""

    start: Seconds
    end: Seconds
    paid: float
    used: float
    usd: float
    waiting: int


def resample(points: Sequence[Point], most: int) -> list[Bucket]:
    """The run in at most ``most`` equal stretches. GPU counts are means over time, so areas stay true."""
    if len(points) < 2 or points[-1].t <= points[0].t:
        return []
    start, end = points[0].t, points[-1].t
    width = (end - start) / most
    edges = [start + i * width for i in range(most)] + [end]
    paid, used = _integral(points, "gpus_paid", edges), _integral(points, "gpus_used", edges)
    times = [p.t for p in points]
    last = [points[bisect_right(times, edge) - 1] for edge in edges[1:]]
    return [
        Bucket(a, b, (paid[i + 1] - paid[i]) / (b - a), (used[i + 1] - used[i]) / (b - a), float(p.usd), p.waiting)
        for i, (a, b, p) in enumerate(zip(edges, edges[1:], last, strict=False))
    ]


def busy_until(points: Sequence[Point]) -> Seconds:
    """Where an axis may end: the last moment at which GPUs in use are not too few to be seen, and a little more.

    The end of the run where that is not much later: a few long jobs would else leave most of an axis blank.
    """
    seen = SEEN * max((p.gpus_used for p in points), default=0)
    start, end = points[0].t, points[-1].t
    last = max((q.t for p, q in pairwise(points) if p.gpus_used > seen), default=end)
    ends = last + 0.02 * (last - start)
    return ends if ends - start < MUCH * (end - start) else end


def samples_until(points: Sequence[Point], end: Seconds) -> list[Point]:
    """The samples up to a moment, the last of which holds at it."""
    kept = [p for p in points if p.t <= end]
    return [*kept, msgspec.structs.replace(kept[-1], t=end)] if kept else []


def _integral(points: Sequence[Point], name: str, edges: Sequence[float]) -> list[float]:
    """The area below a step function from its begin to each of the (sorted) edges."""
    areas, total, i = [], 0.0, 0
    for edge in edges:
        while i + 1 < len(points) and points[i + 1].t <= edge:
            total += getattr(points[i], name) * (points[i + 1].t - points[i].t)
            i += 1
        areas.append(total + getattr(points[i], name) * (edge - points[i].t))
    return areas


def day_and_hour(t: Seconds) -> str:
    """A moment of a run as "day 3, 14:00"."""
    day, rest = divmod(t, DAY)
    return f"day {day + 1:.0f}, {rest // HOUR:02.0f}:{rest % HOUR // 60:02.0f}"
