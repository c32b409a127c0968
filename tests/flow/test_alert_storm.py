"""A small storm of alerts over real HTTP; ``python bench/alert_storm.py`` is the large one."""

from collections.abc import Callable

import pytest

from alert_storm import KINDS, storm
from pilotlight.adapters import http
from pilotlight.flow.delivery import alert_dedup, desk, fan_out, flush
from providers import SECRET


@pytest.mark.parametrize("grouped", [False, True], ids=["each by itself", "grouped"])
def test_a_storm_loses_and_doubles_nothing(grouped: bool) -> None:
    """With three requests in ten failing, every alert is told once or is a dead letter, and no secret shows."""
    found = storm(100, seed=7, grouped=grouped)
    assert (found.lost, found.doubled, found.shown) == (0, 0, 0)
    assert found.told + found.dead >= 100 * len(KINDS)
    assert sum(found.met.values()) > found.met["taken"]


def _forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_dedup, "heard", lambda *_: False)
    for module in (fan_out, flush):
        monkeypatch.setattr(module, "known", lambda *_: "")


def _drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "give_up", lambda at, claim, why, **_: desk.drop(at, claim))


def _shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "reason", lambda error: f"{error} {SECRET}")


@pytest.mark.parametrize(
    ("plant", "count"),
    [(_forgets, "doubled"), (_drops, "lost"), (_shows, "shown")],
    ids=["a proof that is not looked at", "a refusal that leaves no letter", "an error that shows a secret"],
)
def test_the_storm_catches_a_planted_bug(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], count: str
) -> None:
    """What the storm is for it counts."""
    plant(monkeypatch)
    assert getattr(storm(40, seed=7), count) > 0
