"""`pilotlight synth`, `stats` and `trace` as a person types them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.errors import BadInput
from pilotlight.tools.cli.main import build
from pilotlight.tools.replay.traces.trace_file import read_trace

TRACE = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\n" + "".join(
    f"j{i},{i * 86400},3600,1,1000,V100,team,,\n" for i in range(4)
)


def run(*words: str) -> str:
    """What a command prints; its error is raised."""
    result = CliRunner().invoke(build(list(words)), list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Four jobs, one a day."""
    path = tmp_path / "t.csv"
    path.write_text(TRACE)
    return path


def test_synth_draws_the_built_in_week(tmp_path: Path) -> None:
    """With no statistics named, a seed draws the built-in week, byte for byte the same each time."""
    first, again = tmp_path / "a.csv.gz", tmp_path / "b.csv.gz"
    assert json.loads(run("synth", "--seed", "1", "-o", str(first), "--json"))["jobs"] == 10_374
    run("synth", "--seed", "1", "-o", str(again))
    assert first.read_bytes() == again.read_bytes()
    assert len(read_trace(first)) == 10_374


def test_synth_follows_what_stats_measured(tmp_path: Path, trace: Path) -> None:
    """A trace measured by stats is drawn by synth with as many jobs."""
    run("stats", str(trace), "-o", str(tmp_path / "s.json"))
    run("synth", "--like", str(tmp_path / "s.json"), "-o", str(tmp_path / "d.csv"))
    assert len(read_trace(tmp_path / "d.csv")) == 4


def test_stats_measures_only_the_days_asked_for(trace: Path) -> None:
    """Days 1 to 3 of four daily jobs hold two."""
    assert json.loads(run("stats", str(trace), "--days", "1-3", "--json"))["jobs"] == 2


def test_stats_shows_a_table(trace: Path) -> None:
    """Without --json a person reads jobs and GPU-hours."""
    shown = run("stats", str(trace))
    assert "gpu hours" in shown
    assert "1 h" in shown or "60 min" in shown


@pytest.mark.parametrize("days", ["7", "3-1", "a-b", "-1-2", "nan-nan", "1-inf"])
def test_days_that_are_none_are_refused(trace: Path, days: str) -> None:
    """A span that cannot be is bad input."""
    with pytest.raises(BadInput, match="--days is"):
        run("stats", str(trace), f"--days={days}")


def test_days_without_jobs_are_refused(trace: Path) -> None:
    """Nothing can be measured where no job came."""
    with pytest.raises(BadInput, match="no jobs on days 40-41"):
        run("stats", str(trace), "--days", "40-41")


def test_trace_converts_a_public_original(tmp_path: Path) -> None:
    """An openb pod list becomes a trace that replay reads."""
    pods = tmp_path / "pods.csv"
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "p,4000,8192,1,220,T4,BE,Running,100,400,150\n"
    )
    figures = json.loads(run("trace", "--from", "openb", str(pods), "-o", str(tmp_path / "o.csv.gz"), "--json"))
    assert (figures["jobs"], figures["median_run_s"]) == (1, 250)
    assert read_trace(tmp_path / "o.csv.gz")[0].models == ("T4",)


def test_runs_are_shown_by_group_with_their_error(tmp_path: Path) -> None:
    """Twenty runs of a team, one after the other: the later ten are foretold, and the table says what the JSON says."""
    path = tmp_path / "r.csv"
    rows = "".join(f"j{i},{i * 1000},{60 if i % 2 else 120},1,1000,,ml,,\n" for i in range(20))
    path.write_text(TRACE.splitlines()[0] + "\n" + rows)
    found = json.loads(run("runs", str(path), "--json"))
    team = next(row for row in found["groups"] if row["group"] == "team ml")
    assert (team["seen"], team["p50_s"], team["p90_s"], team["foretold"]) == (20, 120, 120, 10)
    assert (team["under_p50"], team["under_p90"]) == (1, 1)
    assert found["by_narrowest"] == found["as_one"]
    shown = run("runs", str(path))
    assert "team ml" in shown
    assert "100.0%" in shown


def test_runs_of_too_few_jobs_say_so(trace: Path) -> None:
    """Four runs are no quantile: no group, no error, and the line says from how many on."""
    found = json.loads(run("runs", str(trace), "--json"))
    assert found["groups"] == []
    assert found["as_one"]["under_p90"] is None
    assert "fewer than 10" in run("runs", str(trace))


@pytest.mark.parametrize("words", [(), ("a.csv", "--prometheus", "http://127.0.0.1:1")], ids=["neither", "both"])
def test_runs_are_of_a_trace_or_of_a_prometheus(words: tuple[str, ...]) -> None:
    """One of them is named."""
    with pytest.raises(BadInput, match="one of them"):
        run("runs", *words)
