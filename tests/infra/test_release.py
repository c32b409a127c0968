"""Workflows that GitHub takes, of what is in this repository; the release, and a bill of what the image holds."""

import io
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import terraform_archive
import yaml
from helm import CHART, PYTHON, ROOT, needs_helm

import release_version
import sbom

WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
EVERY = [pytest.param(path, id=path.stem) for path in sorted(WORKFLOW.parent.glob("*.yml"))]


def jobs(workflow: Path = WORKFLOW) -> dict[str, Any]:
    """A workflow's jobs."""
    found: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return found


@needs_helm
@pytest.mark.parametrize("workflow", EVERY)
def test_github_takes_the_workflow(workflow: Path) -> None:
    """It is valid by the schema of workflows."""
    words = [str(PYTHON), "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(workflow)]
    run = subprocess.run(words, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_job_may_do_what_it_does_and_no_more() -> None:
    """Nothing by default; what pushes may write packages, what signs has an identity, and all wait for the checks."""
    assert yaml.safe_load(WORKFLOW.read_text())["permissions"] == {}
    rights = {name: job["permissions"] for name, job in jobs().items()}
    signs = {"contents": "read", "packages": "write", "id-token": "write"}
    assert rights == {
        "check": {"contents": "read"},
        "terraform": {"contents": "read"},
        "wheel": {"contents": "read", "id-token": "write"},
        "image": signs,
        "chart": signs,
        "modules": {"contents": "write", "id-token": "write"},
    }
    assert {name: job["needs"] for name, job in jobs().items() if "needs" in job} == {
        "wheel": ["check", "terraform"], "image": ["check", "terraform"], "chart": "image",
        "modules": ["check", "terraform"],
    }  # fmt: skip


def test_a_push_and_a_pull_request_are_checked_and_may_do_nothing() -> None:
    """The whole check runs on both, with the right to read this repository alone."""
    workflow = WORKFLOW.with_name("check.yml")
    said = yaml.safe_load(workflow.read_text())
    assert said[True] == {"push": {"branches": ["main"]}, "pull_request": None}
    assert said["permissions"] == {}
    assert {name: job["permissions"] for name, job in jobs(workflow).items()} == {
        "check": {"contents": "read"}, "terraform": {"contents": "read"},
    }  # fmt: skip
    assert {"run": ".ci/run"} in jobs(workflow)["check"]["steps"]


@pytest.mark.parametrize("workflow", EVERY)
def test_actions_are_named_by_commit(workflow: Path) -> None:
    """A tag can be moved; beside each commit stands the version that it was."""
    uses = re.findall(r"uses: (.*)", workflow.read_text())
    assert uses
    assert [one for one in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


@pytest.mark.parametrize("workflow", EVERY)
def test_nothing_that_a_pusher_names_is_run(workflow: Path) -> None:
    """No expression of GitHub's stands in a command: what a tag or an owner is called comes by the environment."""
    commands = [step["run"] for job in jobs(workflow).values() for step in job["steps"] if "run" in step]
    assert commands
    assert [command for command in commands if "${{" in command] == []


@pytest.mark.parametrize("workflow", EVERY)
def test_what_it_names_is_there(workflow: Path) -> None:
    """Each script, folder and target of make."""
    text = workflow.read_text()
    for path in re.findall(r"(?:scripts|infra|\.ci)/[\w./-]+\w", text):
        assert (ROOT / path).exists(), path
    targets = (ROOT / "Makefile").read_text()
    assert all(f"\n{target}:" in targets for target in re.findall(r"\bmake (\w+)", text))


def test_the_version_is_said_once() -> None:
    """pyproject.toml, changelog and chart agree, and a tag of another version is refused in one line."""
    version = set(release_version.versions().values())
    assert "CHANGELOG.md" in release_version.versions()
    assert len(version) == 1
    words = [sys.executable, str(ROOT / "scripts" / "release_version.py")]
    assert subprocess.run([*words, f"v{version.pop()}"], capture_output=True).returncode == 0
    other = subprocess.run([*words, "v99.0.0"], capture_output=True, text=True)
    assert (other.returncode, other.stderr.startswith("error: the tag is v99.0.0, and ")) == (1, True)


def test_a_released_chart_names_its_image() -> None:
    """Repository and digest of the release are its defaults, and nothing else changes."""
    text, digest = (CHART / "values.yaml").read_text(), f"sha256:{'a' * 64}"
    was, now = (yaml.safe_load(each) for each in (text, release_version.with_image(text, "r/p", digest)))
    assert (now["image"]["repository"], now["image"]["digest"]) == ("r/p", digest)
    assert {**now, "image": was["image"]} == was


def test_the_image_is_built_anew_each_week() -> None:
    """On its base as it is then, with the rights of a release's image and no more."""
    workflow = WORKFLOW.with_name("rebuild.yml")
    assert yaml.safe_load(workflow.read_text())[True]["schedule"] == [{"cron": "17 4 * * 1"}]
    [job] = jobs(workflow).values()
    assert job["permissions"] == jobs()["image"]["permissions"]
    [build] = [step["with"] for step in job["steps"] if "build-push" in step.get("uses", "")]
    assert (build["pull"], build["no-cache"]) == (True, True)


@pytest.mark.parametrize("name", ["release", "rebuild"])
def test_the_base_is_that_of_the_day_by_its_digest(name: str) -> None:
    """A release takes it as each week's build does: what the Dockerfile names is for builds by hand."""
    steps = jobs(WORKFLOW.with_name(f"{name}.yml"))["image"]["steps"]
    [build] = [step["with"] for step in steps if "build-push" in step.get("uses", "")]
    assert "PYTHON=${{ steps.base.outputs.tag }}" in build["build-args"].splitlines()
    [base] = [step["run"] for step in steps if step.get("id") == "base"]
    assert "imagetools inspect python:3.11-slim-bookworm" in base
    assert "@${digest:?" in base
    image = (ROOT / build["file"]).read_text()
    bases = {line.split()[1] for line in image.splitlines() if line.startswith("FROM ")}
    assert bases == {"python:${PYTHON}"}


def test_the_modules_are_one_archive(tmp_path: Path) -> None:
    """It is the same twice, and every module that a module of it names is in it; tests are not."""
    assert terraform_archive.archive() == terraform_archive.archive()
    with tarfile.open(fileobj=io.BytesIO(terraform_archive.archive())) as tar:
        tar.extractall(tmp_path, filter="data")
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"LICENSE", "google/functions.tf", "aws/functions.tf", "modules/settings/main.tf"} <= found
    assert not [path for path in found if "tests/" in path or ".terraform/" in path or path.endswith(".tfstate")]
    for path in tmp_path.rglob("*.tf"):
        for source in re.findall(r'^\s*source\s*=\s*"(\.[^"]*)"', path.read_text(), re.M):
            assert [*(path.parent / source).glob("*.tf")], f"{path}: {source}"


def test_steps_of_a_release_run_in_a_fresh_clone() -> None:
    """What needs no secret of GitHub's is done, the rest is named with its reason, and a wheel is made."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "release" / "dry_run.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.splitlines()
    assert told[-1].startswith("made pilotlight-")
    assert [
        line for line in told if line.startswith("    ") and line.split(":")[0].strip() not in ("done", "left out")
    ] == []


def package(venv: Path, name: str, told: str) -> None:
    """A package as pip would leave it."""
    info = venv / "lib" / "python3.11" / "site-packages" / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{told}")
    (info / "LICENSE.txt").write_text("as you like")
    (info / "RECORD").write_text(f"{info.name}/METADATA,,\n{info.name}/LICENSE.txt,,\n")


def test_the_bill_names_every_package_with_its_licence(tmp_path: Path) -> None:
    """Packages with version, licence and what they need of each other; the texts lie beside it."""
    package(tmp_path, "pilotlight", "License-Expression: Apache-2.0\nRequires-Dist: One_Thing>=1; python_version>'3'\n")
    package(tmp_path, "one.thing", "Classifier: License :: OSI Approved :: MIT License\nRequires-Dist: gone\n")
    sbom.main([str(tmp_path), str(tmp_path / "out")])
    bill = yaml.safe_load((tmp_path / "out" / "sbom.cdx.json").read_text())
    assert bill["metadata"]["component"]["licenses"] == [{"expression": "Apache-2.0"}]
    [other] = bill["components"]
    assert (other["purl"], other["licenses"]) == ("pkg:pypi/one-thing@1.0", [{"license": {"name": "MIT License"}}])
    assert bill["dependencies"][1] == {"ref": "pkg:pypi/pilotlight@1.0", "dependsOn": ["pkg:pypi/one-thing@1.0"]}
    assert (tmp_path / "out" / "licenses" / "one-thing" / "LICENSE.txt").read_text() == "as you like"


def test_a_package_without_a_licence_is_not_shipped(tmp_path: Path) -> None:
    """The build stops with its name."""
    package(tmp_path, "odd", "")
    with pytest.raises(SystemExit, match="odd: no licence is told"):
        sbom.main([str(tmp_path), str(tmp_path / "out")])


@needs_helm
def test_the_bill_is_cyclonedx(tmp_path: Path) -> None:
    """That of this checkout's own packages is valid by CycloneDX's schema, strictly."""
    found = [each for each in sbom.installed(Path(pytest.__file__).parents[4]) if sbom.licences(each)]
    (tmp_path / "sbom.json").write_text(json.dumps(sbom.bill(sorted(found, key=str))))
    asks = (
        "import sys; from cyclonedx.schema import SchemaVersion;"
        "from cyclonedx.validation.json import JsonStrictValidator;"
        "print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))"
    )
    run = subprocess.run([PYTHON, "-c", asks, tmp_path / "sbom.json"], capture_output=True, text=True)
    assert (len(found) > 30, run.stdout, run.stderr) == (True, "None\n", "")
