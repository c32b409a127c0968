"""Whole commands: processor time of ``pilotlight --help``, of ``why`` of one decision's records, and of a large plan.

Usage: python bench/speed/bench_start.py [--runs 7]
Each run is a process of its own on bytecode, in turn with the peer, which imports Typer alone. Medians are printed with
their share of the peer's. The plan is of 10,000 pods in a file of which no two ask alike, read, planned and printed;
beside it is the exponent from a tenth of them. Exits 1 where one is over its limit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from math import log10
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "from pilotlight.tools.cli.entry import run; run()"
EVENT = ROOT / "events" / "samples" / "kubernetes" / "failed_scheduling.json"
PEER = "import typer"
PLAN_MS, MOST = 2000.0, 1.1
"""Most CPU milliseconds of the large plan, and its most exponent."""


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
        missed += [] if _plans(at, Path(home), runs) else ["pilotlight plan"]
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


def _plans(at: dict[str, str], home: Path, runs: int) -> bool:
    """Plans of pods that all differ, at a tenth and whole."""
    (home / "nodes.json").write_text('{"kind": "List", "items": []}')
    ms = []
    for count in (1000, 10_000):
        file = home / f"{count}.json"
        file.write_text(json.dumps({"kind": "List", "items": [_pod(n) for n in range(count)]}))
        words = ("plan", "--pods", str(file), "--nodes", str(home / "nodes.json"))
        ms.append(median(took(COMMAND, at, *words) for _ in range(min(3, runs))))
    exponent = log10(ms[1] / ms[0])
    print(
        f"pilotlight plan    {ms[1]:6,.0f} ms CPU (limit {PLAN_MS:,.0f}) of 10,000 pods that all differ, {ms[0]:.0f} of"
        f" 1,000: exponent {exponent:.2f} (most {MOST})"
    )
    return ms[1] <= PLAN_MS and exponent <= MOST


def _pod(n: int) -> dict[str, object]:
    """One that waits, and asks for what no other does."""
    asks = {"cpu": f"{100 + n}m", "memory": f"{512 + n}Mi", "nvidia.com/gpu": "1"}
    container = {"name": "c", "image": "x", "resources": {"requests": asks, "limits": {"nvidia.com/gpu": "1"}}}
    named = {"name": f"p{n}", "namespace": f"ns{n % 20}", "uid": f"u{n}", "creationTimestamp": "2026-11-30T00:00:00Z"}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0 nodes are available"}
    return {
        "kind": "Pod",
        "metadata": named,
        "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}]},
        "status": {"phase": "Pending", "conditions": [waits]},
    }


def took(code: str, at: dict[str, str], *words: str) -> float:
    """CPU milliseconds of a process, which must end well."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *words], env=at, check=True, stdout=subprocess.DEVNULL)
    after = getrusage(RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


if __name__ == "__main__":
    sys.exit(main())
