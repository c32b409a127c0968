"""What is counted for the figures: every duration has one place, and sums only rise."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from pilotlight.facts.memory import BOUNDS, Tally


@given(st.lists(st.floats(-10, 1e6)))
def test_every_duration_is_counted_once(seconds: list[float]) -> None:
    """Up to a bound are those that are no longer than it; what two clocks make negative is zero."""
    tally = Tally()
    for each in seconds:
        tally = tally.count_duration("boot", each)
    if seconds:
        counts = tally.durations["boot"].counts
        for n, bound in enumerate(BOUNDS):
            assert sum(counts[: n + 1]) == sum(each <= bound for each in seconds)
        assert sum(counts) == len(seconds)
        assert abs(tally.durations["boot"].total_s - sum(max(0, each) for each in seconds)) < 1


@given(st.lists(st.floats(-10, 1e6), min_size=1))
def test_waits_of_bound_pods_are_kept_to_two_figures(seconds: list[float]) -> None:
    """Each is counted once; none is told as shorter than it was, nor as more than a tenth longer, or a second."""
    tally = Tally()
    for each in seconds:
        tally = tally.count_bound(each)
    kept = sorted(int(wait) for wait, count in tally.bound.items() for _ in range(count))
    assert len(kept) == len(seconds)
    for told, was in zip(kept, sorted(max(0, each) for each in seconds), strict=True):
        assert was <= told <= max(1.11 * was, was + 1)


def test_waits_of_bound_pods_are_of_one_day() -> None:
    """The first look of another day begins anew."""
    tally = Tally().count_look(date(2026, 7, 1), again=False).count_bound(12)
    assert tally.count_look(date(2026, 7, 1), again=False).bound == {"12": 1}
    assert tally.count_look(date(2026, 7, 2), again=False).bound == {}


def test_calls_and_refusals_are_counted_by_name() -> None:
    """Each name has its own sum."""
    tally = (
        Tally()
        .count_call("grow", "done")
        .count_call("grow", "done")
        .count_call("release", "denied")
        .count_refusal("Budget")
    )
    assert (tally.calls, tally.refusals) == ({"grow/done": 2, "release/denied": 1}, {"Budget": 1})


def test_a_decision_counts_once_for_each_verdict_in_it() -> None:
    """Ten pods that wait are one decision that lets pods wait; what was asked of the state adds up."""
    tally = (
        Tally()
        .count_decision(["waiting"] * 10 + ["bought"], {"read": 3})
        .count_decision(["waiting"], {"read": 1, "write": 2})
    )
    assert tally.verdicts == {"waiting": 2, "bought": 1}
    assert tally.operations == {"read": 4, "write": 2}
