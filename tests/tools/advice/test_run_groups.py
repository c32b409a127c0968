"""Run lengths and use by group: each is judged by what followed, and nothing is known before it has ended."""

from math import nan

from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.demand.run_lengths import ENOUGH
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.tools.advice.run_groups import hourly_activity, run_lengths
from pilotlight.tools.replay.traces.trace_job import Job


def job(n: int, submit_s: float, duration_s: float, team: str = "", group: str = "") -> Job:
    """A job of one GPU."""
    return Job(job_id=f"j{n}", submit_s=submit_s, duration_s=duration_s, gpus=1, team=team, group=group)


def test_a_group_is_judged_by_what_followed_alone() -> None:
    """Ten runs of 100 s in their turn, then four of which one is longer: three in four are under its quantiles."""
    lengths = [100.0] * ENOUGH + [50.0, 900.0, 60.0, 70.0]
    found = run_lengths(job(n, 1000.0 * n, length, team="ml") for n, length in enumerate(lengths))
    team = next(row for row in found.rows if row.name == "team ml")
    assert (team.seen, team.quantiles[0]) == (len(lengths), 100.0)
    assert (team.later.runs, team.later.under) == (4, (3 / 4, 3 / 4))
    assert found.narrowest == found.as_one


def test_a_run_that_is_not_over_foretells_nothing() -> None:
    """Thirty that begin before any of them has ended: nothing is known of any, and their quantiles are at the end."""
    found = run_lengths(job(n, float(n), 100.0, team="ml", group="app") for n in range(30))
    assert {row.later.runs for row in found.rows} == {0}
    assert {row.name for row in found.rows} == {"app app", "team ml 1x1000", "team ml", "shape 1x1000", "all"}


@given(st.lists(st.floats(1, 1e5), min_size=ENOUGH + 1, max_size=40))
def test_what_comes_last_is_in_no_answer_before_it(lengths: list[float]) -> None:
    """One job more is one judged more; the shares of the others stay."""
    jobs = [job(n, 2e5 * n, length) for n, length in enumerate(lengths)]
    whole, cut = run_lengths(jobs).as_one, run_lengths(jobs[:-1]).as_one
    assert whole.runs == cut.runs + 1
    assert round(whole.under[0] * whole.runs - cut.under[0] * cut.runs, 6) in (0, 1)


def test_use_is_of_hours_that_were_measured() -> None:
    """Eleven hours at 40 % and one at 90 %: of two later hours one is under P50; a pod not measured is in no group."""
    activity = [value for hour in (*(0.4,) * 11, 0.9) for value in (hour,) * 6]
    gone = [nan] * len(activity)
    seen = GpuSeries(pod="a/x-0", activity=activity, memory=gone)
    unseen = GpuSeries(pod="a/y-0", activity=gone, memory=gone)
    found = hourly_activity(Telemetry(start_s=0, step_s=600, series=(seen, unseen)), lambda pod: pod[:3])
    rows = {row.name: (row.seen, row.quantiles[0]) for row in found.rows}
    assert rows == dict.fromkeys(("all", "owner a/x", "pod a/x-0"), (12, 40.0))
    assert (found.as_one.runs, found.as_one.under) == (2, (0.5, 0.5))
