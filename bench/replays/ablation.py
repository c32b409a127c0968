"""Worth of each idea behind our dollars and waits: switched off, one at a time, on the same jobs.

Usage: python bench/replays/ablation.py TRACE.. [--days 0 1] [--value-of-wait 16] [--only "a burst"] [--json]
The objective is dollars + value of wait x hours waited, as a multiple of the bound. A cost above 0 % is what the
objective loses without the idea: it pays. One below says that it did not on these jobs. "with" names what was tried on
top and is not built: below 0 % is what it would have saved. One day of each trace is
replayed unless ``--days`` says which; a day of 1,000 jobs takes about half a minute of one processor a row.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from by_hour import spares_by
from pilotlight.decide.nodes.spares import demand_rates, spare_nodes
from pilotlight.decide.nodes.spares.demand_rates import HALF_LIVES_S
from pilotlight.decide.nodes.spares.quiet_time import LENGTHS_S
from pilotlight.errors import BadInput
from pilotlight.flow.observe import settle
from pilotlight.tools.cli.lab.replay_command import load_catalog, load_policy
from pilotlight.tools.cli.printing import console
from pilotlight.tools.cli.sweep_progress import progress_bar
from pilotlight.tools.replay.compare import apart
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.run import run
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.trace_file import read_trace, window
from pilotlight.tools.replay.traces.trace_job import Job, Result
from pilotlight.tools.report.tables.replay_table import multiple, wait
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import HOUR

ALL_ON = "all on"
SIX_HOURS = 3
"""The place of six hours among the half-lives: the one that there was before."""

SUMS = spare_nodes._sums
Patch = tuple[object, str, object]

PATCHES: dict[str, tuple[Patch, ...]] = {
    ALL_ON: (),
    "spares: idle nodes stay for their break-even": ((spare_nodes, "spares_by_pool", lambda *_: {}),),
    "buying ahead: spares are only kept": ((spare_nodes, "spare_buys", lambda *_: ()),),
    "a burst foretold by earlier ones": ((spare_nodes, "likely_to_follow", lambda *_: 0),),
    "what a spare saves is waits: its boots too": (
        (spare_nodes, "_sums", lambda *of: (sums := SUMS(*of))._replace(per_hour=float(of[0] / sums.usd_per_hit))),
    ),
    "the first dollar an hour of a wait: it counts": ((spare_nodes, "UNCOUNTED", Decimal(0)),),
    "half-lives from two minutes to a day: six hours": (
        (demand_rates, "_shares", lambda _: [float(at == SIX_HOURS) for at in range(len(HALF_LIVES_S))]),
    ),
    "a quiet's length: forecasts by rates alone": ((demand_rates, "corrections", lambda _: (1.0,) * len(LENGTHS_S)),),
    "forgetting how a half-life foretold": ((demand_rates, "FORGETTING_S", math.inf),),
    "no spare in place of a node that comes back in time": ((spare_nodes, "hit_again_per_hour", lambda _: None),),
    "nodes that fall idle replace ones on their way": ((settle, "return_idle", lambda hits, *_: hits),),
}
"""Stand-ins for each idea. Placement is an idea too: it is off in the scenario."""

TRIED: dict[str, int] = {"with rates by the hour of the day": 24, "with rates by the hour of the week": 7 * 24}
"""Ideas tried on top and not built, as hours of a cycle: below 0 % is what it would have saved."""

PLACEMENT = "placement: any job on any node"
IDEAS = (*PATCHES, PLACEMENT, *TRIED)


def asked(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, nargs="+")
    parser.add_argument("--days", type=float, nargs=2, default=(0.0, 1.0), metavar=("FROM", "TO"))
    parser.add_argument("--value-of-wait", type=float, default=16.0)
    parser.add_argument("--placement", choices=["homes", "none", "affinity"], default="affinity")
    parser.add_argument("--only", nargs="*", default=[], help="ideas whose name begins so; default: all")
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(words)


def chosen(only: Sequence[str]) -> list[str]:
    """The ideas whose names begin so, after the run with all of them on."""
    named = [idea for idea in IDEAS if idea == ALL_ON or not only or any(idea.startswith(word) for word in only)]
    for word in only:
        if not any(idea.startswith(word) for idea in IDEAS):
            raise BadInput(f"no idea begins with {word!r}: they are {'; '.join(IDEAS[1:])}")
    return named


@contextmanager
def without(idea: str) -> Iterator[None]:
    """The product without an idea."""
    with ExitStack() as stack:
        tried: tuple[Patch, ...] = ((spare_nodes, "Spares", spares_by(TRIED[idea])),) if idea in TRIED else ()
        for where, name, instead in (*PATCHES.get(idea, ()), *tried):
            stack.enter_context(patch.object(where, name, instead))
        yield


def one(idea: str, jobs: Sequence[Job], value_of_wait: float, scenario: Scenario) -> Result:
    """One replay without an idea."""
    catalog = load_catalog(None)
    scenario = replace(scenario, placement="none") if idea == PLACEMENT else scenario
    with without(idea):
        policy = load_policy(None, value_of_wait)
        return run(jobs, catalog, policy, scenario, trace=idea, bounds=bounds(jobs, catalog)).outcome.result


def objective(result: Result, value_of_wait: float) -> float:
    """Dollars and the price of the waits, as a multiple of the bound."""
    waited = value_of_wait * result.wait_s.mean * result.jobs / HOUR
    return (float(result.cost_usd) + waited) / float(result.bound_usd.integral)


def row(idea: str, trace: str, result: Result, all_on: Result, value: float) -> dict[str, Any]:
    """An idea on a trace: what the run without it came to, and what the objective lost."""
    lost = objective(result, value) / objective(all_on, value) - 1
    waits = {"mean_wait_s": result.wait_s.mean, "p95_wait_s": result.wait_s.p95}
    done = {"jobs": result.jobs, "jobs_done": result.jobs_done}
    return {"trace": trace, "without": idea, "x_integral": result.x_integral, **waits, **done, "lost": lost}


def table(rows: Sequence[dict[str, Any]]) -> Sheet:
    """The rows, those ideas in yellow that cost on these jobs."""
    headings = ("x bound", "mean wait", "P95 wait", "objective loses")
    shown = Sheet(Column("trace", "name"), Column("without"), *(Column(h, "figure") for h in headings))
    for r in rows:
        cells = multiple(r["x_integral"]), wait(r["mean_wait_s"]), wait(r["p95_wait_s"]), f"{r['lost']:+.1%}"
        shown.add(r["trace"], r["without"], *cells, style="yellow" if r["lost"] < 0 else "")
    return shown


def measured(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every idea on every trace."""
    ideas, value = chosen(options.only), options.value_of_wait
    scenario = Scenario(placement=options.placement, scoring="most-allocated")
    slices = {path.name: window(read_trace(path), *options.days) for path in options.traces}
    for name, jobs in slices.items():
        if not jobs:
            raise BadInput(f"{name}: no job on days {options.days[0]:g} to {options.days[1]:g}; say others with --days")
    tasks: dict[str, Callable[[], Result]] = {
        f"{name} without {idea}": partial(one, idea, jobs, value, scenario)
        for name, jobs in slices.items()
        for idea in ideas
    }
    with progress_bar(len(tasks)) as on_done:
        _, results = apart(tasks, meanwhile=lambda: None, on_done=on_done, processes=options.processes)
    rows = []
    for at, name in enumerate(slices):
        mine = results[at * len(ideas) : (at + 1) * len(ideas)]
        rows += [row(idea, name, result, mine[0], value) for idea, result in zip(ideas, mine, strict=True)]
    return rows


def main(words: Sequence[str]) -> int:
    """Run, print. Exit code 1 where a run left jobs unfinished, 2 for bad input."""
    try:
        rows = measured(asked(words))
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    if asked(words).json:
        print(json.dumps(rows, indent=1))
    else:
        console().print(table(rows))
    return int(any(r["jobs_done"] < r["jobs"] for r in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
