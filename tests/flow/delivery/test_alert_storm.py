"""A small storm of alerts over real HTTP; ``python bench/chaos/alert_storm.py`` is the large one."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest

from alert_storm import KINDS, storm
from pilotlight.adapters import http
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.facts.messages import Alert
from pilotlight.flow.delivery import alert_dedup, deliver, desk, fan_out, flush
from pilotlight.flow.delivery.desk import UNDELIVERED
from providers import SECRET


@pytest.mark.parametrize("grouped", [False, True], ids=["each by itself", "grouped"])
def test_a_storm_loses_and_doubles_nothing(grouped: bool) -> None:
    """With three requests in ten failing, every alert is told once or is a dead letter, and no secret shows."""
    found = storm(100, seed=7, grouped=grouped)
    assert (found.lost, found.doubled, found.shown) == (0, 0, 0)
    assert found.told + found.dead >= 100 * len(KINDS)
    assert sum(found.met.values()) > found.met["taken"]


def test_what_is_told_anew_after_its_time_is_no_double() -> None:
    """A channel that still cannot be told is named again after six hours; that is counted apart."""
    found = storm(80, seed=7, between_s=10_700)
    assert (found.lost, found.doubled) == (0, 0)
    assert found.reminded > 0


def test_a_storm_counts_right_in_a_process_with_many_files_open() -> None:
    """A worker that has run other tests has over 1,024 files open: what a sender gave up is known there too."""
    with ExitStack() as stack:
        for _ in range(1100):
            stack.enter_context(Path(os.devnull).open())
        found = storm(40, seed=7)
    assert (found.lost, found.doubled) == (0, 0)


def _forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_dedup, "was_heard", lambda *_: False)
    for module in (fan_out, flush):
        monkeypatch.setattr(module, "reason_not_to_tell", lambda *_: "")


def _repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(before: Telling | None, alert: Alert, now: datetime, again_s: float) -> str:
        return "" if alert.kind == UNDELIVERED else desk.reason_not_to_tell(before, alert, now, again_s)

    monkeypatch.setattr(flush, "reason_not_to_tell", known)


def _drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "give_up", lambda at, claim, why, **_: deliver.drop(at, claim))


def _shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "reason", lambda error: f"{error} {SECRET}")


@pytest.mark.parametrize(
    ("plant", "count"),
    [(_forgets, "doubled"), (_repeats, "doubled"), (_drops, "lost"), (_shows, "shown")],
    ids=[
        "a proof that is not looked at",
        "a reminder before its time",
        "a refusal that leaves no letter",
        "an error that shows a secret",
    ],
)
def test_the_storm_catches_a_planted_bug(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], count: str
) -> None:
    """What the storm is for it counts."""
    plant(monkeypatch)
    assert getattr(storm(40, seed=7), count) > 0
