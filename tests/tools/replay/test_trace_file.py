"""Trace files: strict reading, reproducible writing, windows, and the types a job may use."""

import gzip
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.errors import BadInput
from pilotlight.tools.replay.traces.trace_file import COLUMNS, read_trace, refuse_crowd, types_for, window, write_trace
from pilotlight.tools.replay.traces.trace_job import Job

CATALOG = Path(__file__).parents[3] / "data" / "catalogs" / "replay.yaml"
HEADER = ",".join(COLUMNS)
GOOD = "j1,10,60,1,1000,T4|A100,team,LS,g"

WORDS = st.text("abc-_é ", max_size=6)
SECONDS = st.integers(0, 10**8).map(float) | st.floats(0, 10**8, allow_nan=False)
JOBS = st.builds(
    Job,
    job_id=st.text("abc019-_", min_size=1, max_size=6),
    submit_s=SECONDS,
    duration_s=SECONDS,
    gpus=st.integers(1, 64),
    models=st.sampled_from([(), ("T4",), ("V100", "A100")]),
    team=WORDS,
    priority=WORDS,
    group=WORDS,
)


def written(folder: Path, *rows: str) -> Path:
    """A plain trace file with these rows under the header."""
    path = folder / "t.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_row_becomes_a_job(tmp_path: Path) -> None:
    """Every column lands in its field; models are cut at the bars."""
    assert read_trace(written(tmp_path, GOOD)) == (
        Job(
            job_id="j1",
            submit_s=10,
            duration_s=60,
            gpus=1,
            models=("T4", "A100"),
            team="team",
            priority="LS",
            group="g",
        ),
    )


