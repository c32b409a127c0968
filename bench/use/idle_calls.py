"""Calls "idle" on fleets made by seed, held against the four hours that came after: telemetry that no constant saw.

Usage: python bench/use/idle_calls.py [--seeds 8] [--first 101] [--json]

The constants of decide/utilisation/idle_pods were chosen on seeds 301 to 404: all others are out of sample. The fleets
have shapes that no shelf has: notebooks of all days or of working days, jobs one after another, a service by day, pods
that a timer wakes, to the minute or by about an hour, silences with a heavy tail or without memory, pods that are
forgotten. Half of the fleets are pods of one object. A look every two hours of the last three of twelve days knows 24
hours and the most of each hour of a week. Idle dollars are those of pods silent for an hour and for four hours more.
Targets, of all shapes together and without those that are forgotten: at most one call in ten is active within four
hours; at least a third of idle dollars is called. Exit code 1 where one is missed.

A shape alone cannot have both where work comes by chance: of a pod whose silences have no memory a share of 1 - exp(-4
/ mean hours) comes back whenever it is called, 33 % at 10 hours, so that only "never" keeps the tenth.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pilotlight.decide.demand.classify import made_by
from pilotlight.decide.utilisation.idle_pods import AHEAD_S, SILENT_S, UNDER, WEEK, idle_pods, silence
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.tools.cli.printing import console
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import HOUR

STEP_S = 300.0
PER_HOUR = int(HOUR / STEP_S)
DAYS, LOOKED, BACK_H, EVERY_H = 12, 3, 24, 2
PODS = 12
"""Pods of a shape."""
MOST_BACK, LEAST_CALLED = 0.1, 1 / 3
Hours = list[float]


def notebook(by: random.Random) -> Hours:
    """Sessions of minutes to hours within a working day; at night and between them nothing."""
    begins, ends, busy = by.uniform(7, 11), by.uniform(15, 20), by.uniform(0.2, 2.5)
    return _turns(by, lambda hour: begins <= hour % 24 < ends, busy, by.uniform(0.3, 4))


def working_days(by: random.Random) -> Hours:
    """The same from Mondays to Fridays; the days that are looked at are a weekend and a Monday, or others."""
    row = notebook(by)
    for day in range(DAYS):
        if day % 7 in (2, 3):
            row[day * 24 * PER_HOUR : (day + 1) * 24 * PER_HOUR] = [0.0] * (24 * PER_HOUR)
    return row


def daily(by: random.Random) -> Hours:
    """Work once a day, up to an hour or two sooner or later than the day before."""
    row, at = [0.0] * (DAYS * 24 * PER_HOUR), by.uniform(0, 24)
    for day in range(DAYS):
        begins = max(0, int((24 * day + at + by.gauss(0, 0.7)) * PER_HOUR))
        for n in range(begins, min(len(row), begins + by.randint(1, PER_HOUR))):
            row[n] = 0.7
    return row


def no_memory(by: random.Random) -> Hours:
    """Work of half an hour, and silences that may end at any moment alike: 3 to 80 hours in the mean."""
    return _turns(by, lambda _: True, 0.5, by.choice((3, 10, 20, 40, 80)))


def jobs(by: random.Random) -> Hours:
    """Runs of hours, one after another, with short pauses and now and then a long one."""
    return _turns(by, lambda _: True, by.uniform(1, 12), by.choice((0.2, 0.5, 3.0)))


def by_day(by: random.Random) -> Hours:
    """A service of which a quiet replica has work by day, and hardly any at night."""
    top, dawn = by.uniform(0.05, 0.6), by.uniform(5, 9)
    return [
        max(0.0, by.gauss(top, 0.1))
        if dawn <= n / PER_HOUR % 24 < dawn + 14
        else by.random() * 0.04 * (by.random() < 0.9)
        for n in range(DAYS * 24 * PER_HOUR)
    ]


def timer(by: random.Random) -> Hours:
    """A pod that a timer wakes for some minutes, every three to 24 hours."""
    every, first, runs = by.choice((3, 6, 8, 12, 24)), by.uniform(0, 6), by.uniform(0.1, 1)
    return [0.8 * ((n / PER_HOUR - first) % every < runs) for n in range(DAYS * 24 * PER_HOUR)]


def heavy_tail(by: random.Random) -> Hours:
    """Work of an hour or so, and silences most of which are short and some days long."""
    found: Hours = []
    while len(found) < DAYS * 24 * PER_HOUR:
        found += [0.7] * max(1, int(by.expovariate(1) * PER_HOUR))
        found += [0.0] * max(1, int(0.5 * by.paretovariate(0.8) * PER_HOUR))
    return found[: DAYS * 24 * PER_HOUR]


def forgotten(by: random.Random) -> Hours:
    """Work until the week before the looks, and nothing since; one in six wakes again once."""
    ends = by.uniform(0, (DAYS - LOOKED) * 24)
    again = by.uniform(ends, DAYS * 24) if by.random() < 1 / 6 else 1e9
    return [0.6 * (n / PER_HOUR < ends or again <= n / PER_HOUR < again + 1) for n in range(DAYS * 24 * PER_HOUR)]


def _turns(by: random.Random, there: Callable[[float], bool], busy_h: float, quiet_h: float) -> Hours:
    found: Hours = []
    while len(found) < DAYS * 24 * PER_HOUR:
        found += [by.uniform(0.3, 0.9)] * max(1, int(by.expovariate(1 / busy_h) * PER_HOUR))
        found += [0.0] * max(1, int(by.expovariate(1 / quiet_h) * PER_HOUR))
    return [value if there(n / PER_HOUR) else 0.0 for n, value in enumerate(found[: DAYS * 24 * PER_HOUR])]


SHAPES = {
    one.__name__: one for one in (notebook, working_days, jobs, by_day, timer, daily, heavy_tail, no_memory, forgotten)
}


class Calls(NamedTuple):
    """Calls, those active within four hours, and moments of pods that were idle, of which so many were called."""

    called: int = 0
    back: int = 0
    idle: int = 0
    idle_called: int = 0

    def __add__(self, other: "Calls") -> "Calls":  # type: ignore[override]
        return Calls(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def back_share(self) -> float:
        """Of its calls."""
        return self.back / self.called if self.called else 0.0

    @property
    def kept(self) -> bool:
        """True where both targets are met."""
        return self.back_share <= MOST_BACK and self.called_share >= LEAST_CALLED

    @property
    def called_share(self) -> float:
        """Of idle dollars."""
        return self.idle_called / self.idle if self.idle else 0.0


def fleet(shape: str, seed: int) -> dict[str, Hours]:
    """Activity by pod: replicas of one object for a service, else each pod made by itself."""
    by = random.Random(f"{shape}/{seed}")
    one = SHAPES[shape]
    own = by.random() < 0.5
    return {f"x/{shape}-{'abcdefghijkl'[n]}x" if own else f"x/{shape}-{n}": one(by) for n in range(PODS)}


def judged(rows: dict[str, Hours]) -> Calls:
    """Calls at each look, and what became of them."""
    found = Calls()
    ahead, back = int(AHEAD_S / STEP_S), BACK_H * PER_HOUR
    groups = {pod: made_by(pod) for pod in rows}
    for end in range((DAYS - LOOKED) * 24 * PER_HOUR, DAYS * 24 * PER_HOUR - ahead, EVERY_H * PER_HOUR):
        known = {pod: row[max(0, end - back) : end] for pod, row in rows.items()}
        series = tuple(GpuSeries(pod=pod, device=pod, activity=row, memory=()) for pod, row in known.items())
        hours = {pod: row[end - WEEK * 24 * PER_HOUR : end] for pod, row in rows.items()}
        most = {pod: [max(row[n : n + PER_HOUR]) for n in range(0, len(row), PER_HOUR)] for pod, row in hours.items()}
        past = tuple(GpuSeries(pod=pod, device=pod, activity=row, memory=()) for pod, row in most.items())
        read = Telemetry(start_s=0, step_s=STEP_S, series=series, past=Telemetry(start_s=0, step_s=HOUR, series=past))
        called = {one.pod for one in idle_pods(read, groups)}
        again = {pod: any(value >= UNDER for value in row[end : end + ahead]) for pod, row in rows.items()}
        idle = {pod for pod, row in known.items() if silence(row) * STEP_S >= SILENT_S and not again[pod]}
        found += Calls(len(called), sum(again[pod] for pod in called), len(idle), len(idle & called))
    return found


def by_shape(seeds: Sequence[int]) -> dict[str, Calls]:
    """Of each shape, and of all."""
    told: dict[str, Calls] = {}
    for shape in SHAPES:
        told[shape] = sum((judged(fleet(shape, seed)) for seed in seeds), Calls())
    lasting = (one for shape, one in told.items() if shape != forgotten.__name__)
    return {**told, "none forgotten": sum(lasting, Calls()), "all": sum(told.values(), Calls())}


def main(words: Sequence[str]) -> int:
    """Print. Exit code 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=101)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    found = by_shape(range(options.first, options.first + options.seeds))
    if options.json:
        print(json.dumps({name: one._asdict() for name, one in found.items()}, indent=1))
    else:
        names = ("calls", "active within 4 h", "idle dollars called")
        sheet = Sheet(Column("shape", "name"), *(Column(name, "figure") for name in names))
        for name, one in found.items():
            sheet.add(name, f"{one.called:,}", f"{one.back_share:.1%}", f"{one.called_share:.1%}")
        console().print(sheet)
    return int(not all(found[name].kept for name in ("none forgotten", "all")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
