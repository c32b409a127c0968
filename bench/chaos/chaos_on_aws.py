"""The chaos harness with the Auto Scaling adapter as its cloud: ``python bench/chaos/chaos_on_aws.py --seeds 0..199``.

Its cloud is the tests' stand-in over HTTP. Every second seed grows groups by their size, the others launch at once;
half of the former have warm pools that take nodes back, and one node of each pool is to stand by.
Prints what each seed broke, and the sum; exit code 1 where anything was.
"""

import argparse
import logging
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("stand_ins", "world", "chaos")]

from harness.asg_hazard import broken, on_asg  # noqa: E402
from harness.serial_run import run  # noqa: E402


def main() -> None:
    """Every seed in its turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0..199", help="A..B, both ends included")
    parser.add_argument("--deliveries", type=int, default=16)
    asked = parser.parse_args()
    first, last = map(int, asked.seeds.split(".."))
    logging.disable(logging.CRITICAL)
    bad = launches = calls = 0
    for seed in range(first, last + 1):
        with (
            pytest.MonkeyPatch.context() as patch,
            on_asg(seed, at_once=seed % 2 == 0, stops=seed % 4 == 1, patch=patch) as accounts,
        ):
            outcome = run(seed, asked.deliveries)
        found = broken(outcome)
        bad += bool(found)
        launches += outcome.launches
        calls += sum(len(aws.changes()) for aws in accounts)
        for line in found:
            print(f"seed {seed}: {line}", flush=True)
    print(f"{last + 1 - first} seeds: {bad} broken, {launches} nodes launched, AWS asked for {calls} changes")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
