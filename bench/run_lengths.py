"""How well run lengths and use are foretold on recorded traces: quantiles by group, and the error that they had.

Usage: python bench/run_lengths.py FILE... [--json]

A FILE with job_id, submit_s, duration_s is one of jobs: each is foretold at its submit by what had ended by then, in
its app, its team's shape, its team, its shape, or all. One with t, pod, gpu_util_pct is a fleet: each pod's most
activity in the next hour is foretold by its hours so far. Under P50 half should be, under P90 nine in ten: what they
came to is printed, beside the factor by which P50 was off for half of the runs, for groups and for all jobs as one.
"""

import argparse
import csv
import gzip
import heapq
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import held_gpus
from pilotlight.cli.printing import console
from pilotlight.decide.run_lengths import Foretold, RunLengths, measured
from pilotlight.facts.trace import Job
from pilotlight.replay.trace import read_trace
from pilotlight.report.sheet import Column, Sheet

ALL = ("all jobs",)


def groups(job: Job) -> tuple[str, ...]:
    """Narrowest first."""
    shape = f"{job.gpus}x{job.gpu_milli}"
    app = (f"app {job.group}",) if job.group else ()
    return (*app, f"{job.team} {shape}", f"team {job.team}", f"shape {shape}", *ALL)


def jobs_row(path: Path, *, by_group: bool) -> dict[str, Any]:
    """Each job foretold at its submit, held against what it then ran; jobs start when they are submitted."""
    known, told = RunLengths(), list[tuple[Foretold, float]]()
    running: list[tuple[float, int, Job]] = []
    for n, job in enumerate(sorted(read_trace(path), key=lambda j: j.submit_s)):
        while running and running[0][0] <= job.submit_s:
            ended = heapq.heappop(running)[2]
            known.ended(groups(ended) if by_group else ALL, ended.duration_s)
        found = known.foretold(groups(job) if by_group else ALL)
        if found is not None:
            told.append((found, job.duration_s))
        heapq.heappush(running, (job.submit_s + job.duration_s, n, job))
    return _row(path, "run lengths" + (" by group" if by_group else " as one"), told)


def use_row(path: Path, *, by_group: bool) -> dict[str, Any]:
    """The most activity (percent) of each pod's next hour, foretold by the hours of its own, or of all pods, so far."""
    telemetry = held_gpus.read(path)
    hour = int(3600 / telemetry.step_s)
    known, told = RunLengths(), list[tuple[Foretold, float]]()
    for first in range(0, telemetry.samples - hour, hour):
        for one in telemetry.series:
            values = [value for value in one.activity[first : first + hour] if value == value]
            if len(values) < hour // 2:
                continue
            names = (one.pod, *ALL) if by_group else ALL
            most = 100 * max(values)
            found = known.foretold(names)
            if found is not None:
                told.append((found, most))
            known.ended(names, most)
    return _row(path, "use" + (" by pod" if by_group else " as one"), told)


def _row(path: Path, what: str, told: list[tuple[Foretold, float]]) -> dict[str, Any]:
    found = measured(told)
    return {"file": path.name, "what": what, **found._asdict()}


def _of_fleet(path: Path) -> bool:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return "gpu_util_pct" in next(csv.reader(file), [])


def main(words: Sequence[str]) -> int:
    """Print. Exit code 2 for a file that cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    rows = []
    for path in options.files:
        try:
            judged = use_row if _of_fleet(path) else jobs_row
            rows += [judged(path, by_group=by_group) for by_group in (True, False)]
        except (OSError, ValueError, KeyError) as error:
            print(f"error: {path}: {error}", file=sys.stderr)
            return 2
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    sheet = Sheet(
        Column("file", "name"), Column("what"), *(Column(h, "figure") for h in ("n", "<= P50", "<= P90", "P50 off by"))
    )
    for row in rows:
        half, most = row["under"]
        sheet.add(row["file"], row["what"], f"{row['runs']:,}", f"{half:.1%}", f"{most:.1%}", f"x{row['factor']:.1f}")
    console().print(sheet)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
