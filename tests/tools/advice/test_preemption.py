"""Run lengths foretold by group, and advice on preemption with its reasons; nothing is known before it has ended."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import run_lengths as bench
from pilotlight.decide.demand.run_lengths import ENOUGH
from pilotlight.decide.interruption.preemption import Contender, Queue, should_preempt
from pilotlight.tools.advice.run_quantiles import KEPT, RunLengths, measure_error

PRICE = Decimal("3.06")


def waiting(left_s: float, priority: int = 10, gpus: int = 1, never: bool = False) -> Contender:
    """A job that waits."""
    return Contender("short", priority, left_s, gpus, PRICE, never_preempts=never)


def running(left_s: float, priority: int = 1, unsaved_s: float = 0) -> Contender:
    """A job that runs on one GPU."""
    return Contender("long", priority, left_s, 1, PRICE, unsaved_s, restart_s=60)


CASES = {
    "29 of 100 hours": (waiting(29 * 3600), running(100 * 3600), True, "waiting costs"),
    "30 of 100 hours": (waiting(30 * 3600), running(100 * 3600), False, "not under 0.3"),
    "the same priority": (waiting(60), running(1e6, priority=10), False, "has priority 10"),
    "a lower priority": (waiting(60, priority=1), running(1e6, priority=2), False, "has priority 2"),
    "a class that never preempts": (waiting(60, never=True), running(1e6), False, "never preempts"),
    "more GPUs than the other holds": (waiting(60, gpus=2), running(1e6), False, "needs 2"),
    "a day of work would be lost": (waiting(60), running(7200, unsaved_s=86_400), False, "preempting $"),
}


@pytest.mark.parametrize(("one", "other", "preempt", "why"), CASES.values(), ids=CASES)
def test_preemption_is_advised_with_its_reason(one: Contender, other: Contender, preempt: bool, why: str) -> None:
    """By priority, then by the time left, then by what it costs both ways."""
    found = should_preempt(one, other, Decimal(1))
    assert found.preempt == preempt
    assert why in found.why


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(0, 3), st.integers(0, 3), st.floats(0, 1e5))
def test_preemption_never_costs_more_than_waiting(one: float, other: float, a: int, b: int, unsaved: float) -> None:
    """And never for the same or a higher priority."""
    found = should_preempt(waiting(one, a), running(other, b, unsaved), Decimal(2))
    if found.preempt:
        assert a > b
        assert found.preempting_usd < found.waiting_usd


def test_who_is_served_soon_anyway_preempts_nobody() -> None:
    """A place that comes free by itself within minutes makes waiting cheap, however long the other still runs."""
    one, other = waiting(600), running(10 * 3600)
    assert should_preempt(one, other, Decimal(5)).waiting_usd == 50
    soon = should_preempt(one, other, Decimal(5), Queue(next_s=600))
    assert not soon.preempt
    assert soon.waiting_usd == Decimal("0.83")


def test_who_leaves_pays_for_its_turn_behind_those_who_wait() -> None:
    """Its new pod waits behind others of its priority; at ten times the worth the urgent one still goes first."""
    one, other, queue = waiting(600), running(10 * 3600), Queue(next_s=2 * 3600, behind_s=3 * 3600)
    assert should_preempt(one, other, Decimal(5), Queue(next_s=2 * 3600)).preempt
    assert not should_preempt(one, other, Decimal(5), queue).preempt
    assert should_preempt(one, other._replace(worth=Decimal(5)), Decimal(50), queue).preempt


def test_a_group_answers_once_it_has_enough_and_a_wider_one_before() -> None:
    """The narrowest with ten ended runs; nothing where nothing has ended."""
    known = RunLengths()
    assert known.foretold(("app", "all")) is None
    for _ in range(ENOUGH):
        known.learn(("other", "all"), 100.0)
    assert known.foretold(("app", "all")) == ((100.0, 100.0), "all", ENOUGH)
    for _ in range(ENOUGH):
        known.learn(("app", "all"), 7.0)
    assert known.foretold(("app", "all")) == ((7.0, 7.0), "app", ENOUGH)


def test_what_has_run_longer_than_its_like_is_asked_of_what_ran_longer() -> None:
    """Given so much, only runs over that count."""
    known = RunLengths()
    for length in range(1, 41):
        known.learn(("all",), float(length))
    found = known.foretold(("all",), ran_s=20)
    assert found is not None
    assert (found.lengths_s[0], found.runs) == (31.0, 20)
    assert known.foretold(("all",), ran_s=40) is None


@given(st.lists(st.floats(0, 1e6), min_size=ENOUGH, max_size=60))
def test_quantiles_are_of_what_was_seen(lengths: list[float]) -> None:
    """In order, each a length that was; and only the last thousand count."""
    known = RunLengths()
    for length in lengths:
        known.learn(("all",), length)
    found = known.foretold(("all",))
    assert found is not None
    assert set(found.lengths_s) <= set(lengths)
    assert found.lengths_s[0] <= found.lengths_s[1]
    for _ in range(KEPT):
        known.learn(("all",), 5.0)
    assert known.foretold(("all",)) == ((5.0, 5.0), "all", KEPT)


def test_its_error_is_what_it_was_off() -> None:
    """Two runs under P50 and one far over: two in three, and half of them off by a factor of two."""
    known = RunLengths()
    for _ in range(ENOUGH):
        known.learn(("all",), 100.0)
    found = known.foretold(("all",))
    assert found is not None
    told = measure_error([(found, 50.0), (found, 100.0), (found, 1000.0)])
    assert (told.runs, told.under, told.factor) == (3, (2 / 3, 2 / 3), 2.0)


def test_groups_foretell_better_than_all_jobs_as_one(shelf: Path) -> None:
    """On a recorded cluster: nine in ten are under P90, within a twentieth, and P50 is off by less by group."""
    by_group, as_one = bench.jobs_rows(shelf / "traces" / "openb_dev.csv.gz")
    assert by_group["factor"] < as_one["factor"]
    assert by_group["under"][1] >= 0.8
