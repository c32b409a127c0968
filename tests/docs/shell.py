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
from pathlib import Path

from pages import ROOT

MADE = (".git", "build", "dist", ".pilotlight", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "docs")
LONGEST_S = 300.0
"""A command that takes longer hangs."""
TICK = '"function": "capacity_reconcile"'
_END = "<<end of this command>>"


class Shell:
    """One bash, with its processes; its words and theirs (those in the background go to a file)."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._serve, self._world = folder, free_port(), free_port()
        for path in ROOT.iterdir():
            if path.name not in MADE:
                (folder / path.name).symlink_to(path)
        home = folder.with_name(f"{folder.name}-home")
        home.mkdir()
        environ = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "160", "LANG": "C.UTF-8"}
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
            self._answers(self._world if re.search(r"pilotlight world", line) else self._serve)
            until = time.monotonic() + LONGEST_S
            while "serve" in line and self._ticks() == ticked and time.monotonic() < until:
                time.sleep(0.05)
        return int(text.split()[-1]), "".join(said)[:-1]

    def _own(self, command: str) -> str:
        """The command with ports of this shell's own in place of the usual ones, and without any set-up."""
        for pattern, ours in (
            (r"\bmake (?=[a-z])", f"make -s -o .venv/.installed PORT={self._serve} "),
            (r"pilotlight serve\b", f"pilotlight serve --port {self._serve}"),
            (r"pilotlight world\b", f"pilotlight world --port {self._world}"),
            (r"\b(localhost|127\.0\.0\.1):8080\b", rf"\1:{self._serve}"),
            (r"\b(localhost|127\.0\.0\.1):8090\b", rf"\1:{self._world}"),
        ):
            command = re.sub(pattern, ours, command)
        return command

    def _ticks(self) -> int:
        """Looks of schedules so far: a person types what comes next after the first, which is at once."""
        log = self.folder / "background.log"
        return log.read_text().count(TICK) if log.exists() else 0

    def _answers(self, port: int) -> None:
        until = time.monotonic() + LONGEST_S
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError((self.folder / "background.log").read_text())

    def end(self) -> None:
        """End the shell and all that it began."""
        os.killpg(self._bash.pid, signal.SIGTERM)
        try:
            self._bash.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._bash.pid, signal.SIGKILL)
            self._bash.wait()


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def has(program: str) -> bool:
    """Whether a program is found."""
    return shutil.which(program) is not None