def test_jobs_come_by_submit_and_then_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Rows out of order are sorted; equal moments keep the file's order."""
    rows = ["c,5,1,1,1000,,,,", "a,9,1,1,1000,,,,", "b,5,1,1,1000,,,,"]
    assert [job.job_id for job in read_trace(written(tmp_path, *rows))] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("row", "refusal"),
    [
        pytest.param("j2,10,abc,1,1000,,,,", "duration_s is 'abc': not a number of seconds", id="words for seconds"),
        pytest.param("j2,10,-5,1,1000,,,,", "duration_s is '-5': must be from 0", id="a negative run time"),
        pytest.param("j2,nan,5,1,1000,,,,", "submit_s is 'nan': must be from 0", id="a submit of NaN"),
        pytest.param("j2,10,inf,1,1000,,,,", "duration_s is 'inf': must be from 0", id="a run without end"),
        pytest.param("j2,10,5,0,1000,,,,", "gpus is '0': must be a whole number from 1", id="no GPUs"),
        pytest.param("j2,10,5,1.5,1000,,,,", "gpus is '1.5': must be a whole number", id="half a GPU in gpus"),
        pytest.param(
            "j2,10,5,100000,1000,,,,", "from 1 to 20000; mend or drop the row", id="more GPUs than a world has"
        ),
        pytest.param("j2,10,1e9,1,1000,,,,", "to 158112000 seconds; mend or drop the row", id="a run of a life"),
        pytest.param("j2,1e9,5,1,1000,,,,", "to 158112000 seconds; mend or drop the row", id="a submit in a life"),
        pytest.param("j2,10,5,1,0,,,,", "gpu_milli is '0': must be a whole number from 1", id="a share of nothing"),
        pytest.param("j2,10,5,1,1001,,,,", "gpu_milli is '1001'", id="a share over a GPU"),
        pytest.param("j2,10,5,2,500,,,,", "only 1 GPU can be shared", id="a share of two GPUs"),
        pytest.param("j1,10,5,1,1000,,,,", "job_id 'j1' is there twice", id="a job twice"),
        pytest.param(",10,5,1,1000,,,,", "job_id is empty", id="a job without an id"),
        pytest.param("j2,10,5", "3 fields where the header has 9", id="a row cut short"),
        pytest.param('j2,"10,5', "not CSV", id="a quote that is left open"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path: Path, row: str, refusal: str) -> None:
    """The error is one line with the file, the line and what is wrong."""
    with pytest.raises(BadInput) as caught:
        read_trace(written(tmp_path, GOOD, row))
    assert str(caught.value).startswith("t.csv line 3: ")
    assert refusal in str(caught.value)


def test_more_work_at_once_than_a_replay_can_hold_is_refused() -> None:
    """Three jobs of 20,000 GPUs that overlap are too many, by the job that makes them so; one after another are not."""
    jobs = [Job(job_id=name, submit_s=10 * n, duration_s=10, gpus=20_000) for n, name in enumerate("abc")]
    refuse_crowd(jobs, "t.csv")
    longer = [msgspec.structs.replace(job, duration_s=100.0) for job in jobs]
    with pytest.raises(
        BadInput, match="job c would make 60,000 GPUs at work at once, and a replay holds 50,000: drop rows"
    ):
        refuse_crowd(longer, "t.csv")


@pytest.mark.parametrize(
    ("name", "content", "refusal"),
    [
        pytest.param("t.csv", None, "name a file that can be read", id="a missing file"),
        pytest.param("t.csv", b"", "no column", id="an empty file"),
        pytest.param("t.csv", HEADER.encode(), "holds no jobs", id="only a header"),
        pytest.param("t.csv", b"job_id,submit_s\na,1", "no column duration_s", id="columns missing"),
        pytest.param("t.csv.gz", b"job_id", "not gzip", id="text under a gzip name"),
        pytest.param("t.csv.gz", gzip.compress(GOOD.encode() * 99)[:-20], "cut off gzip", id="a gzip cut off"),
        pytest.param("t.csv", b"\xff\xfe\x00", "not UTF-8", id="binary"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes | None, refusal: str
) -> None:
    """A file that cannot be a trace is bad input that names the file."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_trace(path)
    assert name in str(caught.value)
    assert refusal in str(caught.value)
    assert "\n" not in str(caught.value)


@given(jobs=st.lists(JOBS, min_size=1, max_size=5, unique_by=lambda job: job.job_id))
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, jobs: list[Job]) -> None:
    """Reading a written trace gives the same jobs, and writing it again the same bytes."""
    path = tmp_path_factory.mktemp("trace") / "t.csv.gz"
    write_trace(jobs, path)
    first = path.read_bytes()
    read = read_trace(path)
    assert read == tuple(sorted(jobs, key=lambda job: job.submit_s))
    write_trace(jobs, path)
    assert path.read_bytes() == first


def test_a_window_starts_its_clock_anew() -> None:
    """Days 1 to 2 keep the jobs submitted in them, counted from the first day's start, with whole run times."""
    day = 86_400.0
    jobs = [Job(job_id=str(at), submit_s=at, duration_s=9 * day, gpus=1) for at in (day - 1, day, 2 * day - 1, 2 * day)]
    assert [(job.submit_s, job.duration_s) for job in window(jobs, 1, 2)] == [(0, 9 * day), (day - 1, 9 * day)]


def test_the_second_week_of_philly_holds_its_jobs(shelf: Path) -> None:
    """Days 7 to 14 of the real trace are 10,374 jobs."""
    assert len(window(read_trace(shelf / "traces" / "philly_dev.csv.gz"), 7, 14)) == 10_374


@pytest.mark.parametrize(
    ("gpus", "models", "types"),
    [
        pytest.param(1, ("T4",), ("g4dn.xlarge",), id="one T4 on its only type"),
        pytest.param(1, ("V100", "A100"), ("p3.2xlarge", "p3.8xlarge", "p4d.24xlarge"), id="one of two models"),
        pytest.param(2, ("V100", "A100"), ("p3.8xlarge", "p4d.24xlarge"), id="two GPUs on nodes that have them"),
        pytest.param(16, ("V100", "A100"), ("p4d.24xlarge",), id="a gang on whole nodes of 8"),
        pytest.param(4, (), ("p3.8xlarge", "p4d.24xlarge"), id="no model named means any"),
        pytest.param(2, ("T4",), (), id="no node holds two T4"),
    ],
)
def test_a_job_may_use_the_types_of_its_models_that_hold_it(
    gpus: int, models: tuple[str, ...], types: tuple[str, ...]
) -> None:
    """A type serves when its model is allowed and it has min(gpus, 8) GPUs."""
    job = Job(job_id="j", submit_s=0, duration_s=1, gpus=gpus, models=models)
    assert types_for(job, read_catalog(CATALOG.read_bytes(), CATALOG.name)) == types
