"""Devices that several pods hold, and by how many each was held at each moment.

Such a device counts once, in equal parts: a time-sliced one tells its whole activity for each of its pods, and a MIG
slice nothing of what the others cost, so neither says who used more of it.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import isnan

from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry


def holders(telemetry: Telemetry) -> list[list[int]]:
    """For each series, how many were measured on its device in each sample; 0 where it was not measured itself."""
    together: dict[str, list[GpuSeries]] = defaultdict(list)
    for n, one in enumerate(telemetry.series):
        together[one.whole or f"#{n}"].append(one)
    counts = {name: _counts(those) for name, those in together.items() if len(those) > 1}
    found = []
    for one in telemetry.series:
        seen = [not isnan(value) for value in one.activity]
        several = counts.get(one.whole)
        found.append([int(here) for here in seen] if several is None else _where(seen, several))
    return found


def _counts(series: Sequence[GpuSeries]) -> list[int]:
    length = max(len(one.activity) for one in series)
    return [sum(n < len(one.activity) and not isnan(one.activity[n]) for one in series) for n in range(length)]


def _where(seen: Sequence[bool], counts: Sequence[int]) -> list[int]:
    return [count if here else 0 for here, count in zip(seen, counts, strict=False)]
