"""Start of the command: processor time of whole processes, ``pilotlight --help`` and ``why`` of one decision's records.

Usage: python bench/speed/bench_start.py [--runs 7]
Each run is a process of its own on bytecode, in turn with the peer, which imports Typer alone. Medians are printed with
their share of the peer's. Exits 1 where one is over its limit.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "from pilotlight.tools.cli.entry import run; run()"
EVENT = ROOT / "events" / "samples" / "kubernetes" / "failed_scheduling.json"
PEER = "import typer"


class Row(NamedTuple):
    """A command, the milliseconds that it may take, and the most as a multiple of the peer's."""

    words: tuple[str, ...]
    limit_ms: float = 120.0
    share: float = 3.0


ROWS = {"pilotlight --help": Row(("--help",), share=1.2), "pilotlight why": Row(("why", "--since", "30d"))}


def main() -> int:
    """Print each; 1 where a limit is missed."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--runs", type=int, default=7)
    runs = words.parse_args().runs
    with tempfile.TemporaryDirectory() as home:
        at = {**os.environ, "PYTHONPATH": str(ROOT / "shared"), "PYTHONDONTWRITEBYTECODE": "", "PILOTLIGHT_HOME": home}
        at["PILOTLIGHT_STATE"] = f"sqlite:{home}/state.db"
        took(COMMAND, at, "send", str(EVENT))
        missed = [name for name, row in ROWS.items() if not _show(name, row, at, runs)]
    print(f"MISSED: {', '.join(missed)}" if missed else "every limit is met")
    return int(bool(missed))


def _show(name: str, row: Row, at: dict[str, str], runs: int) -> bool:
    took(COMMAND, at, *row.words)  # Writes the bytecode.
    pairs = [(took(COMMAND, at, *row.words), took(PEER, at)) for _ in range(runs)]
    ours, peer, share = median(a for a, _ in pairs), median(b for _, b in pairs), median(a / b for a, b in pairs)
    print(
        f"{name:18} {ours:6.0f} ms CPU (limit {row.limit_ms:.0f}), {share:4.2f} of the peer's {peer:.0f}"
        f" ms (most {row.share})",
        flush=True,
    )
    return ours <= row.limit_ms and share <= row.share


def took(code: str, at: dict[str, str], *words: str) -> float:
    """CPU milliseconds of a process, which must end well."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *words], env=at, check=True, stdout=subprocess.DEVNULL)
    after = getrusage(RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


if __name__ == "__main__":
    sys.exit(main())
