"""Seeded interruptions find nothing, and each planted bug is found."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from harness.interruptions.interruption_run import COUNTED
from harness.interruptions.interruption_sweep import run, sweep

from pilotlight.adapters.logs import LOGGER
from pilotlight.flow.interruption.drain_one import NodeDrain


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Retries are provoked, and not logged."""
    log = logging.getLogger(LOGGER)
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    yield
    log.setLevel(before)


def test_forty_seeds_break_nothing() -> None:
    """No lost checkpoint, no budget broken, no late or double replacement, no cordon or relaunch left behind."""
    found = sweep(range(40), 1)
    assert found.counts == dict.fromkeys(COUNTED, 0)
    assert sum(count > 0 for count in found.kinds.values()) == len(found.kinds)


@pytest.mark.parametrize(
    ("seed", "what"),
    [
        (75, "a pod that moves late finds its new node"),
        (272, "a pod that moves has one new node"),
        (479, "a gang waits"),
        (92, "a gang's node is replaced in the zone of the rest"),
        (23, "a zone goes while a purchase's answer is lost: no node too many"),
        (304, "a zone goes while a release's answer is lost: no node too many"),
    ],
    ids=lambda value: str(value),
)
def test_a_seed_that_broke_once_breaks_nothing(seed: int, what: str) -> None:
    """What such a seed once showed stays mended."""
    assert sweep(range(seed, seed + 1), 1).broken == (), what


def test_a_seed_repeats_exactly() -> None:
    """The same seed has the same log to the last line."""
    assert run(9) == run(9)


def _nothing(*_: object, **__: object) -> None:
    """A step that is forgotten."""


def _at_once(self: Any, move: Any, pods: Any) -> None:
    """A worker that gives nodes back at the notice."""
    self._release(next(n for n in self.view.nodes if n.name == self.found.node), "hasty")


PLANTED = {
    "nobody asks for a checkpoint": (NodeDrain, "_said", None, "lost_checkpoints"),
    "nobody asks for a replacement": (NodeDrain, "_replace", _nothing, "late_replacements"),
    "nodes are given back at the notice": (NodeDrain, "_gently", _at_once, "broken_budgets"),
    "nothing is given back": (NodeDrain, "_release", _nothing, "double_replacements"),
    "a cordon is never taken off": (NodeDrain, "_last", _nothing, "cordons_past_their_ttl"),
}


def _mute(self: Any) -> str:
    self.deps.cluster.tell = _nothing
    return ""


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the harness watches for is seen within three hundred seeds once it happens."""
    owner, attribute, bug, counted = PLANTED[name]
    monkeypatch.setattr(owner, attribute, bug or _mute)
    assert any(kind == counted for seed in range(300) for kind, _ in run(seed).broken)
