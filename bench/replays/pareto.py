"""No peer may be cheaper at equal or lower mean wait: on each slice, prices of waiting from 3 to 1000 and every peer.

Usage: .venv/bin/python bench/replays/pareto.py TRACE... [--placement affinity] [--values 3,10,30] [--against keda ...]
[--json]
[--logs FOLDER]

A peer is red whose dollars are below 1/1.01 of ours at its mean wait: linear between our points; beyond our last point
that point counts. Slices come one after the other, each told when it is done, with the CPU seconds it took. Dollars,
waits and over-full devices are worked out anew from each run's log, the trace and the catalogue
(bench/replays/judge.py). Exit code 1 where a peer is red or a run and its log disagree.
"""

import argparse
import json
import resource
import sys
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from judge import judge, read_jobs, read_types
from pilotlight.settings import default_file
from pilotlight.tools.advice.frontier import TOLERANCE, Run, ahead, efficient_runs
from pilotlight.tools.cli.lab.replay_command import load_catalog, load_policy
from pilotlight.tools.cli.printing import console
from pilotlight.tools.cli.sweep_progress import progress_bar
from pilotlight.tools.replay.compare import Trial
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.peers.names import ALWAYS_ON
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.trace_file import read_trace
from pilotlight.tools.replay.traces.trace_job import Result
from pilotlight.tools.replay.wait_price_sweep import PEERS, VALUES, Sweep, log_name, ours_name, sweep
from pilotlight.tools.report.tables.replay_table import multiple, usd, wait
from pilotlight.tools.report.tables.sheet import Column, Sheet

RIVALS = tuple(name for name in PEERS if name != ALWAYS_ON)
CATALOG = "data/catalogs/replay.yaml"
NEAR = 1e-3
"""Dollars, and seconds of a mean wait, by which a run and its log may differ: both are rounded sums."""


def asked(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path, metavar="trace")
    parser.add_argument("--values", default=",".join(map(str, VALUES)))
    parser.add_argument("--against", nargs="*", default=list(RIVALS))
    parser.add_argument("--placement", choices=["homes", "none", "affinity", "gated"], default="homes")
    parser.add_argument("--boot-seconds", type=float, default=None)
    parser.add_argument("--scoring", default="most-allocated", choices=["least-allocated", "most-allocated"])
    parser.add_argument("--standby-boot-seconds", type=float, default=None)
    parser.add_argument("--detect-seconds", type=float, default=10.0)
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--logs", type=Path, help="keep each run's log in a folder of the trace's name")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(words)


def swept(trace: Path, options: argparse.Namespace, logs: Path) -> Sweep:
    """All runs of a slice, with a bar of those that are done."""
    jobs, catalog = read_trace(trace), load_catalog(None)
    values = [Decimal(text) for text in options.values.split(",")]
    scenario = Scenario(
        placement=options.placement,
        scoring=options.scoring,
        boot_s=options.boot_seconds,
        standby_boot_s=options.standby_boot_seconds,
        detect_s=options.detect_seconds,
    )
    trial = Trial(trace.name, jobs, catalog, scenario, bounds(jobs, catalog))
    with progress_bar(len(values) + len(options.against)) as on_done:
        return sweep(
            values,
            options.against,
            load_policy(None),
            trial,
            on_done=on_done,
            processes=options.processes,
            logs=logs,
        )


def checked(run: str, result: Result, logs: Path, trace: Path) -> list[str]:
    """Where a run and its log disagree, and what the log holds that no rule allows."""
    books = judge(logs / log_name(run), read_jobs(trace), read_types(default_file(CATALOG)))
    wrong = books.wrong[:3]
    if abs(books.usd - float(result.cost_usd)) > NEAR:
        wrong.append(f"its log comes to ${books.usd:.4f}, it says ${result.cost_usd:.4f}")
    if abs(books.mean_wait_s - result.wait_s.mean) > NEAR:
        wrong.append(f"its log waits {books.mean_wait_s:.4f} s, it says {result.wait_s.mean:.4f} s")
    return [f"{run}: {what}" for what in wrong]


def row(name: str, result: Result, curve: Sequence[Run], rival: bool) -> dict[str, Any]:
    """A run, and for a peer our dollars at its wait as a multiple of its own."""
    run = Run(result.wait_s.mean, float(result.cost_usd))
    ours = {"ours_over_its": ahead(curve, run), "red": ahead(curve, run) > TOLERANCE} if rival else {}
    shown = {"x_integral": result.x_integral, "wait_s": msgspec.to_builtins(result.wait_s)}
    return {"policy": name, "cost_usd": float(result.cost_usd), **shown, **ours}


def table(trace: str, rows: Sequence[dict[str, Any]]) -> Sheet:
    """Everybody, the red ones in red."""
    headings = ("dollars", "x bound", "mean wait", "P95 wait", "ours at its wait")
    shown = Sheet(Column("policy", "name"), *(Column(h, "figure") for h in headings), title=trace)
    for r in rows:
        beside = f"{r['ours_over_its']:.3f}x" if "ours_over_its" in r else ""
        cells = (usd(Decimal(r["cost_usd"])), multiple(r["x_integral"]), wait(r["wait_s"]["mean"]))
        shown.add(r["policy"], *cells, wait(r["wait_s"]["p95"]), beside, style="bold red" if r.get("red") else "")
    return shown


def spent_s() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def slice_told(trace: Path, options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Run a slice, judge, print the table; what JSON says of it, and whether it holds."""
    before_s = spent_s()
    with tempfile.TemporaryDirectory(prefix="pareto-") as scratch:
        folder = options.logs / trace.name.partition(".")[0] if options.logs else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        done = swept(trace, options, folder)
        ours = [(ours_name(s.value_of_wait), s.result) for s in done.ours]
        theirs = [(peer.policy, peer) for peer in done.peers]
        logged = [(n, r) for n, r in (*ours, *theirs) if n != ALWAYS_ON]
        wrong = [what for name, result in logged for what in checked(name, result, folder, trace)]
    curve = efficient_runs(Run(result.wait_s.mean, float(result.cost_usd)) for _, result in ours)
    rows = [row(n, r, curve, rival=False) for n, r in ours]
    rows += [row(n, r, curve, rival=n != ALWAYS_ON) for n, r in theirs]
    red = [r["policy"] for r in rows if r.get("red")]
    cpu_s = round(spent_s() - before_s)
    if not options.json:
        console().print(table(trace.name, rows))
        told = f"red: {', '.join(red)}" if red else "no peer is cheaper at equal or lower mean wait"
        console().print(f"{told}; every run agrees with its log" if not wrong else "\n".join([told, *wrong]))
        console().print(f"{cpu_s} CPU seconds")
    for what in wrong if options.json else ():
        Console(stderr=True).print(what)
    said = {"trace": trace.name, "runs": rows, "red": red, "wrong": wrong, "cpu_s": cpu_s}
    return said, not (red or wrong)


def main(words: Sequence[str]) -> int:
    """Every slice in turn."""
    options = asked(words)
    told = [slice_told(trace, options) for trace in options.traces]
    if options.json:
        said = [what for what, _ in told]
        print(json.dumps(said if len(said) > 1 else said[0], indent=1))
    return int(not all(holds for _, holds in told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
