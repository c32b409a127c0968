"""Every order of two workers' calls with one switch and one death, or one stall; and that the search is one.

`make interleavings` searches up to three switches with a death and a stall.
"""

import logging
from collections.abc import Iterator
from threading import Thread

import pytest
from interleavings import replayed, search
from orders import lives
from orders.scenes import MAKE
from orders.search import Bounds, Search, read, written
from planted import Bug, plant

from pilotlight.adapters.logs import LOGGER
from pilotlight.flow.interruption import verify_notice
from pilotlight.state_schema.table import Format

ORDINARY = Bounds(switches=1, stalls=0, deaths=1)
STALLED = Bounds(switches=1, stalls=1, deaths=0, stalls_s=(62.0,))

PLANTED = {
    "a step is set to sent without its version": (
        Bug("flow.records.call_steps:Sending._put", "if_version=self._version", "if_version=None"),
        "release",
        STALLED,
    ),
    "an account is written without its version": (
        Bug("flow.budgets.budget_accounts:change", "if_version=version", "if_version=None"),
        "hard-cap",
        STALLED,
    ),
    "a look that opened a node is decided on": (
        Bug("flow.cycle.recovery:any_reopened", "in closed", "in ()"),
        "release",
        STALLED,
    ),
}


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a search sets for its process is set back."""
    log = logging.getLogger(LOGGER)
    level = log.level
    monkeypatch.setattr(verify_notice, "Thread", Thread)
    monkeypatch.setattr(Format, "write", Format.write)
    lives.hush()
    yield
    log.setLevel(level)


@pytest.mark.parametrize("scene", MAKE)
@pytest.mark.parametrize("first", [0, 1], ids="AB")
def test_no_order_breaks_anything(scene: str, first: int) -> None:
    """With one switch and one death at any call: nothing is bought twice, killed, above a cap or left behind."""
    result = search(scene, first, ORDINARY)
    assert result.broken == {}
    assert result.schedules > result.ends > 20


@pytest.mark.parametrize("scene", ["buy", "cap-end"])
def test_no_stall_breaks_anything(scene: str) -> None:
    """The same with one switch and everybody standing still beyond a lease, at any call and at any look at a clock."""
    assert search(scene, 0, STALLED).broken == {}


def test_a_release_that_is_taken_over_and_called_off_buys_nothing_too_many() -> None:
    """Two switches and a stall: the one that took over looks again, and asks for the pool's size as it is by then."""
    assert search("release", 0, Bounds(switches=2, stalls=1, deaths=0, stalls_s=(62.0,))).broken == {}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some order shows each of these faults, and its schedule shows it again."""
    bug, scene, bounds = PLANTED[name]
    plant(bug, monkeypatch.setattr)
    broken = search(scene, 0, bounds, first_broken=True).broken
    assert broken
    text, schedule = next(iter(broken.items()))
    assert f"broken: {text}" in replayed(schedule)


def test_merging_loses_nothing() -> None:
    """A search by states counts as many schedules, and comes to the same ends, as walking each schedule by itself."""
    bounds = Bounds(switches=2, stalls=0, deaths=1)
    merged, each = (Search(MAKE["buy"](), bounds, lambda whole, end, path: None) for _ in range(2))
    assert merged.run() == each.brute()
    assert _named(merged) == _named(each)


def _named(done: Search) -> set[object]:
    return {(done.wholes[end.whole].moment.changes, done.wholes[end.whole].key[1:], end.again) for end in done.ends}


@pytest.mark.parametrize("scene", MAKE)
def test_a_worker_is_a_function_of_its_answers(scene: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brought to the same point by its answers again and again, it makes the same calls: what the search rests on."""
    monkeypatch.setattr(lives, "KEPT", 0)
    one = Search(MAKE[scene](), Bounds(0, 0, 0), lambda whole, end, path: None)
    assert one.run() == 2
    assert one.lives.replays > 50


def test_a_schedule_is_read_as_it_was_written() -> None:
    """A schedule's line says the worker, its calls, the time that passes first, and where it dies."""
    line = "A:3 B+62:2 A:1 A! B:4"
    assert written(read(line)) == line
