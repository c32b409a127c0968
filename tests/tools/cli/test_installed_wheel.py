"""The wheel as a user installs it: without extras. Every command runs, or says what it lacks."""

import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from shell import free_port

from pilotlight.tools.cli.main import build

ROOT = Path(__file__).resolve().parents[3]
HANGS_S = 300.0
FIRST_PLAN_S = 30.0
LARGEST = 100_000_000
"""Bytes of an installation without its bytecode."""
TRACE = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\na,700000,600,1,1000,,team,,\n"
ORIGINAL = (
    "name,num_gpu,creation_time,deletion_time,scheduled_time,qos,cpu_milli,memory_mib,gpu_milli,gpu_spec,pod_phase\n"
)
OIDC = """
{clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}],
 users: [{name: u, user: {auth-provider: {name: oidc, config: {idp-issuer-url: https://id.example.com}}}}],
 contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}
"""
MAIL = """
version: 1
pools: {t4: {instance_type: g4dn.xlarge, max: 1}}
alerts: {channels: {mail: {kind: apprise, url_env: MAIL_URL}}}
"""
SETTINGS = {
    "alerts test": {"PILOTLIGHT_POLICY": "mail.yaml", "MAIL_URL": "mailto://a:b@localhost"},
    "report": {"PILOTLIGHT_CLUSTER": "ml"},
}
SERVES = ("serve", "world", "demo")


class Said(NamedTuple):
    """How a command ended, and its last line of errors where that is not 0."""

    code: int = 0
    line: str = ""


def lacks(extra: str) -> Said:
    """The command needs an extra that is not installed."""
    return Said(2, f"pip install 'pilotlight[{extra}]'")


