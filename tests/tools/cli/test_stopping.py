"""Ctrl-C (exit code 130) and SIGTERM (143) end a command with one line, and all that it began ends with it."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from shell import free_port

from child_processes import HANGS_S, children, until

PILOTLIGHT = Path(sys.executable).parent / "pilotlight"
JOBS = 2000
HEADER = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\n"
PROGRESS = re.compile(r"\d+/\d+ .*:\d\d")


@pytest.mark.parametrize("peers", [pytest.param(False, id="a run alone"), pytest.param(True, id="peers in processes")])
def test_a_replay_ends_with_its_peers(tmp_path: Path, peers: bool) -> None:
    """The whole group gets the signal, as from a terminal; nothing goes on, nothing is dumped."""
    rows = "".join(f"j{n},{n * 60},7200,1,1000,,team,,\n" for n in range(JOBS))
    (tmp_path / "t.csv").write_text(HEADER + rows)
    log = tmp_path / "run.jsonl"
    words = [
        "replay",
        tmp_path / "t.csv",
        "--log",
        log,
        *(["--against", "karpenter", "--against", "keda"] if peers else []),
    ]
    process = subprocess.Popen(
        [PILOTLIGHT, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    began: list[int] = []
    if peers:
        until(lambda: len(children(process.pid)) >= 3)
        began = children(process.pid)
    else:
        until(lambda: log.exists() and log.stat().st_size)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert [line for line in said.splitlines() if "stopped" in line] == ["stopped"]
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in began))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_worker_processes_end_and_say_nothing(number: signal.Signals) -> None:
    """Ctrl-C goes to the whole group, SIGTERM to the command alone: either way all end, with one line."""
    process = subprocess.Popen(
        [PILOTLIGHT, "week"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until(lambda: len(children(process.pid)) >= 3)
    began = children(process.pid)
    (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
    _, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 128 + number
    told = [line for line in said.splitlines() if line.strip() and not PROGRESS.search(line)]
    assert told == ["stopped"]
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in began))


MET_AT_BIRTH = """
import os, signal
from multiprocessing import util

fork, spawn = os.fork, util.spawnv_passfds

def forked():
    pid = fork()
    return met(pid) if pid else 0

def met(pid):
    os.kill(os.getpid(), signal.SIGINT)
    return pid

os.fork = forked
util.spawnv_passfds = lambda *given: met(spawn(*given))
from pilotlight.tools.cli.entry import run
run()
"""


def test_a_worker_process_that_is_just_begun_ends_too() -> None:
    """Ctrl-C comes between the birth of a process and its parent's note of it: it holds nothing open."""
    process = subprocess.Popen(
        [sys.executable, "-c", MET_AT_BIRTH, "week"],
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


def _half_a_request(port: int) -> socket.socket:
    """A connection that a server has taken, for it answered, and whose second request never comes to its end."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert connection.recv(4096)
    connection.sendall(b"POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    return connection


def _all_below(pid: int) -> list[int]:
    found = children(pid)
    return [*found, *(below for child in found for below in _all_below(child))]


@pytest.mark.parametrize(
    ("words", "begun"),
    [
        pytest.param(["serve", "--port", "PORT"], "POST http", id="serve"),
        pytest.param(["serve", "--port", "PORT", "--workers", "2"], "POST http", id="serve with workers and a world"),
        pytest.param(["world", "--port", "PORT"], "world http", id="world"),
        pytest.param(["demo"], "An hour", id="demo"),
        pytest.param(["demo", "--json"], "", id="demo that says nothing yet"),
    ],
)
def test_what_serves_ends_with_all_it_began(tmp_path: Path, words: list[str], begun: str) -> None:
    """Requests that never end hold nothing up; exit code 130 and one line, whoever else was told."""
    port = free_port()
    process = subprocess.Popen(
        [PILOTLIGHT, *(str(port) if word == "PORT" else word for word in words)],
        env={**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    if begun:
        assert process.stdout.readline().startswith(begun)
    else:
        until(lambda: children(process.pid))
    held = _half_a_request(port) if "PORT" in words else None
    below = _all_below(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 130
    told = [line for line in said.splitlines() if not line.startswith(("state: ", '{"severity": "INFO"'))]
    assert told == ["stopped"]
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("pilotlight-demo")]
    if held is not None:
        held.close()
