"""Kills serve's workers with kill -9 at random moments under load, and then looks whether anything was hurt.

``python bench/kill_workers.py --kills 200 --seed 1`` exits 1 where a node was bought twice, a cap passed, a pod lost
or a lease left behind.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from fleet import Fleet, fleet, until

CAP = 4
PODS_A_WAVE, KILLS_A_WAVE, RUN_S = 40, 20, 120


def main() -> int:
    """Kill, wait until all is quiet, and print what was found; the exit code."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--kills", type=int, default=200)
    words.add_argument("--seed", type=int, default=1)
    asked = words.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home, fleet(Path(home), workers=3, clock="x200") as here:
        pods = _kill(here, asked.kills, Random(asked.seed))
        found = _found(here, pods)
    print(f"{asked.kills} kills, {pods} pods, {time.monotonic() - began:.0f} s: {found}")
    return int(any(found.values()))


def _kill(here: Fleet, kills: int, dice: Random) -> int:
    """Wave after wave of pods, each under load while workers die; how many pods there were."""
    pods = 0
    for wave in range(0, kills, KILLS_A_WAVE):
        fresh = here.create(PODS_A_WAVE, RUN_S, name=f"w{wave}-")
        pods += len(fresh)
        with here.load(fresh):
            for _ in range(min(KILLS_A_WAVE, kills - wave)):
                here.kill_one(dice)
    return pods


def _found(here: Fleet, pods: int) -> dict[str, int]:
    """What must be nothing, once all had the time to end."""
    for settled in (
        lambda: here.world.report().pods["finished"] == pods,
        lambda: not here.world.report().nodes,
        lambda: not here.state.scan("lease/").items,
    ):
        try:
            until(settled)
        except AssertionError:
            break
    report = here.world.report()
    return {
        "bought twice": report.surplus,
        "GPUs over the cap": max(0, report.peak_gpus - CAP),
        "pods lost": pods - report.pods["finished"],
        "nodes left lit": report.nodes,
        "leases left": len(here.state.scan("lease/").items),
    }


if __name__ == "__main__":
    sys.exit(main())
