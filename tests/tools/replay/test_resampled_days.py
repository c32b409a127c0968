"""Resampled traces: which days they have, and what they say of a recommendation."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.tools.replay.resampled_days import DAY_S, by_day, can_resample, resample
from pilotlight.tools.replay.traces.trace_job import Job


def job(name: str, submit_s: float) -> Job:
    """One of an hour."""
    return Job(job_id=name, submit_s=submit_s, duration_s=3600, gpus=1)


SUBMITS = st.lists(st.floats(0, 9 * DAY_S, exclude_max=True), max_size=40)


@given(SUBMITS, st.integers(0, 1000))
def test_each_day_of_a_resampled_trace_is_a_whole_day_of_the_trace(submits: list[float], seed: int) -> None:
    """With its jobs at their time of day, as many days as there were, in the order of submits, no id twice."""
    jobs = [job(f"j{n}", at) for n, at in enumerate(sorted(submits))]
    drawn = resample(jobs, seed)
    days = [Counter((one.job_id, round(one.submit_s % DAY_S, 3)) for one in day) for day in by_day(jobs)]
    for place, day in enumerate(by_day(drawn)):
        names = Counter((one.job_id.removesuffix(f"-day{place}"), round(one.submit_s % DAY_S, 3)) for one in day)
        assert names in days
    assert len(by_day(drawn)) <= len(days)
    assert len({one.job_id for one in drawn}) == len(drawn)
    assert [one.submit_s for one in drawn] == sorted(one.submit_s for one in drawn)


def test_a_seed_draws_the_same_days_again() -> None:
    """And another one others."""
    jobs = [job(f"j{n}", n * DAY_S) for n in range(9)]
    assert resample(jobs, 3) == resample(jobs, 3)
    assert resample(jobs, 3) != resample(jobs, 4)


@pytest.mark.parametrize(
    ("at", "can"),
    [
        pytest.param([], False, id="no jobs"),
        pytest.param([0, 1.5], False, id="two days"),
        pytest.param([0, 8], False, id="two days with jobs, a week apart"),
        pytest.param([0, 1, 8], True, id="three days with jobs"),
    ],
)
def test_a_trace_needs_three_days_with_jobs(at: list[float], can: bool) -> None:
    """Of fewer nothing else can be drawn."""
    assert can_resample([job(f"j{n}", day * DAY_S) for n, day in enumerate(at)]) is can
