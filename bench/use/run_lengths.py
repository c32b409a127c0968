"""Forecasts of run lengths and use on recorded traces: quantiles by group, and the error that they had.

Usage: python bench/use/run_lengths.py FILE... [--json]

A FILE with job_id, submit_s, duration_s is one of jobs: each is foretold at its submit by what had ended by then, in
its app, its team's shape, its team, its shape, or all. One with t, pod, gpu_util_pct is a fleet: each pod's most
activity in the next hour is foretold by its hours so far. Under P50 half should be, under P90 nine in ten: what they
came to is printed, beside the factor by which P50 was off for half of the runs, for groups and for all jobs as one.
"""

import argparse
import csv
import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import held_gpus
from pilotlight.tools.advice.run_groups import RunGroups, hourly_activity, run_lengths
from pilotlight.tools.cli.printing import console
from pilotlight.tools.replay.traces.trace_file import read_trace
from pilotlight.tools.report.tables.sheet import Column, Sheet


def jobs_rows(path: Path) -> list[dict[str, Any]]:
    """Each job foretold at its submit, held against what it then ran; jobs start when they are submitted."""
    return _rows(path, "run lengths", run_lengths(read_trace(path)))


def use_rows(path: Path) -> list[dict[str, Any]]:
    """The most activity (percent) of each pod's next hour, foretold by the hours so far."""
    return _rows(path, "use", hourly_activity(held_gpus.read(path), lambda pod: pod))


def _rows(path: Path, what: str, found: RunGroups) -> list[dict[str, Any]]:
    errors = {f"{what} by group": found.narrowest, f"{what} as one": found.as_one}
    return [{"file": path.name, "what": name, **error._asdict()} for name, error in errors.items()]


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
            rows += use_rows(path) if _of_fleet(path) else jobs_rows(path)
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
