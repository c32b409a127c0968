"""The least that a wait costs where each pool has the rule that suits it best in hindsight.

Usage: python bench/replays/hindsight.py TRACE --mean 14 --p95 60 [--values 3,30] [--timeouts 0,900] [--processes 2]
[--json]

The jobs are parted by the types that node affinity leaves them, so that no pool's choice touches another's. Each part
is replayed under ours at every price of waiting and under every fixed idle timeout; of all ways to choose one for each
part the cheapest is told that holds the mean wait, the one that holds the P95, and the one that holds both. Nobody can
choose so beforehand: a figure below these asks for better forecasts, not for another price. Exit code 1 where no choice
holds both.
"""

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pilotlight.facts.offers.catalog import Catalog
from pilotlight.tools.cli.lab.replay_command import load_catalog, load_policy
from pilotlight.tools.cli.printing import console
from pilotlight.tools.cli.sweep_progress import progress_bar
from pilotlight.tools.replay.compare import apart
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.measure import Outcome
from pilotlight.tools.replay.peers.peer_run import run_peer
from pilotlight.tools.replay.placement_shaping import Affinity
from pilotlight.tools.replay.run import run
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.trace_file import read_trace
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.tools.report.tables.replay_table import multiple, usd, wait
from pilotlight.tools.report.tables.sheet import Column, Sheet

P95 = 0.95


class Way(NamedTuple):
    """A rule on one part of the jobs: its dollars, all its waits together in seconds, and how many were too long."""

    rule: str
    usd: float
    waited_s: float
    late: int


class Choice(NamedTuple):
    """A rule for each part, and what they come to together."""

    ways: tuple[Way, ...]

    @property
    def usd(self) -> float:
        """Dollars of all parts."""
        return sum(way.usd for way in self.ways)

    @property
    def waited_s(self) -> float:
        """Seconds that all jobs waited."""
        return sum(way.waited_s for way in self.ways)

    @property
    def late(self) -> int:
        """Jobs that waited too long."""
        return sum(way.late for way in self.ways)


def asked(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--mean", type=float, required=True, help="seconds of the mean wait")
    parser.add_argument("--p95", type=float, required=True, help="seconds of the P95 wait")
    parser.add_argument("--values", default="3,10,30,60,100,200,400,1000")
    parser.add_argument("--timeouts", default="0,300,900,1800,3600,7200,21600")
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(words)


def parted(jobs: Sequence[Job], catalog: Catalog) -> dict[str, list[Job]]:
    """The jobs by the types that affinity leaves them."""
    parts, affinity = defaultdict(list), Affinity(catalog, "on-demand")
    for job in jobs:
        parts["|".join(affinity.types_of(job))].append(job)
    return parts


def ours(value: Decimal, jobs: Sequence[Job], catalog: Catalog) -> Outcome:
    """Our run of a part."""
    policy = msgspec.structs.replace(load_policy(None), value_of_wait=value)
    scenario = Scenario(placement="affinity", scoring="most-allocated")
    return run(jobs, catalog, policy, scenario, trace="", bounds=bounds(jobs, catalog)).outcome


def fixed(timeout: str, jobs: Sequence[Job], catalog: Catalog) -> Outcome:
    """A fixed timeout's run of a part."""
    scenario = Scenario(scoring="most-allocated")
    return run_peer(f"karpenter-pinned:{timeout}", jobs, catalog, scenario, bound=bounds(jobs, catalog))


def way(rule: str, outcome: Outcome, late_s: float) -> Way:
    """Weight of a run."""
    late = sum(each > late_s for each in outcome.waits)
    return Way(rule, float(outcome.result.cost_usd), sum(outcome.waits), late)


def worth_trying(ways: Sequence[Way]) -> list[Way]:
    """Without those that another beats or equals in dollars, waits and late jobs."""
    kept: list[Way] = []
    for one in sorted(ways, key=lambda w: w[1:]):
        if not any(other.waited_s <= one.waited_s and other.late <= one.late for other in kept):
            kept.append(one)
    return kept


def cheapest(parts: Sequence[Sequence[Way]], waited_s: float, late: float) -> Choice | None:
    """The cheapest choice that holds both limits."""
    choices = map(Choice, product(*map(worth_trying, parts)))
    held = (choice for choice in choices if choice.waited_s <= waited_s and choice.late <= late)
    return min(held, key=lambda choice: choice.usd, default=None)


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Every part under every rule, and the cheapest choices."""
    jobs, catalog = read_trace(options.trace), load_catalog(None)
    parts = parted(jobs, catalog)
    rules: dict[str, Callable[[Sequence[Job]], Outcome]] = {
        f"${v}/h": partial(ours, Decimal(v), catalog=catalog) for v in options.values.split(",")
    }
    rules |= {f"{t} s idle": partial(fixed, t, catalog=catalog) for t in options.timeouts.split(",")}
    tasks = {f"{part}: {name}": partial(rule, mine) for part, mine in parts.items() for name, rule in rules.items()}
    with progress_bar(len(tasks)) as on_done:
        _, outcomes = apart(tasks, meanwhile=lambda: None, on_done=on_done, processes=options.processes)
    ways = [way(name, one, options.p95) for name, one in zip(list(rules) * len(parts), outcomes, strict=True)]
    rows = [ways[at : at + len(rules)] for at in range(0, len(ways), len(rules))]
    waited_s, late = options.mean * len(jobs), len(jobs) - 1 - math.floor(P95 * len(jobs))
    bound = float(bounds(jobs, catalog).integral)
    limits = {"mean": (waited_s, math.inf), "p95": (math.inf, late), "both": (waited_s, late)}
    found = {name: cheapest(rows, *limit) for name, limit in limits.items()}
    return {
        "trace": options.trace.name,
        "limits": {"mean_wait_s": options.mean, "p95_wait_s": options.p95},
        "parts": {part: [w._asdict() for w in row] for part, row in zip(parts, rows, strict=True)},
        "cheapest": {name: told(choice, list(parts), bound, len(jobs)) for name, choice in found.items()},
    }


def told(choice: Choice | None, parts: Sequence[str], bound: float, jobs: int) -> dict[str, Any] | None:
    """A choice in the words of a replay."""
    if choice is None:
        return None
    rules = {part: one.rule for part, one in zip(parts, choice.ways, strict=True)}
    wait_s = choice.waited_s / jobs
    return {
        "usd": choice.usd,
        "x_integral": choice.usd / bound,
        "mean_wait_s": wait_s,
        "late": choice.late,
        "rules": rules,
    }


def table(said: dict[str, Any]) -> Sheet:
    """The cheapest choices."""
    headings = ("dollars", "x bound", "mean wait", "longer than the P95")
    shown = Sheet(Column("holds", "name"), *(Column(h, "figure") for h in headings), Column("by"), title=said["trace"])
    for name, row in said["cheapest"].items():
        if row is None:
            shown.add(name, "none does", "", "", "", "")
            continue
        by = "; ".join(f"{part} {rule}" for part, rule in row["rules"].items())
        cells = usd(Decimal(row["usd"])), multiple(row["x_integral"]), wait(row["mean_wait_s"])
        shown.add(name, *cells, str(row["late"]), by)
    return shown


def main(words: Sequence[str]) -> int:
    """Run and print."""
    options = asked(words)
    said = measured(options)
    if options.json:
        print(json.dumps(said, indent=1))
    else:
        console().print(table(said))
    return int(said["cheapest"]["both"] is None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
