"""`make chaos` and `make interruptions` as a person runs them: figures, tables, refusals, and an end by Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import run_chaos
import run_interruptions
import typer
from typer.testing import CliRunner

from child_processes import HANGS_S, children, until

HERE = Path(__file__).resolve().parent
APPS = {"run_chaos": run_chaos.app, "run_interruptions": run_interruptions.app}
LONG = re.compile(r"[\w\" :]*\d\.\d{10,}")
PROGRESS = re.compile(r"\d+/\d+ .*:\d\d")
ONE_SEED = [
    pytest.param(run_chaos.app, "--seeds 0..0 --deliveries 3 --jobs 1", id="chaos"),
    pytest.param(run_interruptions.app, "--seeds 0..0 --jobs 1", id="interruptions"),
]


def _run(runner: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / f"{runner}.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _printed(app: typer.Typer, words: str, columns: int = 160) -> str:
    done = CliRunner().invoke(app, words.split(), env={"COLUMNS": str(columns)}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_seeded_interruptions_are_counted() -> None:
    """All zeros, as JSON, and exit code 0."""
    done = _run("run_interruptions", "--seeds", "0..7", "--jobs", "1", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["seeds"], set(found["counts"].values())) == (0, 8, {0})


def test_a_seed_alone_prints_its_schedule() -> None:
    """The delivery and every call of it, then the count, and exit code 0."""
    done = _run("run_chaos", "--seed", "1", "--deliveries", "2")
    assert done.returncode == 0, done.stderr
    assert "1 seed: " in done.stdout.splitlines()[-1]
    assert len(done.stdout.splitlines()) > 30


@pytest.mark.parametrize("runner", APPS)
def test_seeds_that_are_no_range_are_refused(runner: str) -> None:
    """One line, and exit code 2."""
    done = _run(runner, "--seeds", "7..0")
    assert (done.returncode, done.stderr) == (2, "error: --seeds is '7..0': write A..B, as in 0..199\n")


@pytest.mark.parametrize(("app", "words"), ONE_SEED)
def test_json_has_no_digits_that_a_division_left(app: typer.Typer, words: str) -> None:
    """Nine after the point at most."""
    said = _printed(app, f"{words} --json")
    json.loads(said)
    assert LONG.findall(said) == []


@pytest.mark.parametrize(("app", "words"), ONE_SEED)
def test_the_table_is_whole_at_any_width(app: typer.Typer, words: str) -> None:
    """It fits, and nothing of it is cut."""
    for columns in (120, 80, 60):
        text = _printed(app, words, columns)
        assert max(map(len, text.splitlines())) <= columns
        assert "…" not in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("runner", APPS)
def test_worker_processes_end_and_say_nothing(runner: str, number: signal.Signals) -> None:
    """Ctrl-C goes to the whole group, SIGTERM to the command alone: either way all end, with one line."""
    process = subprocess.Popen(
        [sys.executable, HERE / f"{runner}.py", "--seeds", "0..9999", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until(lambda: len(children(process.pid)) >= 2)
    began = children(process.pid)
    (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
    _, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 128 + number
    told = [line for line in said.splitlines() if line.strip() and not PROGRESS.search(line)]
    assert told == ["stopped"]
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in began))


MET_AT_BIRTH = """
import os, signal, sys
from importlib import import_module
from multiprocessing import util

spawn = util.spawnv_passfds

def met(pid):
    os.kill(os.getpid(), signal.SIGINT)
    return pid

util.spawnv_passfds = lambda *given: met(spawn(*given))
sys.path.insert(0, {here!r})
import_module({runner!r}).main()
"""


@pytest.mark.parametrize("runner", APPS)
def test_a_worker_process_that_is_just_begun_ends_too(runner: str) -> None:
    """Ctrl-C comes between the birth of a process and its parent's note of it: it holds nothing open."""
    process = subprocess.Popen(
        [sys.executable, "-c", MET_AT_BIRTH.format(here=str(HERE), runner=runner), "--seeds", "0..99", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, said = process.communicate(timeout=HANGS_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert "Traceback" not in said
