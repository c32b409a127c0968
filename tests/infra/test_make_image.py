"""`make image`: the image is built, and loaded into clusters of kind and k3d that run; stand-ins are these tools."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTS = {"kind": "get clusters", "k3d": "cluster list --no-headers"}
"""Words by which each tool is asked for its clusters."""


def stand_in(folder: Path, tool: str, *clusters: str) -> None:
    """A tool that records its words, a line a run, and names these clusters where it is asked for them."""
    listed = " ".join(f"'{cluster}'" for cluster in clusters)
    (folder / tool).write_text(
        f'#!/bin/sh\necho {tool} "$@" >> {folder}/words\n'
        f'[ "$*" != "{LISTS.get(tool, "none")}" ] || printf "%s\\n" {listed}\n'
    )
    (folder / tool).chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH of its own: no tool of this machine but what the script itself needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "bash", "cut", "git", "make", "awk"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return folder


def run(tools: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`make image` where these tools are installed."""
    own = {**os.environ, "PATH": str(tools)}
    return subprocess.run(["make", "image", *words], cwd=ROOT, env=own, capture_output=True, text=True, check=False)


def recorded(tools: Path) -> list[str]:
    """Calls that changed something, in their order."""
    said = (tools / "words").read_text().splitlines()
    return [line for line in said if line not in {f"{tool} {words}" for tool, words in LISTS.items()}]


def test_it_builds_and_loads_into_every_cluster_that_runs(tools: Path) -> None:
    """Docker gets the home's Dockerfile and the commit's time; kind and k3d the image, for each of their clusters."""
    stand_in(tools, "docker")
    stand_in(tools, "kind", "kind", "lab")
    stand_in(tools, "k3d", "dev   1/1   0/0   true")
    done = run(tools, "IMAGE=pilotlight:try")
    assert done.returncode == 0, done.stderr
    build, *loads = recorded(tools)
    assert build.startswith("docker build -f infra/kubernetes/home/Dockerfile --build-arg SOURCE_DATE_EPOCH=")
    assert build.endswith(" -t pilotlight:try .")
    assert loads == [
        "kind load docker-image pilotlight:try --name kind",
        "kind load docker-image pilotlight:try --name lab",
        "k3d image import pilotlight:try --cluster dev",
    ]
    assert "kind/kind kind/lab k3d/dev" in done.stdout
    assert "--set image.repository=pilotlight --set image.tag=try --set image.pullPolicy=IfNotPresent" in done.stdout


def test_without_a_cluster_it_says_how_to_push(tools: Path) -> None:
    """The image is built; nothing is loaded, and the next commands are named."""
    stand_in(tools, "docker")
    stand_in(tools, "kind")
    done = run(tools)
    assert (done.returncode, len(recorded(tools))) == (0, 1), done.stderr
    assert "docker push registry.acme.com/pilotlight:1" in done.stdout
    assert "--set image.repository=registry.acme.com/pilotlight --set image.tag=1" in done.stdout


def test_without_docker_it_is_one_line(tools: Path) -> None:
    """What is missing and what does the same; nothing is run."""
    done = run(tools)
    assert done.returncode == 2
    [line, *_] = done.stderr.splitlines()
    assert line.startswith("error: docker is not in PATH; podman build -f infra/kubernetes/home/Dockerfile makes")
    assert not (tools / "words").exists()
