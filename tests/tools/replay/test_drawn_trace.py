"""Drawing a trace: the same seed draws the same, and the drawn week is like the real one."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.traces.drawn_trace import synthesise
from pilotlight.tools.replay.traces.trace_file import read_trace, window
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.tools.replay.traces.trace_stats import measure, read_stats

DATA = Path(__file__).parents[3] / "data"
WEEK = read_stats((DATA / "philly_week.stats.json").read_bytes(), "week")
CATALOG = read_catalog((DATA / "catalogs" / "replay.yaml").read_bytes(), "replay.yaml")
SEEDS = (0, 1, 2)

JOBS = st.builds(
    Job,
    job_id=st.just(""),
    submit_s=st.integers(0, 20_000).map(float),
    duration_s=st.integers(0, 100_000).map(float),
    gpus=st.sampled_from([1, 16]),
    gpu_milli=st.just(1000),
    models=st.sampled_from([(), ("T4",)]),
    team=st.sampled_from(["", "a", "b"]),
)


def test_a_seed_draws_the_same_trace_again() -> None:
    """Equal statistics and seed give equal jobs; another seed gives others."""
    assert synthesise(WEEK, 3) == synthesise(WEEK, 3) != synthesise(WEEK, 4)


@given(jobs=st.lists(JOBS, min_size=1, max_size=40), seed=st.integers())
def test_a_drawn_trace_has_the_jobs_of_its_statistics(jobs: list[Job], seed: int) -> None:
    """For any trace: as many jobs of every shape, in order of submit, each with its own id and a second or more."""
    stats = measure(sorted(jobs, key=lambda job: job.submit_s), source="", citation="", licence="")
    drawn = synthesise(stats, seed)
    assert Counter((j.gpus, j.models) for j in drawn) == Counter((j.gpus, j.models) for j in jobs)
    assert [j.submit_s for j in drawn] == sorted(j.submit_s for j in drawn)
    assert len({j.job_id for j in drawn}) == len(jobs)
    assert all(j.submit_s >= 0 and j.duration_s >= 1 for j in drawn)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_drawn_week_holds_the_work_of_the_measured_one(seed: int) -> None:
    """Jobs are as many, and GPU-hours within 3 % of what was measured."""
    drawn = synthesise(WEEK, seed)
    assert len(drawn) == WEEK.jobs
    assert sum(job.gpu_seconds for job in drawn) / 3600 == pytest.approx(WEEK.gpu_hours, rel=0.03)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_drawn_week_is_as_dear_and_as_peaked_as_the_real_one(shelf: Path, seed: int) -> None:
    """Its lower bounds are within 3 % of the real week's, and the most GPUs in use at once within 10 %."""
    real = window(read_trace(shelf / "traces" / "philly_dev.csv.gz"), 7, 14)
    drawn = synthesise(WEEK, seed)
    assert float(bounds(drawn, CATALOG).integral) == pytest.approx(float(bounds(real, CATALOG).integral), rel=0.03)
    assert peak(drawn) == pytest.approx(peak(real), rel=0.10)


def peak(jobs: tuple[Job, ...]) -> int:
    """The most GPUs in use at once when no job waits."""
    changes = sorted(
        [(j.submit_s, j.gpus) for j in jobs] + [(j.submit_s + j.duration_s, -j.gpus) for j in jobs],
    )
    in_use = most = 0
    for _, gpus in changes:
        in_use += gpus
        most = max(most, in_use)
    return most
