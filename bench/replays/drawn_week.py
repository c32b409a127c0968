"""Likeness of the drawn week to the real one: multiple of the bound and mean wait of Pilotlight and every peer.

Usage: .venv/bin/python bench/replays/drawn_week.py ../shared/traces/philly_dev.csv.gz [SEED ...]
Exit code 1 when a multiple is over 10 % or a mean wait over 20 % from the real week's.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from pilotlight.tools.cli.lab.replay_command import compare, load_catalog, load_policy
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.drawn_trace import synthesise
from pilotlight.tools.replay.traces.trace_file import read_trace, window
from pilotlight.tools.replay.traces.trace_job import Job, Result
from pilotlight.tools.replay.traces.trace_stats import read_stats

STATS = Path(__file__).parents[2] / "data" / "philly_week.stats.json"
PEERS = ("always-on", "cluster-autoscaler", "karpenter", "karpenter-pinned:900", "keda", "s0-loop")
MULTIPLE_OFF, WAIT_OFF = 0.10, 0.20


def replayed(jobs: Sequence[Job]) -> list[Result]:
    """Pilotlight's result, then each peer's."""
    outcomes = compare(
        jobs, load_catalog(None), load_policy(None), Scenario(scoring="most-allocated"), trace="", against=PEERS
    )
    return [outcome.result for outcome in outcomes]


def off(drawn: float, real: float) -> float:
    """By what share a figure differs; 0 where both are 0."""
    return drawn / real - 1 if real else float(drawn != real)


def main(trace: str, seeds: Sequence[int]) -> int:
    """Print one line a policy and seed."""
    real = replayed(window(read_trace(trace), 7, 14))
    stats = read_stats(STATS.read_bytes(), STATS.name)
    bad = 0
    for seed in seeds:
        for was, now in zip(real, replayed(synthesise(stats, seed)), strict=True):
            multiples = [float(r.cost_usd / r.bound_usd.integral) for r in (was, now)]
            multiple, wait = off(multiples[1], multiples[0]), off(now.wait_s.mean, was.wait_s.mean)
            bad += abs(multiple) > MULTIPLE_OFF or abs(wait) > WAIT_OFF
            print(
                f"seed {seed}  {was.policy:22} {multiples[0]:7.3f}x -> {multiples[1]:7.3f}x {multiple:+7.1%}"
                f"   wait {was.wait_s.mean:6.1f} -> {now.wait_s.mean:6.1f} s {wait:+7.1%}"
            )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], [int(seed) for seed in sys.argv[2:]] or [0, 1, 2, 3, 4]))
