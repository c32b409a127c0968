"""A trace on spot in recorded zones: ours beside a peer with the same zones, by price of waiting.

Usage: .venv/bin/python bench/replays/spot_rows.py TRACE... --zones FILE... [--values 10,30,100] [--placement affinity]
[--against karpenter-pinned:900] [--capacity-type spot+on-demand] [--from-day 0 --days 3] [--seed 0] [--json]

A row is met whose dollars are at most 0.97 of the peer's at an equal or lower mean added delay. Dollars, waits and
devices are worked out anew from each run's log (bench/replays/judge.py), and each launch and each loss is looked for in
the files (bench/replays/judge_zones.py). Exit code 1 where no row of a trace is met, or a run and its log disagree.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console

from judge import judge, read_types
from judge_zones import Zone, judge_zones
from pilotlight.settings import default_file
from pilotlight.tools.cli.lab.replay_command import load_catalog, load_policy
from pilotlight.tools.replay.compare import Trial, log_to, one_peer
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.run import run
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.spot_availability import named_apart, read_zone
from pilotlight.tools.replay.traces.trace_file import read_trace, window
from pilotlight.tools.replay.traces.trace_job import Job, Result

MOST, NEAR = 0.97, 1e-3
CATALOG = "data/catalogs/replay.yaml"


def asked(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path, metavar="trace")
    parser.add_argument("--zones", nargs="+", required=True, type=Path)
    parser.add_argument("--values", default="10,30,100")
    parser.add_argument("--against", default="karpenter-pinned:900")
    parser.add_argument("--capacity-type", choices=["spot", "spot+on-demand"], default="spot")
    parser.add_argument("--placement", choices=["homes", "none", "affinity", "gated"], default="homes")
    parser.add_argument("--from-day", type=float, default=0.0)
    parser.add_argument("--days", type=float, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(words)


def disagreements(result: Result, log: Path, jobs: Sequence[Job], zones: Sequence[Zone], seed: int) -> list[str]:
    """Where a run and its log disagree, and what the log holds that no rule allows."""
    books = judge(log, {job.job_id: row_of(job) for job in jobs}, read_types(default_file(CATALOG)))
    wrong = [*books.wrong, *judge_zones(log, zones, seed)][:3]
    if abs(books.usd - float(result.cost_usd)) > NEAR:
        wrong.append(f"its log comes to ${books.usd:.4f}, it says ${result.cost_usd:.4f}")
    if abs(books.mean_wait_s - result.wait_s.mean) > NEAR:
        wrong.append(f"its log waits {books.mean_wait_s:.4f} s, it says {result.wait_s.mean:.4f} s")
    return wrong


def row_of(job: Job) -> dict[str, Any]:
    """A job as its row of a trace says it; times are those of the window."""
    named = {"gpus": job.gpus, "gpu_milli": job.gpu_milli, "gpu_spec": "|".join(job.models)}
    return {"submit_s": job.submit_s, "duration_s": job.duration_s, **named}


def rows(trace: Path, options: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """The peer and ours at every price of waiting, and what their logs say otherwise."""
    jobs, catalog = read_trace(trace), load_catalog(None)
    jobs = jobs if options.days is None else window(jobs, options.from_day, options.from_day + options.days)
    histories = named_apart(read_zone(path.read_bytes(), path.name) for path in options.zones)
    zones = [Zone.of(h.zone, h.gap_s, h.runs, h.nodes) for h in histories]
    falls_back = options.capacity_type == "spot+on-demand"
    scenario = Scenario(
        capacity_type="spot",
        falls_back=falls_back,
        zones=histories,
        placement=options.placement,
        scoring="most-allocated",
        seed=options.seed,
    )
    bound = bounds(jobs, catalog, "spot")
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="spot-rows-") as folder:
        log = Path(folder) / "log.jsonl"
        peer = one_peer(options.against, Trial(trace.name, jobs, catalog, scenario, bound), log).result
        wrong += [f"{options.against}: {what}" for what in disagreements(peer, log, jobs, zones, options.seed)]
        found = [figures(options.against, peer, None)]
        for value in options.values.split(","):
            policy = load_policy(None, float(Decimal(value)))
            with log_to(log) as write:
                ours = run(jobs, catalog, policy, scenario, trace=trace.name, bounds=bound, log=write).outcome.result
            wrong += [f"pilotlight V {value}: {what}" for what in disagreements(ours, log, jobs, zones, options.seed)]
            found.append(figures(f"pilotlight V {value}", ours, peer))
            Console(stderr=True).print(f"{trace.name}: V {value} done")
    return found, wrong


def figures(name: str, result: Result, peer: Result | None) -> dict[str, Any]:
    """Outcome of a run; of ours also its dollars over the peer's, and whether the row is met."""
    told: dict[str, Any] = {
        "policy": name,
        "cost_usd": float(result.cost_usd),
        "mean_delay_s": result.delay_s.mean,
        "mean_wait_s": result.wait_s.mean,
        "interruptions": result.interruptions,
        "jobs": result.jobs,
        "jobs_done": result.jobs_done,
    }
    if peer is not None:
        over = float(result.cost_usd / peer.cost_usd)
        all_done = result.jobs_done == result.jobs == peer.jobs_done
        told |= {"over_peer": over, "met": all_done and over <= MOST and result.delay_s.mean <= peer.delay_s.mean}
    return told


def main(words: Sequence[str]) -> int:
    """Every trace in turn."""
    options, holds, said = asked(words), True, []
    for trace in options.traces:
        found, wrong = rows(trace, options)
        holds = holds and not wrong and any(row.get("met") for row in found)
        said.append({"trace": trace.name, "rows": found, "wrong": wrong})
        for row in () if options.json else found:
            beside = f"{row['over_peer']:.3f}x its dollars{', met' if row['met'] else ''}" if "met" in row else ""
            print(
                f"{trace.name}  {row['policy']:22} ${row['cost_usd']:>10,.0f}  delay {row['mean_delay_s']:7.1f} s  "
                f"wait {row['mean_wait_s']:6.1f} s  {row['interruptions']:5} interruptions  {beside}"
            )
        for what in wrong:
            print(what, file=sys.stderr)
    if options.json:
        print(json.dumps(said, indent=1))
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
