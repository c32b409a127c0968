"""The chaos harness with a cloud's adapter as its cloud: ``python bench/chaos/chaos_on_clouds.py gke --seeds 0..199``.

``aws`` is the tests' stand-in over HTTP: every second seed grows groups by their size, the others launch at once; half
of the former have warm pools that take nodes back, and one node of each pool is to stand by. ``gke`` is the tests'
local project over HTTP, validated by Google's documents: groups take on what they are asked for, refuse it late, and
try for ever. ``queue`` is the same project with queued provisioning: requests that are provisioned late, in part or
never, fail, or are deleted. ``karpenter`` is the stand-in of an API server with claims: deleted at once, or launched
later. ``gate`` is a NodePool behind budgets, over a Karpenter that overshoots in one way a seed. Prints what each seed
broke, and the sum, with what was launched amid faults: those go on while pods wait that could be served, for ``--more``
deliveries. Exit code 1 where anything was broken.
"""

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("stand_ins", "stand_ins/gke", "world", "chaos", "flow", "flow/budgets/gates")
sys.path[:0] = [str(ROOT / "tests" / name) for name in PLACES]

from harness.asg_hazard import broken, on_asg  # noqa: E402
from harness.gate_walk import walked  # noqa: E402
from harness.gke_hazard import on_gke  # noqa: E402
from harness.karpenter_hazard import on_karpenter  # noqa: E402
from harness.queue_hazard import on_queue  # noqa: E402
from harness.serial_run import run  # noqa: E402

MORE = 200
"""So many deliveries are enough for most pods of most seeds."""


def opened(cloud: str, seed: int, patch: pytest.MonkeyPatch) -> Any:
    """The clouds of a seed's deployments, while they are open."""
    if cloud == "gke":
        return on_gke(seed, patch=patch)
    if cloud == "queue":
        return on_queue(seed, patch=patch)
    if cloud == "karpenter":
        return on_karpenter(seed, patch=patch)
    return on_asg(seed, at_once=seed % 2 == 0, stops=seed % 4 == 1, patch=patch)


def walk_gates(seeds: range) -> int:
    """A gate's walks; how many were broken."""
    bad = launched = amid = excused = 0
    for seed in seeds:
        found, walk = walked(seed)
        bad, launched, excused = bad + bool(found), launched + walk.judge.launched, excused + walk.judge.excused
        amid += walk.amid
        for line in found:
            print(f"seed {seed}, {walk.fault}: {line}", flush=True)
    print(
        f"{len(seeds)} seeds: {bad} broken, {launched} machines launched, {amid} amid faults, "
        f"{excused} of them in a gap that is named"
    )
    return bad


def main() -> None:
    """Every seed in its turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloud", choices=("aws", "gke", "queue", "karpenter", "gate"))
    parser.add_argument("--seeds", default="0..199", help="A..B, both ends included")
    parser.add_argument("--deliveries", type=int, default=16)
    parser.add_argument("--more", type=int, default=MORE, help="deliveries beside those, while pods wait")
    asked = parser.parse_args()
    first, last = map(int, asked.seeds.split(".."))
    logging.disable(logging.CRITICAL)
    if asked.cloud == "gate":
        sys.exit(walk_gates(range(first, last + 1)) > 0)
    bad = launches = amid = calls = off = 0
    for seed in range(first, last + 1):
        with pytest.MonkeyPatch.context() as patch, opened(asked.cloud, seed, patch) as clouds:
            outcome = run(seed, asked.deliveries, asked.more)
        found = broken(outcome)
        bad += bool(found)
        launches += outcome.launches
        amid += outcome.amid
        calls += sum(len(cloud.changes()) for cloud in clouds)
        off += sum(getattr(cloud, "called_off", 0) for cloud in clouds)
        for line in found:
            print(f"seed {seed}: {line}", flush=True)
    print(
        f"{last + 1 - first} seeds: {bad} broken, {launches} nodes launched, {amid} amid faults, {off} called off, "
        f"{asked.cloud} asked for {calls} changes"
    )
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
