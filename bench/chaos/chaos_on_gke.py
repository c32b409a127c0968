"""The chaos harness with the GKE adapter as its cloud: ``python bench/chaos/chaos_on_gke.py --seeds 0..199``.

Its cloud is the tests' local project over HTTP, validated by Google's documents: groups take on what they are asked
for, refuse it late, and try for ever. Prints what each seed broke, and the sum; exit code 1 where anything was.
"""

import argparse
import logging
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("stand_ins", "stand_ins/gke", "world", "chaos")]

from harness.asg_hazard import broken  # noqa: E402
from harness.gke_hazard import on_gke  # noqa: E402
from harness.serial_run import run  # noqa: E402


def main() -> None:
    """Every seed in its turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0..199", help="A..B, both ends included")
    parser.add_argument("--deliveries", type=int, default=16)
    asked = parser.parse_args()
    first, last = map(int, asked.seeds.split(".."))
    logging.disable(logging.CRITICAL)
    bad = launches = calls = off = 0
    for seed in range(first, last + 1):
        with pytest.MonkeyPatch.context() as patch, on_gke(seed, patch=patch) as projects:
            outcome = run(seed, asked.deliveries)
        found = broken(outcome)
        bad += bool(found)
        launches += outcome.launches
        calls += sum(len(gke.changes()) for gke in projects)
        off += sum(gke.called_off for gke in projects)
        for line in found:
            print(f"seed {seed}: {line}", flush=True)
    print(
        f"{last + 1 - first} seeds: {bad} broken, {launches} nodes launched, {off} called off, "
        f"Google asked for {calls} changes"
    )
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
