"""Steps of the release workflow that need neither a network of GitHub's nor a secret, in a fresh clone of a commit.

``python scripts/release/dry_run.py [--commit HEAD]``. Steps are read from .github/workflows/release.yml: of each
`run:` the commands that publish, sign, or need a runner's tools are left out and said. Exit code 1 where a step fails.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ".github/workflows/release.yml"
LEFT_OUT = {
    ".ci/run": "the whole check; .ci/run itself",
    "make providers": "asks Terraform's registry",
    "make tf": "asks Terraform's registry",
    "make setup": "this checkout's .venv stands in",
    "helm push": "publishes",
    "gh release": "publishes",
    "cosign": "signs",
    "digest=$(docker": "asks an image registry",
    'echo "tag=': "says what that registry answered",
}
"""Beginnings of commands that are not run, and why."""


class Step(NamedTuple):
    """A step's job and its commands, with continued lines joined."""

    job: str
    commands: tuple[str, ...]


def steps(text: str) -> Iterator[Step]:
    """The steps of a workflow that run commands."""
    for name, job in yaml.safe_load(text)["jobs"].items():
        for step in job["steps"]:
            if "run" in step:
                yield Step(name, tuple(step["run"].replace("\\\n", " ").strip().splitlines()))


def left_out(command: str) -> str:
    """Why a command is not run here; empty where it is."""
    why = next((why for begins, why in LEFT_OUT.items() if command.strip().startswith(begins)), "")
    return why or ("helm is not installed" if command.startswith("helm ") and not shutil.which("helm") else "")


def clone(commit: str, folder: Path) -> dict[str, str]:
    """A clone of a commit, and the environment that a tag of its version gives the steps."""
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", ROOT, folder], check=True)
    subprocess.run(["git", "-C", folder, "checkout", "--quiet", "--detach", commit], check=True)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    version = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["version"]
    kept = {"PATH": f"{folder / '.venv' / 'bin'}:{os.environ['PATH']}", "HOME": str(folder.parent)}
    return kept | {
        "GITHUB_REF_NAME": f"v{version}", "GITHUB_OUTPUT": str(folder.parent / "output"), "OWNER": "Example",
        "REPOSITORY": "ghcr.io/example/pilotlight", "DIGEST": f"sha256:{'a' * 64}",
    }  # fmt: skip


def tried(step: Step, folder: Path, environ: dict[str, str]) -> Iterator[tuple[str, str, bool]]:
    """Each command with what became of it, and whether that is a failure."""
    for command in step.commands:
        if why := left_out(command):
            yield command, f"left out: {why}", False
            continue
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        yield (
            command,
            "done" if not done.returncode else done.stderr.strip() or done.stdout.strip(),
            bool(done.returncode),
        )


def main() -> int:
    """Print a line a command."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--commit", default="HEAD")
    commit = asked.parse_args().commit
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "clone"
        environ = clone(commit, folder)
        for step in steps((folder / WORKFLOW).read_text()):
            for command, became, wrong in tried(step, folder, environ):
                failed += wrong
                print(f"{step.job}: {' '.join(command.split())}\n    {became}")
        made = sorted(path.name for path in (folder / "dist").glob("*"))
    print(f"made {', '.join(made) or 'nothing'}; {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
