"""`pilotlight replay` as a person types it."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pilotlight.cli.main import EXIT_BAD_INPUT, build
from pilotlight.cli.main import run as main
from pilotlight.errors import Reject

HEADER = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\n"
ROWS = [f"j{i},{i * 700},{500 + i * 90},{(1, 1, 4, 16)[i % 4]},1000,V100|A100,team,,\n" for i in range(12)]

REPORTED = {
    "policy", "trace", "cost_usd", "cost_per_gpu_hour_usd", "gpu_hours", "utilization", "wait_s", "delay_s",
    "launches", "terminations", "interruptions", "lost_gpu_hours", "bound_usd", "x_integral",
}  # fmt: skip


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Twelve jobs, among them gangs."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "".join(ROWS)).encode()))
    return path


def replay(*words: str | Path) -> str:
    """What the command prints; raises what it raises."""
    typed = ["replay", *map(str, words)]
    result = CliRunner().invoke(build(typed), typed, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_is_the_documented_report(trace: Path) -> None:
    """One object with exactly the documented keys; its ratios agree with its sums."""
    got = json.loads(replay(trace, "--json"))
    assert set(got) == REPORTED
    assert set(got["wait_s"]) == {"mean", "p50", "p95", "p99", "max"}
    assert set(got["delay_s"]) == {"mean", "p95"}
    assert set(got["bound_usd"]) == {"fluid", "integral"}
    assert (got["policy"], got["trace"]) == ("pilotlight", "t.csv.gz")
    assert got["x_integral"] == pytest.approx(got["cost_usd"] / got["bound_usd"]["integral"])
    assert got["cost_per_gpu_hour_usd"] == pytest.approx(got["cost_usd"] / got["gpu_hours"])
    assert got["bound_usd"]["fluid"] <= got["bound_usd"]["integral"] <= got["cost_usd"]


def test_against_is_a_list_with_pilotlight_first(trace: Path) -> None:
    """Peers follow in the order asked for, on the same trace and bound."""
    got = json.loads(replay(trace, "--against", "keda", "--against", "always-on", "--json"))
    assert [r["policy"] for r in got] == ["pilotlight", "keda", "always-on"]
    assert len({json.dumps(r["bound_usd"]) for r in got}) == 1


def test_without_json_it_is_a_table(trace: Path) -> None:
    """People get a table with the bound in its title."""
    shown = replay(trace)
    assert "12 jobs" in shown
    assert "pilotlight" in shown


def test_the_log_has_every_job_and_node(trace: Path, tmp_path: Path) -> None:
    """One JSON object a line, in time order: launches, readies, starts, stops, terminations."""
    log = tmp_path / "log.jsonl"
    got = json.loads(replay(trace, "--json", "--log", log))
    records = [json.loads(line) for line in log.read_text().splitlines()]
    count = {
        name: sum(r["event"] == name for r in records) for name in ("launch", "ready", "start", "stop", "terminate")
    }
    assert (count["launch"], count["terminate"]) == (got["launches"], got["terminations"])
    assert count["start"] == count["stop"] == 12
    assert [r["t"] for r in records] == sorted(r["t"] for r in records)
    assert {"t", "event", "node", "type", "capacity_type"} == set(records[0])


def test_the_report_is_one_page(trace: Path, tmp_path: Path) -> None:
    """--report writes a page that names the trace and fetches nothing."""
    page = tmp_path / "out" / "r.html"
    replay(trace, "--against", "keda", "--report", page)
    html = page.read_text()
    assert "t.csv.gz: 12 jobs" in html
    assert 'src="http' not in html
    assert "<script src" not in html


def test_sqlite_and_memory_agree(trace: Path) -> None:
    """--state changes no figure."""
    assert replay(trace, "--json", "--state", "sqlite") == replay(trace, "--json", "--state", "memory")


OPTIONS: dict[str, Sequence[str]] = {
    "spot": ("--capacity-type", "spot"),
    "a shortage": ("--capacity-type", "spot", "--shortage", "0.4", "--seed", "3"),
    "gates": ("--placement", "gated"),
    "no placement": ("--placement", "none"),
    "a slow boot": ("--boot-seconds", "900"),
    "a late event": ("--detect-seconds", "120"),
}


@pytest.mark.parametrize("words", OPTIONS.values(), ids=OPTIONS.keys())
def test_every_option_runs_and_differs(words: Sequence[str], trace: Path) -> None:
    """Each option changes the outcome, and every job ends under it."""
    plain, got = (json.loads(replay(trace, "--json", *more)) for more in ((), words))
    assert got["gpu_hours"] == pytest.approx(plain["gpu_hours"])
    assert got != plain


def bad_trace(tmp_path: Path, row: str) -> Path:
    """A trace whose second job is wrong."""
    path = tmp_path / "bad.csv"
    path.write_text(HEADER + ROWS[0] + row + ROWS[2])
    return path


ROWS_REFUSED = {
    "a job without GPUs": ("j1,0,100,0,1000,,,,\n", "line 3: gpus is '0'"),
    "a NaN": ("j1,0,nan,1,1000,,,,\n", "line 3: duration_s is 'nan'"),
    "a negative submit": ("j1,-5,100,1,1000,,,,\n", "line 3: submit_s is '-5'"),
    "a missing field": ("j1,0,100\n", "line 3: 3 fields"),
    "a job named twice": ("j0,0,100,1,1000,,,,\n", "line 3: job_id 'j0' is there twice"),
    "a share of many GPUs": ("j1,0,100,2,500,,,,\n", "line 3: gpu_milli is 500 with 2 gpus"),
}


@pytest.mark.parametrize(("row", "words"), ROWS_REFUSED.values(), ids=ROWS_REFUSED.keys())
def test_a_bad_row_is_named_by_its_line(row: str, words: str, tmp_path: Path) -> None:
    """A trace with one bad row is refused whole, in words that name file and line."""
    with pytest.raises(Reject) as refused:
        replay(bad_trace(tmp_path, row))
    assert str(refused.value).startswith(f"bad.csv {words}")


def said(words: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    """The exit code and stderr of the whole program."""
    monkeypatch.setattr("sys.argv", ["pilotlight", "replay", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code, capsys.readouterr().err


BAD_INPUT: dict[str, tuple[list[str], str]] = {
    "a trace that is not there": (["nowhere.csv"], "nowhere.csv"),
    "a folder for a trace": (["."], "cannot be read"),
    "an unknown peer": (["TRACE", "--against", "carpenter"], "choose from always-on"),
    "a policy that is not there": (["TRACE", "--policy", "nowhere.yaml"], "nowhere.yaml"),
    "a catalogue that is not there": (["TRACE", "--catalog", "nowhere.yaml"], "nowhere.yaml"),
    "a log that cannot be written": (["TRACE", "--log", "no/such/folder/l.jsonl"], "name a file that can be written"),
}


@pytest.mark.parametrize(("words", "told"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_is_one_line_and_exit_2(
    words: list[str],
    told: str,
    trace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2, and one line on stderr that names what is wrong; no traceback."""
    monkeypatch.chdir(tmp_path)
    code, err = said([str(trace) if w == "TRACE" else w for w in words], monkeypatch, capsys)
    (line,) = [text for text in err.splitlines() if text.startswith("error: ")]
    assert code == EXIT_BAD_INPUT
    assert told in line
    assert "Traceback" not in err


WRONG_OPTIONS = {
    "a shortage of 2": ("--shortage", "2"),
    "a negative boot": ("--boot-seconds", "-1"),
    "a placement that is none": ("--placement", "magic"),
    "a state that is none": ("--state", "redis"),
}


@pytest.mark.parametrize("words", WRONG_OPTIONS.values(), ids=WRONG_OPTIONS.keys())
def test_wrong_options_exit_2(
    words: Sequence[str], trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option out of its range is refused by name before anything runs."""
    code, err = said([str(trace), *words], monkeypatch, capsys)
    assert code == EXIT_BAD_INPUT
    assert words[0] in err
    assert "Traceback" not in err
