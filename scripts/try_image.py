"""The Dockerfile's steps without a registry: run one by one on a root of Debian packages, under bubblewrap.

``python scripts/try_image.py [FOLDER]`` (``make image-steps``); with ``--root`` it makes the root alone. mmdebstrap
makes the root that stands for the base image: bookworm, as there, with Debian's own Python 3.11. A step may write to
PLACES and to /tmp; then what the last stage copies is started as the image starts it: its user, its command, a root
that nothing can be written to, and its health check. What cannot be tried so is the base image's own Python and the
layers. Needs mmdebstrap, bwrap, Debian's mirror and PyPI; FOLDER (build/image) keeps the root for the next time.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = ROOT / "infra" / "kubernetes" / "home" / "Dockerfile"
PLACES = ("/src", "/wheels", "/home/pilotlight")
PACKAGES = "python3,python3-venv,python3-pip,python-is-python3,ca-certificates"
OF_THIS_MACHINE = ("/etc/resolv.conf", "/etc/ssl/certs")
"""Ways to reach packages from here: names, and who vouches for an index behind a proxy."""
KNOWN = {"FROM", "ARG", "ENV", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}

ASK = """
import json, os, subprocess, sys, time, urllib.error, urllib.request
command, healthy = json.loads(sys.argv[1]), json.loads(sys.argv[2])
serves = subprocess.Popen(command)
ends = time.monotonic() + 120
while serves.poll() is None and subprocess.run(healthy, stderr=subprocess.DEVNULL).returncode:
    if time.monotonic() > ends:
        break
    time.sleep(0.5)
said = {}
for path in ("/healthz", "/readyz", "/metrics"):
    try:
        said[path] = urllib.request.urlopen("http://127.0.0.1:8080" + path, timeout=60).status
    except urllib.error.HTTPError as error:
        said[path] = error.code
    except OSError as error:
        said[path] = str(error)
try:
    open("/written", "w")
    said["root"] = "can be written to"
except OSError:
    said["root"] = "read-only"
said["user"] = os.getuid()
serves.terminate()
serves.wait()
print(json.dumps(said))
"""
"""Run inside, beside the server: what the health check's command and the paths say."""

ANSWERS = {"/healthz": 200, "/readyz": 200, "/metrics": 401, "root": "read-only", "user": 65532}
"""Its answers on a good image. Its figures are for those who have a token."""


def main() -> None:
    """Make the root, take the steps, start it. Exits with 1 and the step that failed, or with 2 without a tool."""
    for tool in ("mmdebstrap", "bwrap"):
        if not shutil.which(tool):
            print(f"error: {tool} is not in PATH: apt-get install mmdebstrap bubblewrap", file=sys.stderr)
            sys.exit(2)
    words = [word for word in sys.argv[1:] if word != "--root"]
    folder = Path(words[0] if words else ROOT / "build" / "image").resolve()
    debian(folder / "root")
    if "--root" in sys.argv:
        return
    build(folder)
    said = serve(folder)
    made = folder / "home" / "pilotlight" / "venv"
    texts = sum(path.is_file() for path in (made / "share" / "pilotlight" / "licenses").rglob("*"))
    size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"built and served: {size / 1e6:.0f} MB beside the base image, {texts} licence texts; {json.dumps(said)}")
    if said != ANSWERS:
        sys.exit(f"error: the image should say {json.dumps(ANSWERS)}")


def debian(root: Path) -> None:
    """The root of packages, once, with the places that steps write to."""
    if not (root / "usr" / "bin" / "python").exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)])
    for place in PLACES:
        (root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)


def build(folder: Path) -> None:
    """The first stage: ENV, COPY and RUN as they stand."""
    for place in PLACES:
        shutil.rmtree(folder / place.lstrip("/"), ignore_errors=True)
        (folder / place.lstrip("/")).mkdir(parents=True)
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", **indexes()}
    for word, rest in stages()[0]:
        if word in ("ARG", "ENV"):
            environ.update(assigned(rest, environ))
        elif word == "COPY":
            copy(rest.split(), folder / "src")
        elif word == "RUN":
            binds = [part for place in PLACES for part in ("--bind", str(folder / place.lstrip("/")), place)]
            here = [part for path in OF_THIS_MACHINE if Path(path).exists() for part in ("--ro-bind", path, path)]
            shell = ["/bin/sh", "-euc", rest]
            run(inside(folder, environ, [*here, *binds, "--chdir", "/src", "--uid", "0", "--gid", "0"], shell))


