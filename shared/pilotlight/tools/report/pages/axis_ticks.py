"""Ticks of an axis: days or hours of a run, waits, round values on both sides of zero, and room for their labels."""

import math
from collections.abc import Iterable

from pilotlight.tools.report.pages.svg import Scale, Tick, round_ticks
from pilotlight.units import HOUR

DAY = 24 * HOUR

TINY = 1e-9
"""What an axis of differences cannot show."""

HALF_A_LABEL = 26.0
"""Pixels that a label in the middle of its tick takes to either side."""

WAIT_TICKS: list[Tick] = [
    (0, "0"), (1, "1 s"), (10, "10 s"), (60, "1 min"), (180, "3 min"), (600, "10 min"),
    (HOUR, "1 h"), (6 * HOUR, "6 h"), (DAY, "1 day"), (7 * DAY, "1 week"),
]  # fmt: skip


def day_ticks(x: Scale, most: int) -> list[Tick]:
    """Ticks at whole days where there are two or more, else at hours."""
    unit, name = (DAY, "day") if x.hi - x.lo >= 2 * DAY else (HOUR, "hour")
    count = int((x.hi - x.lo) / unit) + 1
    every = max(1, math.ceil(count / most))
    ticks = [(x.lo + i * unit, f"{name} {i + 1}") for i in range(0, count, every)]
    return [(v, label) for v, label in ticks if x(v) <= x.end - HALF_A_LABEL]


def labels_with_room(ticks: Iterable[Tick], x: Scale, each: float) -> list[Tick]:
    """The ticks whose labels have so many pixels each, the first first, none beyond the edge."""
    kept: list[Tick] = []
    for value, label in ticks:
        at = x(value)
        if at <= x.end - each / 2 + 4 and (not kept or at - x(kept[-1][0]) >= each):
            kept.append((value, label))
    return kept


def signed_ticks(low: float, high: float, form: str, least: float) -> list[Tick]:
    """Round values on both sides of zero, which is one of them; of the shorter side those that are not too near."""
    longer = max(high, -low)
    unit = round_ticks(longer, 4)[1] if longer > TINY else 1.0
    counts = range(math.ceil(low / unit), math.floor(high / unit) + 1)
    return [(n * unit, form.format(n * unit) if n else "0") for n in counts if n == 0 or abs(n * unit) >= least]
