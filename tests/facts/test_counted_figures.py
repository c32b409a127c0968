"""What is counted for the figures: every duration has one place, and sums only rise."""

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
