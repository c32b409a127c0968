"""Pods that do nothing, judged by what such silence came to before: a quiet replica of a busy service is not idle.

A pod is silent while its activity stays under a share. How often silence of that length was followed by activity
within the next hours is counted over the pods of its group, in windows that do not overlap, up to now. It is idle when
that is seldom; where nothing was seen yet, a share of ``UNKNOWN`` is taken with the weight of some windows.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.units import HOUR, Seconds

UNDER = 0.05
SILENT_S: Seconds = HOUR
AHEAD_S: Seconds = 4 * HOUR
MOST_BACK = 0.05
"""A pod whose like came back more often than this is not called idle."""
UNKNOWN, WEIGHT = 0.05, 10.0
LENGTHS = (1, 2, 4, 8)
"""Silences that are tried, in times the shortest."""


class Silence(NamedTuple):
    """Windows of a length without activity, and how many of them were followed by some."""

    windows: int
    back: int

    @property
    def chance(self) -> float:
        """That a pod so silent is active again in the hours ahead."""
        return (self.back + UNKNOWN * WEIGHT) / (self.windows + WEIGHT)


class IdlePod(NamedTuple):
    """A pod that is idle, for how long it is silent, and the evidence."""

    pod: str
    device: str
    silent_s: Seconds
    seen: Silence


def idle_pods(
    telemetry: Telemetry, groups: Mapping[str, str], silent_s: Seconds = SILENT_S, under: float = UNDER
) -> list[IdlePod]:
    """The pods that are idle at the grid's end. ``groups``: a pod's owner; a pod without one is its own group."""
    found = []
    history: dict[tuple[str, int], Silence] = {}
    members: dict[str, list[GpuSeries]] = {}
    for one in telemetry.series:
        members.setdefault(groups.get(one.pod, one.pod), []).append(one)
    for group, series in members.items():
        for one in series:
            quiet = silence(one.activity, under)
            longest = max((n for n in LENGTHS if quiet * telemetry.step_s >= n * silent_s), default=0)
            if not longest:
                continue
            key = group, longest
            if key not in history:
                history[key] = measure_silence(series, longest * silent_s, telemetry.step_s, under)
            if history[key].chance <= MOST_BACK:
                found.append(IdlePod(one.pod, one.device, quiet * telemetry.step_s, history[key]))
    return found


def silence(activity: Sequence[float], under: float = UNDER) -> int:
    """Samples at the end that were measured and under the share; what was not measured ends it."""
    count = 0
    for value in reversed(activity):
        if not value < under:
            break
        count += 1
    return count


def measure_silence(series: Sequence[GpuSeries], silent_s: Seconds, step_s: Seconds, under: float = UNDER) -> Silence:
    """Measure silence of that length over all of ``series``; hours that are not over yet do not count."""
    length, ahead = max(1, int(silent_s / step_s)), max(1, int(AHEAD_S / step_s))
    windows = back = 0
    for one in series:
        at, run = 0, 0
        values = one.activity
        while at < len(values):
            run = run + 1 if values[at] < under else 0
            at += 1
            if run < length:
                continue
            following = values[at : at + ahead]
            if len(following) < ahead or any(value != value for value in following):
                break
            windows += 1
            back += any(value >= under for value in following)
            run = 0
    return Silence(windows, back)
