"""A first plan from the wheel alone, as a newcomer has it: seconds and bytes, by `uvx` and by `pip`.

Usage: python bench/use/first_plan.py [--uvx PATH] [--json]

The wheel of this checkout lies in a simple index on a local port; what it needs comes from PyPI. Each way begins in an
empty folder with an empty HOME, so nothing is cached: `uvx` installs and plans, then plans once more; `pip` installs
into a new venv, which then plans. Targets: a first plan in 30 s, an installation in 45 s and 100 MB, and a folder that
is empty afterwards.
"""

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from pilotlight.tools.cli.printing import console
from pilotlight.tools.report.tables.sheet import Column, Sheet

ROOT = Path(__file__).resolve().parents[2]
PLAN = ("pilotlight", "plan", "--sample")
PLAN_S, INSTALL_S, LARGEST = 30.0, 45.0, 100_000_000
"""Targets."""
OFFLINE = ("dns error", "failed to connect", "Could not connect", "tcp connect error", "Failed to fetch")


class Offline(Exception):
    """PyPI cannot be reached."""


class Step(NamedTuple):
    """A step of a way: seconds, and bytes that are installed by then. ``limit_s`` is what it may take."""

    what: str
    seconds: float
    limit_s: float
    size: int = 0

    @property
    def missed(self) -> bool:
        """Whether it took more than it may."""
        return self.seconds > self.limit_s or self.size > LARGEST


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed between the figures."""


@contextmanager
def index(folder: Path) -> Iterator[str]:
    """The address of a simple index that holds the wheel of this checkout alone."""
    held = folder / "simple" / "pilotlight"
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", held], cwd=ROOT, check=True,
                   capture_output=True)  # fmt: skip
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple/"
        finally:
            server.shutdown()


def pinned_uv(folder: Path) -> Path:
    """`uvx` of the version that the Makefile names, from PyPI."""
    version = next(
        line.split()[-1] for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("UV :=")
    )
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    done = subprocess.run(
        [folder / "bin" / "pip", "install", "--quiet", f"uv=={version}"], capture_output=True, text=True
    )
    if done.returncode:
        raise Offline(done.stderr.strip().splitlines()[-1])
    return folder / "bin" / "uvx"


class Newcomer:
    """A user with an empty HOME, who stands in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.home, self.here = folder / "home", folder / "here"
        self.home.mkdir(parents=True)
        self.here.mkdir()

    def types(self, *words: str | Path) -> tuple[float, str]:
        """Seconds, and what was printed."""
        kept = {
            key: value for key, value in os.environ.items() if key.endswith(("_CERT", "_CERT_FILE", "_PROXY", "_proxy"))
        }
        own = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "COLUMNS": "120", "LANG": "C.UTF-8", **kept}
        began = time.monotonic()
        done = subprocess.run(
            list(map(str, words)), cwd=self.here, env=own, capture_output=True, text=True, check=False
        )
        if done.returncode and any(word in done.stderr for word in OFFLINE):
            raise Offline(done.stderr.strip().splitlines()[-1])
        if done.returncode:
            raise SystemExit(f"error: {words[0]} ended with {done.returncode}: {done.stderr.strip()}")
        return time.monotonic() - began, done.stdout


def size(folder: Path) -> int:
    """Bytes below a folder; a file of two names counts once."""
    files = [path.lstat() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum({(file.st_dev, file.st_ino): file.st_size for file in files}.values())


def by_uvx(folder: Path, address: str, uvx: Path) -> tuple[list[Step], list[str]]:
    """The steps of `uvx`, with the plans that they printed."""
    who = Newcomer(folder)
    words = (uvx, "--python", sys.executable, "--index", address, *PLAN)
    first, printed = who.types(*words)
    installed = size(who.home)
    again, twice = who.types(*words)
    _left_nothing(who)
    told = f"uvx {' '.join(PLAN)}"
    return [Step(told, first, PLAN_S, installed), Step(f"{told}, again", again, PLAN_S)], [printed, twice]


def by_pip(folder: Path, address: str) -> tuple[list[Step], list[str]]:
    """The steps of `pip`, with the plan that they end with."""
    who, venv = Newcomer(folder), folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pip = (sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "--quiet", "--no-cache-dir")
    seconds, _ = who.types(*pip, "install", "--extra-index-url", address, "pilotlight")
    installed = size(venv)
    planned, printed = who.types(venv / "bin" / "pilotlight", *PLAN[1:])
    _left_nothing(who)
    return [Step("pip install pilotlight", seconds, INSTALL_S, installed), Step(" ".join(PLAN), planned, PLAN_S)], [
        printed
    ]


def _left_nothing(who: Newcomer) -> None:
    if left := sorted(path.name for path in who.here.iterdir()):
        raise SystemExit(f"error: left in the folder: {', '.join(left)}")


def main(words: Sequence[str]) -> int:
    """Print. Exit code 1 where a target is missed, 2 where PyPI cannot be reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uvx", type=Path, help="else that of the Makefile's version, from PyPI")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as scratch, index(Path(scratch) / "index") as address:
        folder = Path(scratch)
        try:
            uvx = options.uvx or pinned_uv(folder / "uv")
            steps = [*by_uvx(folder / "a", address, uvx)[0], *by_pip(folder / "b", address)[0]]
        except Offline as error:
            print(f"error: PyPI cannot be reached: {error}", file=sys.stderr)
            return 2
    if options.json:
        print(json.dumps([step._asdict() for step in steps], indent=1))
    else:
        sheet = Sheet(Column("what"), Column("seconds", "figure"), Column("at most", "figure"), Column("MB", "figure"))
        for step in steps:
            sheet.add(
                step.what, f"{step.seconds:.1f}", f"{step.limit_s:.0f}", f"{step.size / 1e6:.0f}" if step.size else ""
            )
        console().print(sheet)
    return int(any(step.missed for step in steps))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
