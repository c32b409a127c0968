"""Records of the state are deleted while workers are at it: work and money are safe, whichever it was."""

from pathlib import Path
from random import Random

import pytest
from harness.serial_run import SerialRun
from harness.settle_down import settle_down

FAMILIES = ("lease", "fence", "inflight", "step", "memory", "mark", "told", "rescue", "idle", "look-again", "hold")
"""Not what a report is made of, nor open decisions: their messages are in no other place."""


class Loser:
    """Deletes a record now and then."""

    def __init__(self, run: SerialRun, rng: Random) -> None:
        self.lost: list[str] = []
        self._state, self._rng, self._say = run.setting.store(), rng, run.setting.say

    def minute(self) -> None:
        """One record of some family, or none."""
        found = self._state.scan(f"{self._rng.choice(FAMILIES)}/").items
        if found:
            key = self._rng.choice(found)[0]
            self._state.delete(key)
            self.lost.append(key)
            self._say(f"{key} is deleted")


@pytest.mark.parametrize("seed", [6, 36])
def test_a_record_that_is_gone_costs_no_work(seed: int, tmp_path: Path) -> None:
    """Nothing that must never happen does, with a record lost in most minutes."""
    run = SerialRun(seed, 40, tmp_path / "state.db")
    loser = Loser(run, Random(seed))
    run.deployment.sites[0].post.on_minute.append(loser.minute)
    try:
        run.go()
    finally:
        run.end()
    settle_down(run.deployment)
    assert loser.lost
    assert run.setting.invariants.violations == []
