"""Every order of two workers' port calls, for buy, release, hard cap, gang and notice: `make interleavings`."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from multiprocessing import Manager
from typing import Any, NamedTuple

from orders.judge import Judge
from orders.lives import hush
from orders.moments import Whole
from orders.scenes import MAKE
from orders.search import Bounds, Choice, End, Search, read, written
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pilotlight.tools.report.tables.sheet import Column, Sheet

EVERY = 2000
"""States between two words of how far a search is."""


class Result(NamedTuple):
    """One scene, searched from one worker's beginning. ``broken`` are the first schedules that broke each thing."""

    scene: str
    first: str
    schedules: int
    states: int
    calls: int
    ends: int
    ticks: int
    seconds: float
    broken: dict[str, str]


class Enough(Exception):
    """The first thing that broke was asked for."""


def search(name: str, first: int, bounds: Bounds, said: Any = None, *, first_broken: bool = False) -> Result:
    """Search one scene in which one worker begins, judge every end; until ``first_broken`` where that is enough."""
    hush()
    began, broken = time.monotonic(), dict[str, str]()

    def found(whole: Whole, end: End, path: tuple[Choice, ...]) -> None:
        for text in (*end.broke, *judge.judged(whole, end.again)):
            broken.setdefault(text, f"{name}: {written(path)}")
        if broken and first_broken:
            raise Enough

    def count() -> None:
        if said is not None and len(one.counts) % EVERY == 0:
            said[f"{name} {'AB'[first]}"] = len(one.counts), len(one.ends)

    one = Search(MAKE[name](), bounds, found)
    one.on_state = count
    judge = Judge(one.worlds)
    schedules = 0
    with suppress(Enough):
        schedules = one.run((first,))
    one.lives.end()
    seconds = time.monotonic() - began
    return Result(
        name, "AB"[first], schedules, len(one.counts), len(one.steps), len(one.ends), judge.settled, seconds, broken
    )


def replayed(line: str) -> list[str]:
    """One schedule, a line a call, and what became of it."""
    hush()
    name, _, schedule = line.partition(": ")
    if name not in MAKE:
        raise SystemExit(f'error: --replay {line!r}: write "scene: schedule", as a search prints it')
    one, out = Search(MAKE[name](), Bounds(), lambda whole, end, path: None), list[str]()
    at = one.first
    for choice in read(schedule):
        life, who = at.lives[choice.worker], "AB"[choice.worker]
        at = one.after(at, choice)
        now, then = one.wholes[at.whole].moment, at.lives[choice.worker]
        assert life is not None
        call = " ".join(str(part)[:60] for part in life.request or ())
        passed = f" after {choice.stall_s:g} s" if choice.stall_s else ""
        became = "dies before it" if then is None else str(then.answer)[:100]
        out.append(f"{now.now_s:7.1f} s  {who}{passed} {call} -> {became}")
        if then is not None and then.over:
            out.append(f"{now.now_s:7.1f} s  {who} answers {then.status}: {then.said}")
    end = one.end(at)
    broken = Judge(one.worlds).judged(one.wholes[end.whole], end.again, out)
    one.lives.end()
    return [*out, *(f"broken: {text}" for text in (*end.broke, *broken))]


def searched(names: Sequence[str], bounds: Bounds, jobs: int) -> list[Result]:
    """Every scene from either beginning, so many at a time, with a bar."""
    columns = (
        TextColumn("searches"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with (
        Manager() as manager,
        ProcessPoolExecutor(jobs) as pool,
        Progress(*columns, console=Console(stderr=True)) as bar,
    ):
        said = manager.dict()
        left: set[Future[Result]] = {
            pool.submit(search, name, first, bounds, said) for name in names for first in (0, 1)
        }
        task, done = bar.add_task("", total=len(left)), list[Result]()
        while left:
            ended, left = wait(left, timeout=1.0, return_when=FIRST_COMPLETED)
            done += [one.result() for one in ended]
            at_work = {key: value for key, value in said.items() if key not in {f"{r.scene} {r.first}" for r in done}}
            words = ", ".join(f"{key}: {states:,} states, {ends:,} ends" for key, (states, ends) in at_work.items())
            bar.update(task, completed=len(done), description=words)
    return sorted(done, key=lambda one: (list(MAKE).index(one.scene), one.first))


def shown(results: Sequence[Result], bounds: Bounds) -> None:
    """The table, and what broke with the schedule that shows it."""
    kinds = ("schedules", "states", "calls", "ends", "ticks", "seconds")
    table = Sheet(Column("scene"), Column("begins"), *(Column(kind, "figure") for kind in kinds))
    for one in results:
        figures = (f"{one.schedules:,}", *(f"{n:,}" for n in (one.states, one.calls, one.ends, one.ticks)))
        table.add(one.scene, one.first, *figures, f"{one.seconds:.1f}")
    out = Console(width=120)
    out.print(table)
    for result in results:
        for text, schedule in result.broken.items():
            out.print(f"broken: {text}\n  {schedule}", style="red", markup=False, soft_wrap=True)
    total, stalls = sum(one.schedules for one in results), " or ".join(f"{s:g}" for s in bounds.stalls_s)
    out.print(
        f"{total:,} schedules: all with at most {bounds.switches} switches, {bounds.deaths} deaths and {bounds.stalls} "
        f"stalls of {stalls} s. Schedules that come to one state go on alike and are searched once: "
        f"{sum(one.states for one in results):,} states, {sum(one.ends for one in results):,} ends judged, "
        f"{sum(len(one.broken) for one in results)} broken.",
        soft_wrap=True,
    )


def main() -> None:
    """The command. Exit code 1 where anything is broken."""
    parser = argparse.ArgumentParser(
        prog="make interleavings",
        description=__doc__,
        epilog='example: make interleavings ARGS="--scenes buy,gang --switches 2"; one schedule again: '
        """make interleavings ARGS="--replay 'release: A:45 A! B:11'".""",
    )
    parser.add_argument("--scenes", default=",".join(MAKE), help="which, by comma (all: %(default)s)")
    parser.add_argument("--switches", type=int, default=3, help="at most so many in a schedule (%(default)s)")
    parser.add_argument("--deaths", type=int, default=1, help="at most so many (%(default)s)")
    parser.add_argument("--stalls", type=int, default=1, help="times that everybody stands still (%(default)s)")
    parser.add_argument("--stall-seconds", default="62", help="how long, by comma; a lease is 60 (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="searches at a time (%(default)s)")
    parser.add_argument("--json", action="store_true", help="JSON on stdout")
    parser.add_argument("--replay", metavar="SCHEDULE", help="one schedule as a search prints it, call by call")
    given = parser.parse_args()
    if given.replay:
        lines = replayed(given.replay)
        sys.stdout.write("\n".join(lines) + "\n")
        raise SystemExit(any(line.startswith("broken: ") for line in lines))
    names = given.scenes.split(",")
    if unknown := sorted({*names} - {*MAKE}):
        parser.error(f"--scenes {', '.join(unknown)}: there are {', '.join(MAKE)}")
    seconds = tuple(float(part) for part in given.stall_seconds.split(","))
    bounds = Bounds(given.switches, given.stalls, given.deaths, seconds)
    results = searched(names, bounds, given.jobs)
    if given.json:
        found = {"bounds": bounds._asdict(), "results": [one._asdict() for one in results]}
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        shown(results, bounds)
    raise SystemExit(any(one.broken for one in results))


if __name__ == "__main__":
    main()
