"""The taint that places work harms nobody: under faults, deaths and pauses no pod that could run is kept out by it."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from harness.taint_run import TaintRun

from pilotlight.decide.place import node_closing
from pilotlight.facts.limits.brakes import NO_BRAKES

SEEDS = 12
CLOSING = "pilotlight.decide.place.node_closing"


def run(seeds: range, folder: Path) -> tuple[list[str], list[TaintRun]]:
    """What broke under some seeds, and the runs."""
    said, runs = [], []
    for seed in seeds:
        (folder / str(seed)).mkdir()
        runs.append(TaintRun(seed, folder / str(seed)))
        said += [f"seed {seed}, {what}" for what in runs[-1].go()]
    return said, runs


def test_a_dozen_seeds_keep_nobody_out(tmp_path: Path) -> None:
    """Nobody waits before a closed node that nothing is bought beside, and no pause or lonely hour finds one closed."""
    said, runs = run(range(SEEDS), tmp_path)
    assert said == []
    assert sum(bool(one.judge.ever_closed) for one in runs) > SEEDS / 2
    assert sum(one.deaths for one in runs) > 0
    assert sum(one.clean for one in runs) > 100 * SEEDS / 4


def the_unhelped_are_left_outside(patch: pytest.MonkeyPatch) -> None:
    """A pod for which nothing is bought opens nothing."""
    patch.setattr(node_closing, "_for_the_unhelped", lambda view, plan, pods: {})


def a_pause_opens_nothing(patch: pytest.MonkeyPatch) -> None:
    """Pools are steered whether they are paused or not."""
    asked = node_closing.acting_pools
    patch.setattr(f"{CLOSING}.acting_pools", lambda view, policy, brakes: asked(view, policy, NO_BRAKES))


def nobody_has_to_watch(patch: pytest.MonkeyPatch) -> None:
    """Nodes are closed though nobody would open them in our place."""
    asked = node_closing.acting_pools
    patch.setattr(
        f"{CLOSING}.acting_pools",
        lambda view, policy, brakes: asked(msgspec.structs.replace(view, watched=True), policy, brakes),
    )


@pytest.mark.parametrize(
    ("plant", "word"),
    [
        pytest.param(the_unhelped_are_left_outside, "is kept out", id="the unhelped are left outside"),
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
