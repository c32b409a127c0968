"""Our rules where the past misleads them: against the best fixed idle timeout, chosen in hindsight.

Usage: python bench/replays/robustness.py STEADY BURSTS [--days 1] [--only capacity] [--values 6,30] [--timeouts 0,900]
[--json]

STEADY and BURSTS are traces, say openb_dev and philly_short_dev. Each case is one change of regime: BURSTS after
STEADY; a tenth of STEADY's jobs run ten times as long; a boot of a minute, of ten; no capacity in a fifth of all hours.
Ours at each price of waiting stands beside nodes bought by need, each pod on its cheapest type, that idle for a fixed
time: all such times are tried, and the one that costs least at our mean wait counts (linear between two). Red: over 1.1
times that.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from pilotlight.errors import BadInput
from pilotlight.tools.advice.frontier import Run, efficient_runs, usd_at
from pilotlight.tools.cli.lab.replay_command import load_catalog, load_policy
from pilotlight.tools.cli.printing import console
from pilotlight.tools.cli.sweep_progress import progress_bar
from pilotlight.tools.replay.compare import apart
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.peers.peer_run import run_peer
from pilotlight.tools.replay.run import run
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.trace_file import DAY, read_trace, window
from pilotlight.tools.replay.traces.trace_job import Job, Result
from pilotlight.tools.report.tables.replay_table import multiple, wait
from pilotlight.tools.report.tables.sheet import Column, Sheet

MOST = 1.1
"""Ours may cost so many times the best fixed timeout at equal wait."""
LONGER, ONE_IN = 10, 10
"""One job in so many runs so many times as long."""
SEED = 7


def asked(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steady", type=Path)
    parser.add_argument("bursts", type=Path)
    parser.add_argument("--days", type=float, default=1.0, help="so many of each trace")
    parser.add_argument("--from-day", type=float, default=0.0)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--values", default="6,30")
    parser.add_argument("--timeouts", default="0,300,900,3600")
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(words)


def after(first: Sequence[Job], then: Sequence[Job], days: float) -> tuple[Job, ...]:
    """One trace and then another, so many days later."""
    moved = (
        msgspec.structs.replace(job, job_id=f"then-{job.job_id}", submit_s=job.submit_s + days * DAY) for job in then
    )
    return (*first, *moved)


def drawn_out(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """The jobs, one in ten of them running ten times as long, drawn by a fixed seed."""
    draw = random.Random(SEED)
    return tuple(
        msgspec.structs.replace(job, duration_s=job.duration_s * LONGER) if draw.randrange(ONE_IN) == 0 else job
        for job in jobs
    )


def cases(steady: Sequence[Job], bursts: Sequence[Job], days: float) -> dict[str, tuple[Sequence[Job], Scenario]]:
    """The jobs and the world of each case."""
    usual = Scenario(placement="affinity", scoring="most-allocated")
    return {
        "bursts after steady days": (after(steady, bursts, days), usual),
        "one job in ten ten times as long": (drawn_out(steady), usual),
        "a boot of 60 s": (steady, replace(usual, boot_s=60)),
        "a boot of 600 s": (steady, replace(usual, boot_s=600)),
        "no capacity in a fifth of all hours": (steady, replace(usual, shortage=0.2)),
    }


def ours(value: Decimal, jobs: Sequence[Job], scenario: Scenario) -> Result:
    """Our run at a price of waiting."""
    catalog = load_catalog(None)
    policy = msgspec.structs.replace(load_policy(None), value_of_wait=value)
    return run(jobs, catalog, policy, scenario, trace="", bounds=bounds(jobs, catalog)).outcome.result


def fixed(seconds: str, jobs: Sequence[Job], scenario: Scenario) -> Result:
    """The run of a fixed idle timeout."""
    catalog = load_catalog(None)
    bound = bounds(jobs, catalog)
    return run_peer(f"karpenter-pinned:{seconds}", jobs, catalog, scenario, bound=bound).result


def rows_of(case: str, values: Sequence[Decimal], mine: Sequence[Result], theirs: Sequence[Result]) -> list[Any]:
    """Ours at each price beside the best fixed timeout at that wait."""
    best = efficient_runs(Run(r.wait_s.mean, float(r.cost_usd)) for r in theirs)
    rows = []
    for value, result in zip(values, mine, strict=True):
        ratio = float(result.cost_usd) / usd_at(best, result.wait_s.mean)
        shown = {"x_integral": result.x_integral, "mean_wait_s": result.wait_s.mean, "p95_wait_s": result.wait_s.p95}
        done = {"jobs": result.jobs, "jobs_done": result.jobs_done}
        told = {"over_the_best": ratio, "quicker_than_all": result.wait_s.mean < best[0].wait_s, "red": ratio > MOST}
        rows.append({"case": case, "value_of_wait": float(value), **shown, **done, **told})
    return rows


def measured(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every case at every price."""
    days = options.from_day, options.from_day + options.days
    steady, bursts = (window(read_trace(path), *days) for path in (options.steady, options.bursts))
    for path, jobs in ((options.steady, steady), (options.bursts, bursts)):
        if not jobs:
            raise BadInput(
                f"{path.name}: no job on days {days[0]:g} to {days[1]:g}; say others with --days, --from-day"
            )
    found = {n: case for n, case in cases(steady, bursts, options.days).items() if options.only in n}
    if not found:
        raise BadInput(f"no case holds {options.only!r}: they are {'; '.join(cases(steady, bursts, options.days))}")
    values, timeouts = [Decimal(v) for v in options.values.split(",")], options.timeouts.split(",")
    tasks: dict[str, Callable[[], Result]] = {}
    for name, (trace, scenario) in found.items():
        tasks |= {f"{name}, at ${v}/h": partial(ours, v, trace, scenario) for v in values}
        tasks |= {f"{name}, {t} s idle": partial(fixed, t, trace, scenario) for t in timeouts}
    with progress_bar(len(tasks)) as on_done:
        _, results = apart(tasks, meanwhile=lambda: None, on_done=on_done, processes=options.processes)
    rows, each = [], len(values) + len(timeouts)
    for at, name in enumerate(found):
        here = results[at * each : (at + 1) * each]
        rows += rows_of(name, values, here[: len(values)], here[len(values) :])
    return rows


def table(rows: Sequence[dict[str, Any]]) -> Sheet:
    """The rows, the red ones in red."""
    headings = ("$/h of waiting", "x bound", "mean wait", "P95 wait", "over the best timeout")
    shown = Sheet(Column("case"), *(Column(h, "figure") for h in headings))
    for r in rows:
        beside = f"{r['over_the_best']:.3f}x" + (", and quicker" if r["quicker_than_all"] else "")
        waits = wait(r["mean_wait_s"]), wait(r["p95_wait_s"])
        cells = f"{r['value_of_wait']:g}", multiple(r["x_integral"]), *waits, beside
        shown.add(r["case"], *cells, style="bold red" if r["red"] else "")
    return shown


def main(words: Sequence[str]) -> int:
    """Run, print. Exit code 1 where a row is red or a run left jobs unfinished, 2 for bad input."""
    options = asked(words)
    try:
        rows = measured(options)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        console().print(table(rows))
    return int(any(r["red"] or r["jobs_done"] < r["jobs"] for r in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
