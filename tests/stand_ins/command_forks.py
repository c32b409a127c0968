"""Commands of one interpreter that has imported everything: each runs in a fork of it, so it is a process of its own.

Run as a program it is that interpreter: it takes a command a line as JSON, and answers each with its exit code.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

LIMIT_S = 120
CLOSED = Path("closed")
"""For ``stdout``: as `>&-` leaves it."""
LOST = 120
"""Python's own exit code where its last flush fails."""


class Ended(NamedTuple):
    """What a command came to."""

    code: int
    stdout: str
    stderr: str


class CommandForks:
    """An interpreter that runs commands in a folder."""

    def __init__(self, folder: Path, kept: Path, environ: Mapping[str, str]) -> None:
        self.folder, self._kept, self._environ = folder, kept, dict(environ)
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._environ
        )

    def run(self, words: Sequence[str], environ: Mapping[str, str] | None = None, stdout: Path | None = None) -> Ended:
        """Run a command, with variables beside those of all; its output is kept, or goes to ``stdout``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        out, err = stdout or self._kept / "out", self._kept / "err"
        asked = {"words": [*words], "environ": {**self._environ, **(environ or {})}, "folder": str(self.folder)}
        self._process.stdin.write(json.dumps({**asked, "out": str(out), "err": str(err)}) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        return Ended(code, "" if stdout else out.read_text(errors="replace"), err.read_text(errors="replace"))

    def end(self) -> None:
        """End the interpreter."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _serve() -> None:
    from pilotlight.tools.cli.main import build

    build([])
    for line in sys.stdin:
        gc.freeze()  # Nothing of the parent is collected, and copied by that, in a child.
        learnt, tells = os.pipe()
        child = os.fork()
        if not child:
            _end(json.loads(line), tells)
        os.close(tells)
        with open(learnt) as names:
            _import_too(names.read().split())
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def _import_too(names: Sequence[str]) -> None:
    """Import what a command imported, for those that follow."""
    for name in names:
        if name not in sys.modules and name.partition(".")[0] in ("pilotlight", "rich", "yaml", "msgspec", "werkzeug"):
            import_module(name)


def _end(asked: dict[str, object], tells: int) -> None:
    """Be the command, and end as a process does, but for tidying up an interpreter."""
    code = 0
    try:
        _become(asked)
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        code = 70
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = LOST
        traceback.print_exc()
    os.write(tells, " ".join(sys.modules).encode())
    os._exit(code)


def _become(asked: dict[str, object]) -> None:
    from pilotlight.tools.cli.entry import run

    signal.alarm(LIMIT_S)
    os.chdir(str(asked["folder"]))
    os.environ.clear()
    os.environ.update(asked["environ"])  # type: ignore[call-overload]
    places = ((0, os.devnull, os.O_RDONLY), (1, asked["out"], os.O_WRONLY), (2, asked["err"], os.O_WRONLY))
    for number, path, mode in places:
        if path == str(CLOSED):
            os.close(number)
            sys.stdout = None
            continue
        made = os.open(str(path), mode | (os.O_CREAT | os.O_TRUNC if mode else 0), 0o600)
        os.dup2(made, number)
        os.close(made)
    sys.stdin = open(0)  # noqa: SIM115  What the interpreter has read ahead is no command's.
    words: list[str] = asked["words"]  # type: ignore[assignment]
    sys.argv = ["pilotlight", *words]
    run()


if __name__ == "__main__":
    _serve()