COMMANDS: dict[str, tuple[str, Said]] = {
    "init": ("--pods {held}/examples/cluster/pods.json --nodes {held}/examples/cluster/nodes.json", Said()),
    "plan": ("--pods {held}/examples/cluster/pods.json --nodes {held}/examples/cluster/nodes.json", Said()),
    "preempt": ("--pods {held}/examples/cluster/pods.json --nodes {held}/examples/cluster/nodes.json", Said()),
    "doctor": ("--kubeconfig oidc.yaml", lacks("kubernetes")),
    "check": ("{held}/policies/cost.yaml", Said()),
    "schema": ("", Said()),
    "send": ("{held}/events/samples/kubernetes/failed_scheduling.json --dry-run", Said()),
    "reconcile": ("--kubeconfig oidc.yaml --dry-run", lacks("kubernetes")),
    "connect": ("--kubeconfig oidc.yaml --dry-run", lacks("kubernetes")),
    "pause": ("--reason trying", Said(2, "nothing is set up here")),
    "resume": ("", Said(2, "nothing is set up here")),
    "approve": ("01782864000000-723475b2", Said(2, "nothing is set up here")),
    "pools": ("", Said(2, "nothing is set up here")),
    "gpus": ("", Said(2, "nothing is set up here")),
    "takeover": ("--kubeconfig oidc.yaml --dry-run", Said(2, "PILOTLIGHT_POOLS")),
    "handback": ("--kubeconfig oidc.yaml --dry-run", lacks("kubernetes")),
    "uninstall": ("--kubeconfig oidc.yaml --dry-run", lacks("kubernetes")),
    "kueue take": ("research --kubeconfig oidc.yaml --dry-run", lacks("kubernetes")),
    "kueue handback": ("--kubeconfig oidc.yaml --dry-run", lacks("kubernetes")),
    "manifests placement": ("", Said()),
    "manifests rules": ("", Said()),
    "manifests quota": ("", Said(2, "no budget of the policy is of a team")),
    "manifests queues": ("--for kueue", Said(2, "no budget of the policy is of a team")),
    "manifests nodepools": ("", Said()),
    "manifests prepull": ("--image registry.example/llm:1", Said()),
    "manifests hpa": ("web/chat", Said()),
    "manifests keda": ("web/chat --query queue_length", Said()),
    "manifests sharing": ("--prometheus http://127.0.0.1:1 --price 3", Said(1, "is that a Prometheus?")),
    "lint": ("{held}/examples/cluster", Said()),
    "status": ("", Said(2, "nothing is set up here")),
    "shadow report": ("--days 7", Said(2, "nothing is set up here")),
    "shadow canary": ("", Said(2, "nothing is set up here")),
    "deadline": ("--work 24h --by 48h --price 3 --spot 1", Said()),
    "queues": ("", Said()),
    "reclaim list": ("", Said(2, "nothing is set up here")),
    "reclaim snooze": ("ml/ada --dry-run", Said(2, "nothing is set up here")),
    "reclaim wake": ("ml/ada --dry-run", Said(2, "nothing is set up here")),
    "waste": ("--prometheus http://127.0.0.1:1 --price 3", Said(1, "is that a Prometheus?")),
    "runs": ("trace.csv", Said()),
    "tune": ("trace.csv --values 1,2 --against keda --processes 1", Said()),
    "lift": ("--kubeconfig oidc.yaml --dry-run", lacks("kubernetes")),
    "conformance": ("--cloud civo --pool t4 --max-usd 2 --dry-run", Said(2, "PILOTLIGHT_POOLS")),
    "why": ("ml-research/train-0", Said(2, "nothing is set up here")),
    "report": ("--html month.html", Said()),
    "bill": ("", Said(2, "nothing is set up here")),
    "targets": ("", Said(2, "nothing is set up here")),
    "commitments": ("--rate g4dn.xlarge:one-year=0.3", Said()),
    "whatif": ("scale-to-zero", Said()),
    "cost-of-self": ("--events-per-day 2000", Said()),
    "sizes": ("g4g.40.kube.small --region LON1", Said(2, "CIVO_TOKEN")),
    "prices": ("{held}/data/catalogs/articles.yaml --region eu-west-1 --dry-run", Said(2, "can be refreshed")),
    "replay": ("trace.csv --report replay.html", Said()),
    "week": ("--trace trace.csv", Said()),
    "synth": ("--seed 1 -o week.csv.gz", Said()),
    "stats": ("trace.csv", Said()),
    "trace": ("--from openb original.csv -o openb.csv", Said()),
    "drill": ("", Said(2, "PILOTLIGHT_WORLD")),
    "budget": ("", Said(2, "nothing is set up here")),
    "alerts test": ("--channel mail", lacks("alerts")),
    "alerts ack": ("finding-selector/1a2b3c --by ann", Said(2, "nothing is set up here")),
    "audit verify": ("", Said(2, "nothing is set up here")),
    "audit export": ("audit.jsonl", Said(2, "nothing is set up here")),
    "show": ("docs/guides/kubernetes.md", Said()),
    "notice-agent": ("--cloud gcp --metadata http://127.0.0.1:1 --dry-run", Said(1, "no metadata server")),
    "monitor": ("--recorded {held}/examples/cluster/gpu_looks.json --once", Said()),
    "spot": ("", Said(2, "the policy has no spot pool")),
    "alerts list": ("", Said(2, "nothing is set up here")),
    "alerts redeliver": ("", Said(2, "nothing is set up here")),
    "state ls": ("", Said(2, "nothing is set up here")),
    "state get": ("memory/local", Said(1, "there is no such record")),
    "state export": ("out.jsonl", Said()),
    "state import": ("in.jsonl", Said(2, "holds no record")),
    "state init": ("--state dynamodb:pilotlight", lacks("aws")),
}
"""Every command but those that serve, and what becomes of it where no extra is installed."""


class Installed(NamedTuple):
    """A venv that the wheel was installed into."""

    venv: Path

    @property
    def held(self) -> Path:
        """What the wheel holds beside the package."""
        return next(self.venv.glob("lib/python*/site-packages/pilotlight/_defaults"))

    def begin(self, home: Path, *words: str, **environ: str) -> subprocess.Popen[str]:
        """A command by a user who has nothing else, in an empty folder."""
        own = {"HOME": str(home), "PATH": "/usr/bin:/bin", "COLUMNS": "160", "LANG": "C.UTF-8", **environ}
        return subprocess.Popen(
            [self.venv / "bin" / "pilotlight", *words], cwd=home, env=own, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, home: Path, *words: str, **environ: str) -> tuple[int, list[str]]:
        """How it ended, and its lines of errors."""
        process = self.begin(home, *words, **environ)
        _, said = process.communicate(timeout=HANGS_S)
        return process.returncode, said.splitlines()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one wheel, of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    return next(folder.glob("*.whl"))


