"""Public traces in their owners' formats become jobs that name nobody."""

import json
from pathlib import Path
from typing import Any

import pytest

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.errors import BadInput
from pilotlight.tools.replay.traces.public_traces import convert_openb, convert_philly
from pilotlight.tools.replay.traces.trace_file import read_trace, write_trace
from pilotlight.tools.replay.traces.trace_job import Job

CATALOG_FILE = Path(__file__).parents[3] / "data" / "catalogs" / "replay.yaml"
CATALOG = read_catalog(CATALOG_FILE.read_bytes(), CATALOG_FILE.name)
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, Any]:
    """One scheduling attempt on machines with so many GPUs each."""
    machines = [{"ip": f"m{i}", "gpus": [f"gpu{g}" for g in range(n)]} for i, n in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": machines}


def philly(folder: Path, submitted: str | None, *attempts: dict[str, Any]) -> tuple[Job, ...]:
    """What becomes of a job log of one job, after a job of one hour submitted at midnight."""
    first = attempt("2017-10-07 00:00:10", "2017-10-07 01:00:10", 1)
    log = [
        {"status": "Pass", "vc": "v", "jobid": "a1", "attempts": [first], "submitted_time": "2017-10-07 00:00:00"},
        {"status": "Pass", "vc": "v", "jobid": "a2", "attempts": attempts, "submitted_time": submitted, "user": "eve"},
    ]
    path = folder / "cluster_job_log"
    path.write_text(json.dumps(log))
    return convert_philly(path)


def test_a_philly_job_runs_for_the_sum_of_its_attempts(tmp_path: Path) -> None:
    """Run times of all attempts add up; the largest attempt's GPUs on all machines count."""
    attempts = (
        attempt("2017-10-07 01:00:00", "2017-10-07 01:01:00", 8),
        attempt("2017-10-07 02:00:00", "2017-10-07 02:00:30", 8, 8),
    )
    job = philly(tmp_path, "2017-10-07 00:30:00", *attempts)[1]
    assert (job.submit_s, job.duration_s, job.gpus, job.models) == (1800, 90, 16, ("V100", "A100"))


@pytest.mark.parametrize(
    ("submitted", "attempts"),
    [
        pytest.param("2017-10-07 00:30:00", [], id="never scheduled"),
        pytest.param("2017-10-07 00:30:00", [attempt("2017-10-07 01:00:00", None, 1)], id="still running"),
        pytest.param("2017-10-07 00:30:00", [attempt("None", "2017-10-07 01:00:00", 1)], id="start not logged"),
        pytest.param("None", [attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00", 1)], id="submit not logged"),
        pytest.param("2017-10-07 00:30:00", [attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00")], id="no GPU"),
    ],
)
def test_a_philly_job_without_a_measured_run_is_left_out(
    tmp_path: Path, submitted: str, attempts: list[dict[str, Any]]
) -> None:
    """Only jobs that are known to have run on GPUs remain."""
    assert len(philly(tmp_path, submitted, *attempts)) == 1


def test_no_name_of_the_original_is_left(tmp_path: Path) -> None:
    """Job ids are renumbered, users gone, and virtual clusters hashed to six digits."""
    jobs = philly(tmp_path, "2017-10-07 00:30:00", attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00", 1))
    assert [job.job_id for job in jobs] == ["j000000", "j000001"]
    assert len({job.team for job in jobs}) == 1
    assert len(jobs[0].team) == 6
    assert jobs[0].team != "v"


@pytest.mark.parametrize(
    ("row", "job"),
    [
        pytest.param("p,4000,8192,1,220,,BE,Running,100,400,150", (250, 1, 220, "T4 A10G V100 A100"), id="a share"),
        pytest.param("p,4000,8192,8,1000,G3,LS,Running,100,400,150", (250, 8, 1000, "A100"), id="eight G3"),
        pytest.param("p,4000,8192,1,1000,V100M16|V100M32,LS,F,0,9,1", (8, 1, 1000, "V100"), id="both kinds of V100"),
        pytest.param("p,4000,8192,1,1000,P100|G2,LS,F,0,9,1", (8, 1, 1000, "A10G V100"), id="models by other names"),
        pytest.param("p,4000,8192,2,1000,T4,LS,F,0,9,1", (8, 2, 1000, "T4 A10G V100 A100"), id="two T4: any model"),
        pytest.param("p,4000,8192,2,500,nan,LS,F,0,9,1", (8, 2, 1000, "T4 A10G V100 A100"), id="two GPUs are whole"),
    ],
)
def test_an_openb_pod_becomes_a_job(tmp_path: Path, row: str, job: tuple[float, int, int, str]) -> None:
    """It runs from its scheduling to its deletion, on the catalogue's models that its own names stand for."""
    path = tmp_path / "pods.csv"
    path.write_text(OPENB + row + "\n")
    (got,) = convert_openb(path, CATALOG)
    assert (got.duration_s, got.gpus, got.gpu_milli, " ".join(got.models)) == job


def test_openb_pods_without_a_gpu_or_a_run_are_left_out(tmp_path: Path) -> None:
    """CPU pods, pods never scheduled, and pods deleted at once are no jobs; equal requests share a group."""
    rows = [
        "cpu,4000,8192,0,0,,LS,Running,0,9,1",
        "pending,4000,8192,1,1000,,LS,Pending,0,9,",
        "gone,4000,8192,1,1000,,LS,Failed,0,9,9",
        "one,4000,8192,1,1000,,LS,Running,50,90,60",
        "two,4000,8192,1,1000,,LS,Running,70,99,80",
    ]
    path = tmp_path / "pods.csv"
    path.write_text(OPENB + "\n".join(rows))
    jobs = convert_openb(path, CATALOG)
    assert [job.submit_s for job in jobs] == [0, 20]
    assert jobs[0].group == jobs[1].group != ""


def test_what_is_converted_is_a_trace(tmp_path: Path) -> None:
    """A converted file is one that a replay reads."""
    jobs = philly(tmp_path, "2017-10-07 00:30:00", attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00", 1))
    write_trace(jobs, tmp_path / "t.csv.gz")
    assert read_trace(tmp_path / "t.csv.gz") == jobs


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        pytest.param("", "not Philly's cluster_job_log", id="an empty file"),
        pytest.param('{"vc": 1}', "not Philly's cluster_job_log", id="an object"),
        pytest.param('[{"vc": "v", "submitted_time": "soon"}]', "job 0: 'soon' is not a time", id="no time"),
        pytest.param("[]", "holds no job that ran", id="no jobs"),
    ],
)
def test_what_is_no_philly_log_is_refused(tmp_path: Path, content: str, refusal: str) -> None:
    """One line names the file and what is wrong."""
    path = tmp_path / "log.json"
    path.write_text(content)
    with pytest.raises(BadInput, match=refusal) as caught:
        convert_philly(path)
    assert str(caught.value).startswith("log.json: ")


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        pytest.param("name,num_gpu\n", "no column cpu_milli", id="another table"),
        pytest.param(OPENB + "p,4000,8192,x,1000,,LS,F,0,9,1\n", "line 2: num_gpu is 'x'", id="GPUs in words"),
        pytest.param(OPENB + "p,4000,8192,1,1000,,LS,F,-4,9,1\n", "creation_time is '-4'", id="a negative time"),
        pytest.param(OPENB + "p,4000,8192,1,inf,,LS,F,0,9,1\n", "gpu_milli is 'inf'", id="an endless share"),
        pytest.param(OPENB + "p,4000,8192,1,1200,,LS,F,0,9,1\n", "gpu_milli is 1200", id="a share over a GPU"),
        pytest.param(OPENB, "holds no job that ran", id="no pods"),
    ],
)
def test_what_is_no_openb_list_is_refused(tmp_path: Path, content: str, refusal: str) -> None:
    """One line names the file, the line and what is wrong."""
    path = tmp_path / "pods.csv"
    path.write_text(content)
    with pytest.raises(BadInput, match=refusal) as caught:
        convert_openb(path, CATALOG)
    assert str(caught.value).startswith("pods.csv")
