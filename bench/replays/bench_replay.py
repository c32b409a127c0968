"""Whole replays: processor time of a trace and of its first tenth of jobs, each a process of its own.

Usage: python bench/replays/bench_replay.py [TRACE]
Without a trace it is philly_dev from the shelf beside the project, else the built-in week. Beside the tenth the peer
``karpenter-pinned:0`` runs in the same world. Exits 1 where the trace takes more than 30 s, or ten times its jobs more
than 11 times as long.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from math import log10
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "shared")]

from pilotlight.tools.replay.traces.drawn_trace import synthesise  # noqa: E402
from pilotlight.tools.replay.traces.trace_file import read_trace, write_trace  # noqa: E402
from pilotlight.tools.replay.traces.trace_stats import read_stats  # noqa: E402

SHELF = ROOT.parent / "shared" / "traces" / "philly_dev.csv.gz"
COMMAND = "from pilotlight.tools.cli.entry import run; run()"
MOST_S, EXPONENT = 30.0, log10(11)


def main() -> int:
    """Print both sizes; 1 where a limit is missed."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("trace", nargs="?", type=Path)
    named = words.parse_args().trace or (SHELF if SHELF.exists() else None)
    if named is None:
        stats = ROOT / "data" / "philly_week.stats.json"
        jobs = list(synthesise(read_stats(stats.read_bytes(), stats.name), seed=0))
    else:
        jobs = list(read_trace(named))
    print(f"{named.name if named else 'the built-in week'}: CPU seconds of Pilotlight at $10/h")
    took = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (len(jobs) // 10, len(jobs)):
            file = Path(folder) / f"{count}.csv.gz"
            write_trace(jobs[:count], file)
            took.append(_took(file))
            print(f"{count:7,} jobs {took[-1]:7.1f} s", flush=True)
        tenth = Path(folder) / f"{len(jobs) // 10}.csv.gz"
        peer = max(_took(tenth, "--against", "karpenter-pinned:0") - took[0], 0.1)
        print(f"karpenter-pinned:0 takes {peer:.1f} s of the tenth: ours is {took[0] / peer:.0f} times that")
    exponent = log10(took[1] / took[0])
    print(f"limit {MOST_S:.0f} s; exponent {exponent:.2f} (most {EXPONENT:.2f})")
    missed = took[1] > MOST_S or exponent > EXPONENT
    print("MISSED" if missed else "both are met")
    return int(missed)


def _took(trace: Path, *more: str) -> float:
    """CPU seconds of a replay, which must end well."""
    at = {**os.environ, "PYTHONPATH": str(ROOT / "shared")}
    before = getrusage(RUSAGE_CHILDREN)
    code = [sys.executable, "-c", COMMAND, "replay", str(trace), "--value-of-wait", "10", "--json", *more]
    subprocess.run(code, env=at, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