def install(wanted: str, venv: Path) -> Installed:
    """A new venv with it, in the versions that the lock has. The test is skipped where PyPI cannot be reached."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pins = venv / "pins.txt"
    lock = (ROOT / "requirements.lock").read_text()
    pins.write_text("\n".join(line.rstrip("\\ ") for line in lock.splitlines() if "==" in line))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    done = _said([*pip, "--python", str(venv / "bin" / "python"), "install", "--constraint", str(pins), wanted])
    if done.returncode:
        tried = _said([*pip, "download", "--no-cache-dir", "--no-deps", "--dest", str(venv / "tried"), "tzdata"])
        if tried.returncode:
            pytest.skip(f"PyPI cannot be reached: {tried.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return Installed(venv)


def _said(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """``pip install pilotlight``."""
    return install(str(wheel), tmp_path_factory.mktemp("installed"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with what the commands below are given."""
    (tmp_path / "trace.csv").write_text(TRACE)
    (tmp_path / "original.csv").write_text(ORIGINAL + "p,1,0,600,10,LS,1000,1024,1000,,Succeeded\n")
    (tmp_path / "oidc.yaml").write_text(OIDC)
    (tmp_path / "mail.yaml").write_text(MAIL)
    (tmp_path / "in.jsonl").write_text("")
    return tmp_path


def leaves(command: Any, path: str = "") -> Iterator[str]:
    """The full name of every command."""
    for name, below in getattr(command, "commands", {}).items():
        yield from leaves(below, f"{path} {name}") if hasattr(below, "commands") else [f"{path} {name}".strip()]


EVERY = sorted(leaves(typer.main.get_command(build([]))))


def test_no_command_is_left_out() -> None:
    """What is tried below is all that there is."""
    assert sorted([*COMMANDS, *SERVES]) == EVERY


@pytest.mark.parametrize(
    "folder",
    [
        *("policies", "events/samples", "examples/cluster", "examples/demo", "data", "functions"),
        *("infra/kubernetes", "infra/prometheus", "infra/grafana", "docs/guides"),
    ],
)
def test_the_wheel_holds_what_commands_open(wheel: Path, folder: str) -> None:
    """Every file of the folder."""
    held = {name.partition("pilotlight/_defaults/")[2] for name in zipfile.ZipFile(wheel).namelist()}
    here = [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert here
    assert {path.relative_to(ROOT).as_posix() for path in here} <= held


def test_the_first_plan_comes_from_the_wheel_alone(installed: Installed, tmp_path: Path) -> None:
    """In an empty folder, of the sample cluster: in less than 30 s, from less than 100 MB, and nothing is written."""
    began = time.monotonic()
    process = installed.begin(tmp_path, "plan", "--sample")
    printed, said = process.communicate(timeout=HANGS_S)
    assert (process.returncode, said) == (0, "")
    assert time.monotonic() - began < FIRST_PLAN_S
    assert "  buy       3 nodes, $66.066/h: 2 x a100/p4d.24xlarge/on-demand" in printed
    assert list(tmp_path.iterdir()) == []
    size = sum(path.stat().st_size for path in installed.venv.rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert size < LARGEST


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs_or_names_what_it_lacks(installed: Installed, home: Path, command: str) -> None:
    """With the files of the wheel, in a folder that is no checkout; what is missing is one line."""
    words, said = COMMANDS[command]
    line = words.format(held=installed.held)
    code, lines = installed.run(home, *command.split(), *line.split(), **SETTINGS.get(command, {}))
    told = [each for each in lines if each.startswith("error:")]
    assert (code, len(told)) == (said.code, 1 if said.line else 0), lines
    assert said.line in "".join(told)


def test_a_first_policy_is_checked_and_planned_by(installed: Installed, home: Path) -> None:
    """What `init` writes, `check` and `plan` take; and the version is that of the wheel."""
    files = [f"--{what}={installed.held}/examples/cluster/{what}.json" for what in ("pods", "nodes")]
    for words in (
        ["init", *files],
        ["check", "policy.yaml"],
        ["plan", *files, "--policy", "policy.yaml"],
        ["--version"],
    ):
        assert installed.run(home, *words) == (0, [])


@pytest.mark.parametrize(
    ("words", "begun"),
    [
        pytest.param("serve --port {port}", "POST http", id="serve"),
        pytest.param("serve --port {port} --workers 2", "POST http", id="serve with workers"),
        pytest.param("world --port 0", "world http", id="world"),
        pytest.param("demo", "An hour", id="demo"),
    ],
)
def test_what_serves_begins(installed: Installed, home: Path, words: str, begun: str) -> None:
    """The functions, the world and the demo's files are in the wheel; Ctrl-C ends it."""
    process = installed.begin(home, *words.format(port=free_port()).split())
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith(begun)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=HANGS_S)
    assert (process.returncode, "Traceback" in said) == (130, False)
