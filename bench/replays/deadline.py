"""Jobs with a deadline on spot that comes and goes: what ours pays beside other rules and beside who knows it all.

Usage: python bench/replays/deadline.py FILE... [--together] [--starts 40] [--no-bound] [--json]

A FILE says when spot was up: {"gap_s": seconds, "runs": [[value, ticks], ...]}, up where value is above 0; it wraps.
Its ticks are thinned to about ten minutes (up when all of them are). One job: 48 hours of work, by 1.15, 1.3, 1.6 and 2
times that, with 0.1 and 0.4 h of restart at each start; spot at 0.3 of on-demand. Costs are in on-demand's for the
work alone. Ours reckons with the 7 days before the start, never with what follows. --together: one job may run in any
of the files' zones; a change of zone is a new start.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from numpy_stream import bounded, numpy_stream
from pilotlight.decide.job_deadlines.deadline_capacity import Chances, DeadlinePlan
from pilotlight.errors import BadInput
from pilotlight.tools.cli.printing import console
from pilotlight.tools.cli.sweep_progress import progress_bar
from pilotlight.tools.replay.deadline_runs import DeadlineJob, Now, Rule, Step, learnt, play
from pilotlight.tools.replay.traces.spot_availability import read_availability
from pilotlight.tools.report.tables.sheet import Column, Sheet

WORK_H, TICK_S, PRICE, HISTORY_H = 48.0, 600.0, 0.3, 168.0
TIMES, RESTARTS_H = (1.15, 1.3, 1.6, 2.0), (0.1, 0.4)
SEED = 7
GRID = 1.3
"""Chances are rounded to powers of this, so that starts share plans."""


class Zone(NamedTuple):
    """Spot's availability: True where it was up, by tick."""

    name: str
    up: tuple[bool, ...]
    tick_h: float


class Case(NamedTuple):
    """A job, and the tick of the files that it starts at."""

    job: DeadlineJob
    start: int


Maker = Callable[[Sequence[Zone], Case], Rule]


def read(path: Path) -> Zone:
    """A file's zone, thinned."""
    found = read_availability(path.read_bytes(), path.name).thin_out(TICK_S)
    return Zone(path.stem, found.up, found.gap_s / 3600)


def cases(zone: Zone, starts: Sequence[int]) -> Iterator[Case]:
    """Every job of a zone's ticks."""
    work = round(WORK_H / zone.tick_h)
    for restart_h in RESTARTS_H:
        for start in starts:
            for times in TIMES:
                restart = max(1, round(restart_h / zone.tick_h))
                yield Case(DeadlineJob(work, math.floor(work * times), restart), start)


def run(zones: Sequence[Zone], case: Case, make: Maker) -> list[Step]:
    """Costs of a rule, and what it did."""
    rows = [[*z.up[case.start % len(z.up) :], *z.up[: case.start % len(z.up)]] for z in zones]
    return play(rows, case.job, make(zones, case)).log


def judged(zones: Sequence[Zone], case: Case, log: Sequence[Step]) -> tuple[float, bool]:
    """The cost in on-demand's of the work, and whether the job was late: from the log of its ticks alone."""
    done, cost, stretch = 0, 0.0, 0
    before: Step = ("none", 0)
    for tick, step in enumerate(log):
        lost = before[0] == "spot" and not zones[before[1]].up[(case.start + tick) % len(zones[before[1]].up)]
        same = step == before or step[0] == before[0] == "on-demand"
        stretch = stretch + 1 if same and not lost else 1
        if step[0] == "spot" and not zones[step[1]].up[(case.start + tick) % len(zones[step[1]].up)]:
            raise AssertionError(f"tick {tick}: spot that is down runs nothing")
        if step[0] != "none":
            cost += PRICE if step[0] == "spot" else 1.0
            done += stretch > case.job.restart
        before = step
    return cost / case.job.work, done < case.job.work or len(log) > case.job.time


def ours(zones: Sequence[Zone], case: Case) -> Rule:
    """The product's plan, with what the days before say."""
    ticks = round(HISTORY_H / zones[0].tick_h)
    past = [[z.up[n % len(z.up)] for n in range(case.start - ticks, case.start)] for z in zones]
    chances = _learnt(tuple(map(tuple, past)), zones[0].tick_h * 3600)
    slack = math.floor(case.job.work * max(TIMES)) - case.job.work
    plans = [_plan(case.job.work, slack, case.job.restart, each) for each in chances]
    best = sorted(range(len(zones)), key=lambda n: chances[n].lost)

    def rule(now: Now) -> Step:
        zone = now.zone if now.where == "spot" else next((n for n in best if now.up[n]), best[0])
        step = plans[zone].step(now.work, now.time, now.where, now.restart_left, now.up[zone])
        return step, zone

    return rule


@lru_cache(maxsize=1000)
def _learnt(past: tuple[tuple[bool, ...], ...], tick_s: float) -> list[Chances]:
    def near(chance: float) -> float:
        return min(0.95, GRID ** round(math.log(chance, GRID))) if chance else 0.0

    return [Chances(*map(near, learnt(past, n, tick_s))) for n in range(len(past))]


@lru_cache(maxsize=200)
def _plan(work: int, slack: int, restart: int, chances: Chances) -> DeadlinePlan:
    return DeadlinePlan(work, slack, restart, PRICE, chances)


def _forced(now: Now, restart: int) -> bool:
    """True where a tick that yields nothing would make the job late: only spot that works already may go on."""
    return now.time - now.work <= restart and not (now.where == "spot" and not now.restart_left)


