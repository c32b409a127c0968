"""A serve that cannot go on says so at once, and one that is told to end does, whatever became of its log."""

import fcntl
import logging
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from child_processes import HANGS_S, until
from fleet import free_port
from pilotlight.errors import Unavailable
from pilotlight.tools.serve import tick_schedule

PILOTLIGHT = Path(sys.executable).parent / "pilotlight"


@pytest.mark.parametrize(("place", "exit_code"), [("file", 1), ("folder", 2)])
def test_a_state_that_cannot_be_opened_ends_serve_before_it_listens(tmp_path: Path, place: str, exit_code: int) -> None:
    """One line, and no address of a page: neither a file for a folder nor a folder for a file mends itself."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder" / "state.db").mkdir(parents=True)
    environ = {**os.environ, "PILOTLIGHT_HOME": str(tmp_path / place)}
    words: list[str | Path] = [PILOTLIGHT, "serve", "--port", str(free_port())]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert (done.returncode, done.stdout) == (exit_code, "")
    assert done.stderr.startswith("error: state ")
    assert done.stderr.count("\n") == 1


def _fill(pipe: int) -> None:
    """Write to it until it takes no more, by an opening of its own: the other one still waits for room."""
    with suppress(BlockingIOError):
        beside = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
        for _ in range(1 << 20):
            os.write(beside, b"x")


def _waits_to_write(pid: int) -> bool:
    return any("pipe" in (task / "wchan").read_text() for task in Path(f"/proc/{pid}/task").iterdir())


def test_a_log_that_nobody_reads_holds_up_no_end(tmp_path: Path) -> None:
    """SIGTERM ends a serve, with 0, while one of its threads waits to write a line."""
    unread, log = os.pipe()
    fcntl.fcntl(log, fcntl.F_SETPIPE_SZ, 4096)
    environ = {**os.environ, "PILOTLIGHT_HOME": str(tmp_path)}
    words: list[str | Path] = [PILOTLIGHT, "serve", "--port", str(free_port()), "--tick", "1"]
    process = subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=log)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"POST http")
        _fill(log)
        until(lambda: _waits_to_write(process.pid))
        process.terminate()
        assert process.wait(HANGS_S) == 0
    finally:
        process.kill()
        os.close(unread)


def test_a_fault_that_stays_is_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """Another one is told at once."""
    stop, faults = threading.Event(), ["the disk is full", "the disk is gone"]
    asked: list[str] = []

    def ask() -> None:
        asked.append(faults[len(asked) >= 50])
        raise Unavailable(asked[-1])

    with caplog.at_level(logging.WARNING, "pilotlight"):
        tick_schedule._every(stop, 0.001, ask)
        until(lambda: len(asked) >= 100)
        stop.set()
    said = [record.__dict__["data"]["why"] for record in caplog.records]
    assert set(said) == set(faults)
    assert len(said) <= len(faults) + 1  # A minute may end meanwhile.
