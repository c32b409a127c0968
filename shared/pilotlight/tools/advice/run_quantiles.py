"""Run lengths of a group's jobs, and the error of their forecast: quantiles of what ended, with their measured error.

A group is asked from its narrowest name to its widest: where it has too few ended runs the next wider one answers, at
last all jobs. An answer is for one more run; given that it has lasted ``ran_s`` already, only longer ones count. Groups
are plain names, the same in every process.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import NamedTuple

from pilotlight.decide.demand.run_lengths import QUANTILES, Foretold, quantiles_s
from pilotlight.units import Seconds

KEPT = 999


class MeasuredError(NamedTuple):
    """Error of a forecast so far: the share of runs under each quantile, and the median factor by which P50 was off."""

    runs: int
    under: tuple[float, ...]
    factor: float


class RunLengths:
    """Lengths of runs that ended, by group. Not shared between threads."""

    def __init__(self) -> None:
        self._ended: dict[str, list[Seconds]] = {}
        self._order: dict[str, list[Seconds]] = {}

    def learn(self, groups: Sequence[str], length_s: Seconds) -> None:
        """A run of these groups, narrowest first, has ended."""
        for group in groups:
            ordered, recent = self._ended.setdefault(group, []), self._order.setdefault(group, [])
            insort(ordered, length_s)
            recent.append(length_s)
            if len(recent) > KEPT:
                ordered.remove(recent.pop(0))

    def foretold(self, groups: Sequence[str], ran_s: Seconds = 0.0) -> Foretold | None:
        """Forecast of one more run of these groups, from its start; None where nothing like it has ended."""
        for group in groups:
            known = self._ended.get(group, [])
            longer = known[bisect_right(known, ran_s) :] if ran_s else known
            if (found := quantiles_s(longer)) is not None:
                return Foretold(found, group, len(longer))
        return None


def measure_error(foretold: Sequence[tuple[Foretold, Seconds]]) -> MeasuredError:
    """Each answer that was given held against how long the run then lasted."""
    count = len(foretold)
    under = tuple(
        sum(ran <= told.lengths_s[n] for told, ran in foretold) / max(1, count) for n in range(len(QUANTILES))
    )
    factors = sorted(max(told.lengths_s[0], 1.0) / max(ran, 1.0) for told, ran in foretold)
    off = sorted(max(factor, 1 / factor) for factor in factors)
    return MeasuredError(count, under, off[count // 2] if off else 0.0)
