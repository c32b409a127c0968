"""Pods that do nothing, judged by what such silence came to before: a quiet replica of a busy service is not idle.

A pod is silent while its activity stays under a share. Two things that were seen say whether work comes back within the
next hours. The first is what became of such silences of its group's pods, in windows that do not overlap: of ``ENOUGH``
of them work seldom followed, nor of its own, and it had none in the same hours of a day before. A silence that goes on
is evidence of itself only once it is as long as a day: until then nobody knows that the morning does not end it. The
second is a rhythm: on each of the ``WEEK`` days before, none of its group had work in these hours of the day. Where
neither was seen, nothing is called idle.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import nan
from typing import NamedTuple

from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.units import HOUR, Seconds

UNDER = 0.05
SILENT_S: Seconds = HOUR
AHEAD_H, DAY_H = 4, 24
AHEAD_S: Seconds = AHEAD_H * HOUR
MOST_BACK = 0.05
"""A pod whose like came back more often than this is not called idle."""
UNKNOWN, WEIGHT = 0.05, 10.0
ENOUGH = 18
"""Windows of its group that a call rests on at least: as few without a return let one in twenty come back."""
WEEK = 7
"""Days that a rhythm is seen on, weekends among them."""
LATELY = 1
"""Days before on which its own work in these hours speaks against a call; of older ones its silences tell."""
LENGTHS_H = (1, 2, 4, 8)
"""Silences that are tried."""

Hours = Sequence[float]
"""The most activity of each hour, up to now; nan where nothing was measured."""


class Silence(NamedTuple):
    """Windows without activity, or days at these hours, and how many of them work came back in."""

    windows: int
    back: int

    @property
    def seldom(self) -> bool:
        """True where so many were seen that hardly any come back."""
        return (self.back + 1) / (self.windows + 2) <= MOST_BACK

    @property
    def chance(self) -> float:
        """That a pod so silent is active again in the hours ahead."""
        return self.chance_given(UNKNOWN)

    def chance_given(self, usual: float) -> float:
        """The same for one of a group of which a share ``usual`` came back."""
        return (self.back + usual * WEIGHT) / (self.windows + WEIGHT)

    def __str__(self) -> str:
        return f"{self.back} of {self.windows}"


class Evidence(NamedTuple):
    """What was seen: silences of its group's pods and its own, and these hours of the days before of both."""

    seen: Silence
    own: Silence
    days: Silence
    own_days: Silence

    @property
    def rhythm(self) -> bool:
        """True where its group had no work in these hours on any day of a week."""
        return self.days.windows >= WEEK and not self.days.back

    @property
    def against(self) -> bool:
        """True where work often came back, and no rhythm says that it does not now."""
        usual = self.seen.back / self.seen.windows if self.seen.windows else UNKNOWN
        often = max(self.seen.chance, self.own.chance_given(usual)) > MOST_BACK
        return not self.rhythm and (often or self.own_days.back > 0)

    @property
    def idle(self) -> bool:
        """True where enough was seen, and it says so."""
        return self.rhythm or (self.seen.seldom and not self.against)

    def __str__(self) -> str:
        return (
            f"{self.seen} such silences ended within 4 h, {self.own} of its own; "
            f"work at these hours on {self.days} days, its own on {self.own_days}"
        )


class IdlePod(NamedTuple):
    """A pod that is idle, for how long it is silent, and the evidence."""

    pod: str
    device: str
    silent_s: Seconds
    evidence: Evidence


def idle_pods(
    telemetry: Telemetry, groups: Mapping[str, str], silent_s: Seconds = SILENT_S, under: float = UNDER
) -> list[IdlePod]:
    """The pods that are idle at the grid's end. ``groups``: a pod's owner; a pod without one is its own group."""
    found = []
    rows = hours_by_device(telemetry)
    members: dict[str, list[Hours]] = defaultdict(list)
    for (pod, _), row in rows.items():
        members[groups.get(pod, pod)].append(row)
    pasts = {name: Past(those, under) for name, those in members.items()}
    for one in telemetry.series:
        quiet_s = silence(one.activity, under) * telemetry.step_s
        if quiet_s >= silent_s and (own := rows.get((one.pod, one.device))) is not None:
            seen = evidence(pasts[groups.get(one.pod, one.pod)], Past([own], under), quiet_s)
            found += [IdlePod(one.pod, one.device, quiet_s, seen)] if seen.idle else []
    return found


def hours_by_device(telemetry: Telemetry) -> dict[tuple[str, str], Hours]:
    """Each device's hours of the past, of pods that are gone too; those of the grid where no past was asked for."""
    past = telemetry.past or telemetry
    return {(one.pod, one.device): _hours(one, past.step_s) for one in past.series}


def _hours(one: GpuSeries, step_s: Seconds) -> Hours:
    """Whole hours up to the end."""
    each = max(1, round(HOUR / step_s))
    starts = range(len(one.activity) % each, len(one.activity), each)
    return [max((v for v in one.activity[at : at + each] if 0 <= v <= 1), default=nan) for at in starts]


class Past:
    """What hours of some pods came to, each figure measured once it is asked for."""

    def __init__(self, rows: Sequence[Hours], under: float) -> None:
        self._rows, self._under = rows, under
        self._known: dict[int, Silence] = {}
        self._days: dict[int, Silence] = {}

    def silences(self, quiet_s: Seconds, enough: int) -> Silence:
        """What became of the longest silence, up to one, that was seen so often; of an hour's where none was."""
        fitting = [n for n in LENGTHS_H if n == 1 or n * HOUR <= quiet_s]
        for n in reversed(fitting):
            if n not in self._known:
                self._known[n] = measure_silence(self._rows, n, self._under)
            if self._known[n].windows >= enough:
                return self._known[n]
        return self._known[1]

    def days(self, most: int) -> Silence:
        """Days before, up to so many, of which the hours that now come were measured, and those with work in them."""
        if most not in self._days:
            days = [self._day(n * DAY_H) for n in range(1, most + 1)]
            self._days[most] = Silence(sum(one is not None for one in days), days.count(True))
        return self._days[most]

    def _day(self, back: int) -> bool | None:
        """True where there was work in the hours that began so long ago, None where they were not measured."""
        spans = [row[len(row) - back :][:AHEAD_H] for row in self._rows if len(row) >= back]
        if any(value >= self._under for span in spans for value in span):
            return True
        return False if any(all(value == value for value in span) for span in spans) else None


def evidence(group: Past, own: Past, quiet_s: Seconds) -> Evidence:
    """What is known of a pod that is silent for so long."""
    return Evidence(group.silences(quiet_s, ENOUGH), own.silences(quiet_s, 1), group.days(WEEK), own.days(LATELY))


def silence(activity: Sequence[float], under: float = UNDER) -> int:
    """Samples at the end that were measured and under the share; what was not measured ends it."""
    count = 0
    for value in reversed(activity):
        if not value < under:
            break
        count += 1
    return count


def measure_silence(rows: Sequence[Hours], length: int, under: float = UNDER) -> Silence:
    """Measure silences of so many hours over all rows; hours ahead that are not over, or not measured, do not count."""
    windows = back = 0
    for row in rows:
        now = silence(row, under)
        known = len(row) - (now if now < DAY_H else 0)
        run = 0
        for at, value in enumerate(row, 1):
            run = run + 1 if value < under else 0
            if run < length:
                continue
            following = row[at : at + AHEAD_H]
            if at - length >= known or len(following) < AHEAD_H:
                break
            run = 0
            if all(v == v for v in following):
                windows += 1
                back += any(v >= under for v in following)
    return Silence(windows, back)