def serve(folder: Path) -> dict[str, object]:
    """The last stage, started as its instructions say; what it answers."""
    last = stages()[-1]
    tokens = json.dumps({"heartbeat": {"token": "of-a-trial-and-of-no-deployment"}})
    kept = {"PILOTLIGHT_STATE": "memory:", "PILOTLIGHT_OUTBOX": "memory:", "PILOTLIGHT_TOKENS": tokens}
    environ = {"PATH": "/usr/bin:/bin", **kept}
    for rest in (rest for word, rest in last if word == "ENV"):
        environ.update(assigned(rest, environ))
    one = {word: rest for word, rest in last if word not in ("COPY", "ENV")}
    user, _, group = one["USER"].partition(":")
    words = [rest.split() for word, rest in last if word == "COPY"]
    for _, _, place in words:
        (folder / "root" / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
    binds = [part for _, source, place in words for part in ("--ro-bind", f"{folder}{source}", place)]
    who = ["--unshare-net", "--uid", user, "--gid", group, "--chdir", one["WORKDIR"]]
    command = [*json.loads(one["ENTRYPOINT"]), *json.loads(one["CMD"])]
    healthy = json.loads(one["HEALTHCHECK"].partition("CMD ")[2])
    asks = ["python", "-c", ASK, json.dumps(command), json.dumps(healthy)]
    said = run(inside(folder, environ, [*binds, *who], asks))
    print(said.rpartition("\n{")[0])
    answers: dict[str, object] = json.loads(said.splitlines()[-1])
    return answers


def inside(folder: Path, environ: dict[str, str], more: Iterable[str], command: list[str]) -> list[str]:
    """A command on the root of packages, which it cannot write to, and with no other environment."""
    given = [part for name, value in environ.items() for part in ("--setenv", name, value)]
    apart = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--clearenv"]
    mounts = ["--ro-bind", str(folder / "root"), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    return ["bwrap", *apart, *mounts, *given, *more, *command]


def stages() -> list[list[tuple[str, str]]]:
    """The Dockerfile's instructions, stage by stage. An ARG before the first one names the base, which the root of
    packages stands for. A word that is not tried here stops it."""
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions(DOCKERFILE.read_text()):
        if word not in KNOWN:
            sys.exit(f"error: {DOCKERFILE.name}: {word} is not tried here; add it to scripts/try_image.py")
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, rest))
    return found


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Each instruction's word and the rest of its line, without comments."""
    plain = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(None, map(str.strip, plain.splitlines())):
        word, _, rest = line.partition(" ")
        yield word, rest.strip()


def assigned(rest: str, environ: dict[str, str]) -> Iterator[tuple[str, str]]:
    """NAME=value of ARG and ENV, with what they name of what was said before."""
    for pair in rest.split():
        name, _, value = pair.partition("=")
        yield name, re.sub(r"\$\{?(\w+)\}?", lambda found: environ.get(found[1], ""), value)


def indexes() -> dict[str, str]:
    """Where pip finds packages, and by whose word, where this machine's environment says so."""
    names = ("PIP_CERT", "PIP_INDEX_URL", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
    return {name: os.environ[name] for name in names if name in os.environ}


def copy(words: list[str], src: Path) -> None:
    """COPY: files into a folder, or one folder to a place."""
    *sources, target = words
    for source in sources:
        place = src / target / (Path(source).name if target.endswith("/") else "")
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, place)


def run(words: list[str]) -> str:
    """Output of a step; all of it is shown where it fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\nerror: this step failed: {words[-1]}")
    return done.stdout


if __name__ == "__main__":
    main()
