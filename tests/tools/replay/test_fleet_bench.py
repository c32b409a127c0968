"""`bench/replays/fleet_at_quota.py`: a week of article 003's fleet, and what each lever changes of its jobs."""

import fleet_at_quota as bench
from fleet_at_quota import NOTEBOOKS, REPLICAS, played, row_of
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.units import HOUR


def _hours(jobs: list[Job], team: str) -> float:
    return sum(job.gpu_seconds for job in jobs if job.team == team) / HOUR


def test_each_lever_changes_its_own_class_alone() -> None:
    """Reclaim shortens notebooks, sharing quarters them, serving follows its load; training is the same week."""
    plain, every = played(0), played(0, reclaimed=True, shared=True, follows=True)
    assert _hours(plain, "notebook") == NOTEBOOKS * 168
    assert _hours(every, "notebook") == NOTEBOOKS * 5 * 10 / 4
    assert _hours(plain, "serving") == REPLICAS * 168
    assert _hours(every, "serving") == REPLICAS / 2 * (168 + 7 * 12)
    assert [j for j in plain if j.team == "training"] == [j for j in every if j.team == "training"]


def test_a_fleet_that_is_always_on_costs_the_same_whatever_runs() -> None:
    """Its bill is nodes times hours; lit for jobs alone it is less, and no training job waits longer for it."""
    week = [job for job in played(0) if job.team != "training"] + [
        job for job in played(0) if job.job_id.startswith("training-0-")
    ][:5]
    fixed, lit = (row_of("", sorted(week, key=lambda job: job.submit_s), always_on=on) for on in (True, False))
    assert round(fixed.usd_a_month) == round(bench.PRICE * bench.NODES * bench.MONTH_H)
    assert lit.usd_a_month < fixed.usd_a_month
    assert (lit.wait_h, lit.p95_h) == (fixed.wait_h, fixed.p95_h)
