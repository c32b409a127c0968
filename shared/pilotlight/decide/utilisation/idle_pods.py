"""Pods that do nothing, judged by what such silence came to before: a quiet replica of a busy service is not idle.

A pod is silent while its activity stays under a share. How often silence of that length was followed by activity
within the next hours is counted over the pods of its group, in windows that do not overlap, up to now. It is idle when
that is seldom among ``ENOUGH`` windows or more, of the longest silence with so many, and seldom by its own past too:
without evidence nothing is called idle. A silence that goes on is evidence of itself only once it is longer than a
night: until then nobody knows that the morning does not end it.
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
NIGHT_S: Seconds = 22 * HOUR
"""A silence that is shorter is no evidence of itself: a day's rhythm brings work back within so long."""
ENOUGH = 2
"""Windows of its group that a call rests on at least."""
LENGTHS = (1, 2, 4, 8)
"""Silences that are tried, in times the shortest."""


class Silence(NamedTuple):
    """Windows of a length without activity, and how many of them were followed by some."""

    windows: int
    back: int

    @property
    def chance(self) -> float:
        """That a pod so silent is active again in the hours ahead."""
        return self.chance_given(UNKNOWN)

    def chance_given(self, usual: float) -> float:
        """The same for one of a group of which a share ``usual`` came back."""
        return (self.back + usual * WEIGHT) / (self.windows + WEIGHT)

    def seldom_ended(self, group: "Silence") -> bool:
        """True where neither its own nor its group's silences were often followed by activity."""
        usual = group.back / group.windows if group.windows else UNKNOWN
        return group.chance <= MOST_BACK and self.chance_given(usual) <= MOST_BACK

    def __str__(self) -> str:
        return f"{self.back} of {self.windows}"


class IdlePod(NamedTuple):
    """A pod that is idle, for how long it is silent, and the evidence: its group's, and its own."""

    pod: str
    device: str
    silent_s: Seconds
    seen: Silence
    own: Silence


def idle_pods(
    telemetry: Telemetry, groups: Mapping[str, str], silent_s: Seconds = SILENT_S, under: float = UNDER
) -> list[IdlePod]:
    """The pods that are idle at the grid's end. ``groups``: a pod's owner; a pod without one is its own group."""
    found = []
    members: dict[str, list[GpuSeries]] = {}
    for one in telemetry.series:
        members.setdefault(groups.get(one.pod, one.pod), []).append(one)
    for series in members.values():
        pasts = Pasts(series, silent_s, telemetry.step_s, under)
        for one in series:
            quiet_s = silence(one.activity, under) * telemetry.step_s
            seen = pasts.seen_enough(quiet_s)
            own = Pasts([one], silent_s, telemetry.step_s, under).seen_enough(quiet_s, 1)
            if seen.windows and own.seldom_ended(seen):
                found.append(IdlePod(one.pod, one.device, quiet_s, seen, own))
    return found


class Pasts:
    """A group's silences of each length, measured once it is asked for."""

    def __init__(self, series: Sequence[GpuSeries], silent_s: Seconds, step_s: Seconds, under: float) -> None:
        self._series, self._silent_s, self._step_s, self._under = series, silent_s, step_s, under
        self._known: dict[int, Silence] = {}

    def seen_enough(self, quiet_s: Seconds, enough: int = ENOUGH) -> Silence:
        """What became of the longest silence, up to one, that was seen so often; none where none was."""
        for n in reversed(LENGTHS):
            if n * self._silent_s > quiet_s:
                continue
            if n not in self._known:
                self._known[n] = measure_silence(self._series, n * self._silent_s, self._step_s, self._under)
            if self._known[n].windows >= enough:
                return self._known[n]
        return Silence(0, 0)


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
        now = silence(values, under)
        known = len(values) - (now if now * step_s < NIGHT_S else 0)
        while at < len(values):
            run = run + 1 if values[at] < under else 0
            at += 1
            if run < length:
                continue
            if at - length >= known:
                break
            following = values[at : at + ahead]
            if len(following) < ahead or any(value != value for value in following):
                break
            windows += 1
            back += any(value >= under for value in following)
            run = 0
    return Silence(windows, back)