def greedy(_: Sequence[Zone], case: Case) -> Rule:
    """Spot wherever it is up; on-demand once there is no other way."""

    def rule(now: Now) -> Step:
        if _forced(now, case.job.restart):
            return "on-demand", now.zone
        if now.where == "spot":
            return "spot", now.zone
        return _anywhere(now)

    return rule


def uniform(_: Sequence[Zone], case: Case) -> Rule:
    """Uniform progress (Wu et al., NSDI 2024): spot where it is up, on-demand while behind an even pace."""

    def rule(now: Now) -> Step:
        if _forced(now, case.job.restart):
            return "on-demand", now.zone
        if now.where == "spot":
            return "spot", now.zone
        ahead = (case.job.work - now.work) - case.job.work * (case.job.time - now.time) / case.job.time
        if now.where == "on-demand" and ahead < 2 * case.job.restart:
            return "on-demand", now.zone
        if any(now.up):
            return _anywhere(now)
        return ("on-demand" if ahead < 0 else "none"), now.zone

    return rule


def _anywhere(now: Now) -> Step:
    """Spot in the first zone that is up, else nothing."""
    return next((("spot", n) for n, up in enumerate(now.up) if up), ("none", now.zone))


def on_demand(_: Sequence[Zone], __: Case) -> Rule:
    """Never spot."""
    return lambda now: ("on-demand", now.zone)


RULES: dict[str, Maker] = {
    "ours": ours,
    "uniform progress": uniform,
    "greedy": greedy,
    "on-demand": on_demand,
}


def bound(zones: Sequence[Zone], case: Case) -> float:
    """The least that who knows the future pays, in on-demand's of the work: by work left, backwards in time."""
    size, restart = case.job.work + 1, case.job.restart
    idle = [0.0, *[math.inf] * (size - 1)]
    runs = [[idle] * restart for _ in range(len(zones) + 1)]
    prices = [1.0, *([PRICE] * len(zones))]
    for tick in range(case.job.time - 1, -1, -1):
        up = [True, *(z.up[(case.start + tick) % len(z.up)] for z in zones)]
        anew = idle
        for place, price in enumerate(prices):
            if up[place]:
                anew = list(map(min, anew, map(price.__add__, runs[place][restart - 1])))
        anew[0] = 0.0
        for place, price in enumerate(prices):
            runs[place] = _ticked(runs[place], price, anew) if up[place] else [anew] * restart
        idle = anew
    return idle[case.job.work] / case.job.work


def _ticked(old: list[list[float]], price: float, anew: list[float]) -> list[list[float]]:
    """A tick earlier where something runs: it works, or a tick of its start passes; or all begins anew."""
    worked = [0.0, *map(price.__add__, old[0][:-1])]
    started = [[0.0, *list(map(price.__add__, each))[1:]] for each in old[:-1]]
    return [list(map(min, each, anew)) for each in (worked, *started)]


def drawn(lengths: Sequence[int], count: int) -> list[list[int]]:
    """Starts of each file, from one stream: that of ``numpy.random.default_rng(7).integers``, as in other studies."""
    stream = numpy_stream(SEED)
    return [[bounded(stream, ticks) for _ in range(count)] for ticks in lengths]


def measured(groups: Sequence[Sequence[Zone]], count: int, with_bound: bool) -> list[dict[str, Any]]:
    """A row for each file, or for all together: mean cost and late runs of every rule."""
    rows = []
    with progress_bar(len(groups)) as on_done:
        starts = drawn([min(len(z.up) for z in zones) for zones in groups], count)
        for zones, drawn_here in zip(groups, starts, strict=True):
            rows.append(_row(zones, list(cases(zones[0], drawn_here)), with_bound))
            on_done(zones[0].name)
    return rows


def _row(zones: Sequence[Zone], jobs: Sequence[Case], with_bound: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"zones": [z.name for z in zones], "runs": len(jobs), "cost": {}, "late": {}}
    for name, make in RULES.items():
        found = [judged(zones, job, run(zones, job, make)) for job in jobs]
        row["cost"][name] = sum(cost for cost, _ in found) / len(found)
        row["late"][name] = sum(late for _, late in found)
    if with_bound:
        row["cost"]["bound"] = sum(bound(zones, job) for job in jobs) / len(jobs)
    return row


def table(rows: Sequence[dict[str, Any]]) -> Sheet:
    """A row a file, then the mean."""
    names = list(rows[0]["cost"])
    shown = Sheet(Column("zones"), Column("runs", "figure"), *(Column(n, "figure") for n in names), Column("late"))
    for row in rows:
        shown.add(", ".join(row["zones"]), str(row["runs"]), *(f"{row['cost'][n]:.4f}" for n in names), _late(row))
    if len(rows) > 1:
        means = [sum(row["cost"][n] for row in rows) / len(rows) for n in names]
        shown.add("mean", str(sum(row["runs"] for row in rows)), *(f"{mean:.4f}" for mean in means), "")
    return shown


def _late(row: dict[str, Any]) -> str:
    return ", ".join(f"{n} {late}" for n, late in row["late"].items() if late) or "none"


def main(words: Sequence[str]) -> int:
    """Run, print. Exit code 1 where ours was late, 2 for bad input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--together", action="store_true", help="one job over all zones")
    parser.add_argument("--starts", type=int, default=40)
    parser.add_argument("--no-bound", action="store_true", help="without who knows it all, which takes longest")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    try:
        zones = [read(path) for path in sorted(options.files)]
    except (OSError, BadInput) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    rows = measured([zones] if options.together else [[z] for z in zones], options.starts, not options.no_bound)
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        console().print(table(rows))
    return int(any(row["late"]["ours"] for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
