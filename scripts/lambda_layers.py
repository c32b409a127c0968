"""build/layer-<name>.zip: what functions import beside their bundles, as layers of Lambda.

A bundle brings a list of its requirements, and Lambda installs nothing. So the locked wheels for Lambda's machine lie
in layers: ``base`` for every function, ``alerts`` and ``bills`` for those that tell people and that read bills. Left
out is what Lambda's Python has (boto3) and what only an HTTP server needs (functions-framework). Needs a package index.
"""

import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

from bundle import ROOT, VERSION, compiled, requirements, runtime, write

LAYERS = {"base": (), "alerts": ("alerts",), "bills": ("bills",)}
"""The extras of pyproject.toml in each. ``alerts`` and ``bills`` hold what base does, too: a function has one layer."""
NOT_THERE = ("functions-framework",)
PLATFORMS = [f"manylinux_2_{glibc}_x86_64" for glibc in range(26, 16, -1)] + ["manylinux2014_x86_64"]
"""Amazon Linux 2, which Lambda's Python 3.11 runs on, has glibc 2.26."""
LARGEST = 50_000_000
"""Bytes of a layer's zip that Lambda takes without a bucket."""


def main() -> None:
    """Write the layers into build/, or into the folder named on the command line."""
    build = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"
    build.mkdir(parents=True, exist_ok=True)
    if not runtime():
        raise SystemExit(f"error: functions run on Python {VERSION}, which is not here to compile for; install it")
    for name, extras in LAYERS.items():
        target = build / f"layer-{name}.zip"
        write(target, contents(extras))
        size, digest = target.stat().st_size, sha256(target.read_bytes()).hexdigest()
        print(f"{target} {size / 1000:.0f} KB sha256:{digest}")
        if size > LARGEST:
            raise SystemExit(f"error: {target} is larger than {LARGEST / 1e6:.0f} MB; leave something out")


def listed(extras: tuple[str, ...]) -> str:
    """The locked versions, with their files' hashes, of what a layer holds."""
    return requirements(extras, without=NOT_THERE)


def contents(extras: tuple[str, ...]) -> dict[str, bytes]:
    """Every file of a layer, by its name there, with its bytecode."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, site = Path(folder, "requirements.txt"), Path(folder, "python")
        wanted.write_text(listed(extras))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        only = ["--only-binary=:all:", "--python-version", VERSION, "--implementation", "cp"]
        where = [word for platform in PLATFORMS for word in ("--platform", platform)]
        asked = [*pip, *only, *where, "--no-deps", "--require-hashes", "--target", str(site), "-r", str(wanted)]
        if subprocess.run(asked).returncode:
            raise SystemExit("error: the requirements cannot be installed; is a package index within reach?")
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in site.rglob("*")
            if path.is_file() and "bin" not in path.relative_to(site).parts[:1]
        }
    return files | compiled(files, ours=False)


if __name__ == "__main__":
    main()
