"""Fewest replicas of a service that would do: by its demand lately, with room, a boot and a model's load ahead.

Demand is the activity of all its replicas together: 1 is one GPU at full work. At every moment only what was measured
until then is used. The advice is the most of the last hours with room for more; with little history there is more room.
"""

from collections import deque
from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from pilotlight.units import HOUR, Seconds

WINDOW_S: Seconds = 4 * HOUR
"""What was asked for within so long may be asked for again before a replica could come."""
FULL = 0.95
ROOM, ROOM_EARLY = 1.2, 1.6
"""Times the most that was seen; while less than the window is known, more."""
KNOWN_S: Seconds = HOUR / 2
"""With less history than this there is no advice: all that run stay."""


class Replicas(NamedTuple):
    """The advice for every sample, what ran, and how it would have gone."""

    advised: tuple[int, ...]
    running: tuple[int, ...]
    mean: float
    mean_running: float
    over: float
    """The share of samples with demand over 95 % of what the advice had running."""


def replicas(demand: Sequence[float], running: Sequence[int], step_s: Seconds, lead_s: Seconds) -> Replicas:
    """``lead_s``: boot and load of the model. Advice never exceeds what ran."""
    lead = ceil(lead_s / step_s)
    wanted = _wanted(demand, step_s)
    advised = []
    for at, now in enumerate(running):
        asked = wanted[at - lead] if at >= lead else None
        advised.append(now if asked is None else min(now, asked))
    over = sum(need > FULL * given for need, given in zip(demand, advised, strict=True))
    count = max(1, len(demand))
    return Replicas(tuple(advised), tuple(running), sum(advised) / count, sum(running) / count, over / count)


def _wanted(demand: Sequence[float], step_s: Seconds) -> list[int | None]:
    """Replicas for the most of the window that ends at each sample; None where too little is known."""
    window, known = max(1, int(WINDOW_S / step_s)), int(KNOWN_S / step_s)
    most: deque[int] = deque()
    found: list[int | None] = []
    for at, need in enumerate(demand):
        while most and demand[most[-1]] <= need:
            most.pop()
        most.append(at)
        if most[0] <= at - window:
            most.popleft()
        room = ROOM if at >= window else ROOM_EARLY
        found.append(max(1, ceil(room * demand[most[0]] / FULL)) if at >= known else None)
    return found
