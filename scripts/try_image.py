"""The Dockerfile's steps without a registry: its build stage with this Python in a folder, and what it made, run.

``python scripts/try_image.py [FOLDER]``. What cannot be tried so is the base image and the layers. Needs PyPI; as root
the result is owned by root and run by the image's user, as in the image, else by whoever calls.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = ROOT / "infra" / "kubernetes" / "home" / "Dockerfile"
PLACES = ("/src", "/wheels", "/home/pilotlight")
STARTS_S = 60


def main() -> None:
    """Build, run, ask. Exits with 1 and the step that failed."""
    if len(sys.argv) > 1:
        attempt(Path(sys.argv[1]).resolve())
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        attempt(Path(folder))


def attempt(folder: Path) -> None:
    """All of it in one folder, which stands for /."""
    lines = list(instructions(DOCKERFILE.read_text()))
    stages = [n for n, (word, _) in enumerate(lines) if word == "FROM"]
    for word, rest in lines[: stages[1]]:
        if word == "COPY":
            copy(rest.split(), folder)
        elif word == "RUN":
            run(["bash", "-euc", moved(rest, folder)], folder / "src")
    user = next(int(rest.partition(":")[0]) for word, rest in lines if word == "USER")
    ask(folder / "home" / "pilotlight" / "venv" / "bin" / "pilotlight", user)
    made = folder / "home" / "pilotlight" / "venv"
    texts = sum(path.is_file() for path in (made / "share" / "pilotlight" / "licenses").rglob("*"))
    size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"built and served: {size / 1e6:.0f} MB beside the base image, {texts} licence texts")


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Each instruction's word and the rest of its line, without comments."""
    plain = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(None, map(str.strip, plain.splitlines())):
        word, _, rest = line.partition(" ")
        yield word, rest.strip()


def moved(command: str, folder: Path) -> str:
    """A command whose places are in the folder."""
    for place in PLACES:
        command = re.sub(rf"(?<![\w/.]){place}(?=[/\s]|$)", f"{folder}{place}", command)
    return command


def copy(words: list[str], folder: Path) -> None:
    """COPY: files into a folder, or one folder to a place."""
    *sources, target = words
    for source in sources:
        place = folder / "src" / target / (Path(source).name if target.endswith("/") else "")
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, place)


def run(words: list[str], at: Path) -> None:
    """A step; its output is shown where it fails."""
    here = Path(sys.executable).parent
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "0", "PATH": f"{here}:{os.environ['PATH']}"}
    done = subprocess.run(words, cwd=at, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\nerror: this step failed: {words[-1]}")


def ask(pilotlight: Path, user: int) -> None:
    """Serve by it, as the image's user where that can be, who may write nothing there; ask for its health."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    who = {"user": user, "group": user, "extra_groups": []} if os.geteuid() == 0 and reachable(pilotlight) else {}
    print(f"serving as {f'user {user}' if who else 'whoever calls: others do not reach this Python'}")
    words = [str(pilotlight), "serve", "--port", str(port)]
    environ = {"PILOTLIGHT_STATE": "memory:", "PILOTLIGHT_OUTBOX": "memory:", "PATH": "/usr/bin:/bin"}
    process = subprocess.Popen(words, cwd="/", env=environ, stdout=subprocess.DEVNULL, **who)  # type: ignore[call-overload]
    try:
        answer = healthy(port, process)
    finally:
        process.terminate()
        process.wait()
    if answer != 200:
        sys.exit(f"error: /healthz answers {answer}")


def reachable(pilotlight: Path) -> bool:
    """Whether another user may run it: the Python that a venv links to may lie in somebody's home."""
    python = pilotlight.with_name("python").resolve()
    return all(path.stat().st_mode & 0o001 for place in (python, pilotlight) for path in place.parents)


def healthy(port: int, process: "subprocess.Popen[bytes]") -> int:
    """What /healthz answers, once it does; 0 where the process ends or says nothing."""
    ends = time.monotonic() + STARTS_S
    while process.poll() is None and time.monotonic() < ends:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
                return int(answer.status)
        except OSError:
            time.sleep(0.2)
    return 0


if __name__ == "__main__":
    main()
