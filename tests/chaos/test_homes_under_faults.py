"""Homes harm nobody: under faults, deaths and pauses a pod runs where it may, and is kept out of nothing free."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from harness.faults.hazard_ports import HazardCluster
from harness.homes_run import HomesRun

from pilotlight.decide.place import belonging, homes
from pilotlight.facts.limits.brakes import NO_BRAKES

SEEDS = 12
ACTING = "pilotlight.decide.place.homes.acting_pools"


def run(seeds: range, folder: Path) -> tuple[list[str], list[HomesRun]]:
    """What broke under some seeds, and the runs."""
    said, runs = [], []
    for seed in seeds:
        (folder / str(seed)).mkdir()
        runs.append(HomesRun(seed, folder / str(seed)))
        said += [f"seed {seed}, {what}" for what in runs[-1].go()]
    return said, runs


def test_a_dozen_seeds_keep_nobody_out(tmp_path: Path) -> None:
    """Pods run on nodes that they tolerate alone; nobody waits beside a free one; no pause or lonely hour keeps any."""
    said, runs = run(range(SEEDS), tmp_path)
    assert said == []
    assert sum(bool(one.judge.ever_homed) for one in runs) > SEEDS / 2
    assert sum(one.judge.let_in for one in runs) > SEEDS
    assert sum(one.deaths for one in runs) > 0
    assert sum(one.clean for one in runs) > 100 * SEEDS / 5


def the_unhelped_are_left_outside(patch: pytest.MonkeyPatch) -> None:
    """A pod for which nothing is bought after all is given nothing."""
    patch.setattr(homes, "_for_the_unhelped", lambda work, opened: ())


def homes_are_never_named(patch: pytest.MonkeyPatch) -> None:
    """Nodes stay new, and no pod tolerates that."""
    patch.setattr(HazardCluster, "name_home", lambda self, node, home: None)


def a_pause_opens_nothing(patch: pytest.MonkeyPatch) -> None:
    """Nodes are kept whether their pool is paused or not."""
    asked = belonging.acting_pools
    patch.setattr(ACTING, lambda view, policy, brakes: asked(view, policy, NO_BRAKES))


def nobody_has_to_watch(patch: pytest.MonkeyPatch) -> None:
    """Nodes are kept though nobody would open them in our place."""
    asked = belonging.acting_pools
    patch.setattr(
        ACTING, lambda view, policy, brakes: asked(msgspec.structs.replace(view, watched=True), policy, brakes)
    )


@pytest.mark.parametrize(
    ("plant", "word"),
    [
        pytest.param(the_unhelped_are_left_outside, "is kept out", id="the unhelped are left outside"),
        pytest.param(homes_are_never_named, "is kept out", id="homes are never named"),
        pytest.param(a_pause_opens_nothing, "is paused", id="a pause opens nothing"),
        pytest.param(nobody_has_to_watch, "nobody would open", id="nobody has to watch"),
    ],
)
def test_a_planted_bug_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among the first seeds is one that shows it."""
    plant(monkeypatch)
    found = (run(range(seed, seed + 1), tmp_path)[0] for seed in range(2 * SEEDS))
    assert any(word in what for said in found for what in said)
