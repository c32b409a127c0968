"""Statistics of a trace: what is measured, what is left out, and how a wrong file is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from pilotlight.errors import BadInput
from pilotlight.tools.replay.traces.trace_file import read_trace, window
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.tools.replay.traces.trace_stats import BURST_JOBS, SLOT_S, Stats, measure, read_stats, write_stats

WEEK = Path(__file__).parents[3] / "data" / "philly_week.stats.json"


def jobs_at(*submits: float, run_s: float = 100, gpus: int = 1, team: str = "blue") -> list[Job]:
    """Jobs of one shape."""
    return [
        Job(job_id=f"secret-{team}-{at}", submit_s=at, duration_s=run_s, gpus=gpus, team=team, group="eve")
        for at in submits
    ]


def measured(jobs: list[Job]) -> Stats:
    """Statistics of jobs of no source."""
    return measure(sorted(jobs, key=lambda job: job.submit_s), source="here", citation="none", licence="none")


@pytest.mark.parametrize(
    ("submits", "bursts"),
    [
        pytest.param([10 * i for i in range(8)], [8], id="eight jobs ten seconds apart are a burst"),
        pytest.param([10 * i for i in range(7)], [], id="seven are none"),
        pytest.param([61 * i for i in range(14)], [], id="jobs over a minute apart are none"),
        pytest.param([SLOT_S - 80 + 10 * i for i in range(16)], [8, 8], id="a burst ends with its slot"),
    ],
)
def test_jobs_in_quick_succession_are_a_burst(submits: list[float], bursts: list[int]) -> None:
    """Bursts are runs of at least so many jobs of one shape, within a slot; every other job is in the rest."""
    stats = measured(jobs_at(*submits))
    assert [burst.jobs for burst in stats.bursts] == bursts
    assert sum(n for rest in stats.rest for _, n in rest.slots) == len(submits) - sum(bursts)


def test_jobs_of_different_shapes_make_no_burst() -> None:
    """What teams or GPU counts ask for at the same time is measured apart."""
    stats = measured(jobs_at(*range(7)) + jobs_at(*range(7), gpus=2) + jobs_at(*range(7), team="red"))
    assert (stats.bursts, len(stats.shapes)) == ((), 3)


def test_long_jobs_are_measured_apart_from_short_ones() -> None:
    """One job of a month among jobs of a minute keeps its own mean."""
    stats = measured(jobs_at(0, 1000, 2000, run_s=60) + jobs_at(3000, run_s=2_600_000))
    assert [rest.duration_s.mean for rest in stats.rest] == [60, 2_600_000]


def test_statistics_name_no_job_person_or_team() -> None:
    """Ids, teams and groups of the trace are not in the file."""
    text = write_stats(measured(jobs_at(*range(BURST_JOBS)) + jobs_at(5000, team="red"))).decode()
    assert not [name for name in ("secret", "blue", "red", "eve") if f'"{name}' in text]


def test_statistics_are_read_as_they_were_written() -> None:
    """Reading what was written gives equal statistics."""
    stats = measured(jobs_at(*range(BURST_JOBS)) + jobs_at(5000, team="red"))
    assert read_stats(write_stats(stats), "s.json") == stats


def test_the_built_in_week_says_where_it_comes_from() -> None:
    """The week's file carries source, citation and licence, and its number of jobs."""
    stats = read_stats(WEEK.read_bytes(), WEEK.name)
    assert stats.jobs == 10_374
    assert "philly-traces" in stats.source
    assert "USENIX ATC 2019" in stats.citation
    assert stats.licence == "CC-BY-4.0"


def test_the_built_in_week_is_measured_on_the_real_one(shelf: Path) -> None:
    """Measuring days 7 to 14 of the real trace again gives the committed file."""
    week = read_stats(WEEK.read_bytes(), WEEK.name)
    real = window(read_trace(shelf / "traces" / "philly_dev.csv.gz"), 7, 14)
    assert measure(real, source=week.source, citation=week.citation, licence=week.licence) == week


def broken(**changes: Any) -> str:
    """A statistics file with some fields replaced."""
    content = json.loads(write_stats(measured(jobs_at(*range(BURST_JOBS)))))
    return json.dumps(content | changes)


QUANTILES = {"mean": 1.0, "points": [1.0]}


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        pytest.param("", "not statistics of a trace", id="an empty file"),
        pytest.param("{", "not statistics of a trace", id="a brace left open"),
        pytest.param("{}", "missing required field", id="no fields"),
        pytest.param(broken(extra=1), "unknown field extra", id="an unknown key"),
        pytest.param(broken(jobs=7), "jobs: is 7, but bursts and rest hold 8", id="a count that does not add up"),
        pytest.param(broken(shapes=[]), "names a shape that shapes does not hold", id="a burst of no shape"),
        pytest.param(broken(shapes=[{"gpus": 0}]), "gpus must be 1 or more", id="a shape without GPUs"),
        pytest.param(broken(slot_s=0), "slot_s", id="slots of no length"),
        pytest.param(
            broken(rest=[{"shape": 0, "slots": [[0, 10**12]], "duration_s": QUANTILES}]), "can be drawn", id="too many"
        ),
        pytest.param(
            broken(
                bursts=[], jobs=1, rest=[{"shape": 0, "slots": [[0, 1]], "duration_s": {"mean": -1, "points": [1]}}]
            ),
            "must hold points that are not negative",
            id="a negative mean",
        ),
        pytest.param(
            broken(bursts=[], jobs=1, rest=[{"shape": 0, "slots": [[0, 1]], "duration_s": {"mean": 1, "points": []}}]),
            "must hold points",
            id="no points",
        ),
    ],
)
def test_what_is_no_statistics_file_is_refused(text: str, refusal: str) -> None:
    """One line names the file and what is wrong."""
    with pytest.raises(BadInput, match=refusal) as caught:
        read_stats(text, "s.json")
    assert str(caught.value).startswith("s.json: ")
