"""A shell that a page's commands are typed into: in a folder like a fresh checkout, with an empty HOME and own ports.

A command that serves in the background is waited for until its port answers, as a person reads its first line, and
until its schedule has looked once.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from pages import ROOT

MADE = (".git", "build", "dist", ".pilotlight", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "docs")
LONGEST_S = 300.0
"""A command that takes longer hangs."""
USUAL = (8080, 8090, 9090, 5005, 8085)
"""Ports of the pages, in whose place a shell has its own."""
TICK = '"function": "capacity_reconcile"'
_END = "<<end of this command>>"


class Shell:
    """One bash, with its processes; its words and theirs (those in the background go to a file)."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.folder, self.ports = folder, {usual: free_port() for usual in USUAL}
        for path in ROOT.iterdir():
            if path.name not in MADE:
                (folder / path.name).symlink_to(path)
        home = folder.with_name(f"{folder.name}-home")
        home.mkdir()
        programs = f"{folder}/.venv/bin:{os.environ['PATH']}"
        environ = {"PATH": programs, "HOME": str(home), "COLUMNS": "160", "LANG": "C.UTF-8"}
        environ |= {"PYTHONPATH": f"{ROOT}/shared", **more}
        self._bash = subprocess.Popen(
            ["bash", "--norc"], cwd=folder, env=environ, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, command: str) -> tuple[int, str]:
        """The exit code, and what was printed."""
        line = self._own(command)
        background, ticked = line.endswith("&"), self._ticks()
        if background:
            line = f"{{ {line.removesuffix('&')}; }} >>background.log 2>&1 </dev/null &"
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f"{line}\n_code=$?; echo; echo '{_END}' $_code\n")
        self._bash.stdin.flush()
        said = []
        for text in self._bash.stdout:
            if text.startswith(_END):
                break
            said.append(text)
        else:
            raise AssertionError(f"the shell ended at {command}")
        if background:
            self.answers(next(port for port in self.ports.values() if re.search(rf"\b{port}\b", line)))
            until = time.monotonic() + LONGEST_S
            while re.search(r"\bserve\b", line) and self._ticks() == ticked and time.monotonic() < until:
                time.sleep(0.05)
        return int(text.split()[-1]), "".join(said)[:-1]

    def _own(self, command: str) -> str:
        """The command with ports of this shell's own in place of the usual ones, and without any set-up."""
        for pattern, ours in (
            (r"\bmake (?=[a-z])", "make -s -o .venv/.installed PORT=8080 "),
            (r"pilotlight serve\b", "pilotlight serve --port 8080"),
            (r"pilotlight world\b", "pilotlight world --port 8090"),
            (r"\bprometheus:9090\b", "127.0.0.1:9090"),
            *((rf"\b{usual}\b", str(port)) for usual, port in self.ports.items()),
        ):
            command = re.sub(pattern, ours, command)
        return command

    def _ticks(self) -> int:
        """Looks of schedules so far: a person types what comes next after the first, which is at once."""
        log = self.folder / "background.log"
        return log.read_text().count(TICK) if log.exists() else 0

    def answers(self, port: int) -> None:
        """Wait until somebody listens there."""
        until = time.monotonic() + LONGEST_S
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        log = self.folder / "background.log"
        raise AssertionError(log.read_text() if log.exists() else f"nobody listens at {port}")

    def end(self) -> None:
        """End the shell and all that it began, those in sessions of their own too."""
        for group in self._groups():
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)
        try:
            self._bash.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._bash.pid, signal.SIGKILL)
            self._bash.wait()

    def _groups(self) -> set[int]:
        """The process groups of the shell and of its children's children."""
        listed = subprocess.run(["ps", "-eo", "pid=,ppid=,pgid="], capture_output=True, text=True, check=True).stdout
        rows = [tuple(map(int, line.split())) for line in listed.splitlines()]
        ours, groups = {self._bash.pid}, {self._bash.pid}
        while new := {(pid, group) for pid, parent, group in rows if parent in ours and pid not in ours}:
            ours |= {pid for pid, _ in new}
            groups |= {group for _, group in new}
        return groups


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def has(program: str) -> bool:
    """Whether a program is found."""
    return shutil.which(program) is not None
