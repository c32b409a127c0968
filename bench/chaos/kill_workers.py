"""Kills serve's workers with kill -9 at random moments under load, or stops them with SIGSTOP for up to 70 seconds of
the world's, longer than a lease, and lets them go on; then looks whether anything was hurt.

``python bench/chaos/kill_workers.py --kills 200 --seed 1`` and ``--freezes 40`` exit 1 where a node was bought twice, a
cap passed, a pod lost, a node left lit or a lease left behind.
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
FREEZES_A_WAVE, FREEZE_S, SPEED = 4, (20.0, 70.0), 10
"""A worker looks at the wall's clock for its two seconds before a call: no faster than this is what it misses shorter
than what others wait for."""


def main() -> int:
    """Kill, wait until all is quiet, and print what was found; the exit code."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--kills", type=int, default=200)
    words.add_argument("--freezes", type=int, default=0)
    words.add_argument("--seed", type=int, default=1)
    asked = words.parse_args()
    began, clock = time.monotonic(), f"x{SPEED if asked.freezes else 200}"
    with tempfile.TemporaryDirectory() as home, fleet(Path(home), workers=3, clock=clock) as here:
        dice = Random(asked.seed)
        pods = _freeze(here, asked.freezes, dice) if asked.freezes else _kill(here, asked.kills, dice)
        found = _found(here, pods)
    said = f"{asked.freezes} freezes" if asked.freezes else f"{asked.kills} kills"
    print(f"{said}, {pods} pods, {time.monotonic() - began:.0f} s: {found}")
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


def _freeze(here: Fleet, freezes: int, dice: Random) -> int:
    """Wave after wave of pods that a cap can hold, each under load while workers stand still; how many there were."""
    for wave in range(0, freezes, FREEZES_A_WAVE):
        fresh = here.create(CAP, RUN_S, name=f"w{wave}-")
        with here.load(fresh):
            for _ in range(min(FREEZES_A_WAVE, freezes - wave)):
                here.freeze_one(dice, dice.uniform(*FREEZE_S) / SPEED)
    return CAP * len(range(0, freezes, FREEZES_A_WAVE))


def _found(here: Fleet, pods: int) -> dict[str, int]:
    """Faults that are left once all had the time to end; there must be none."""
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
