"""The record of an approval names who gave it: by name, or this machine's user. Nobody approves over HTTP."""

import getpass
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.errors import BadInput
from pilotlight.facts.limits.routes import ROUTES
from pilotlight.settings import Settings
from pilotlight.state_schema.cluster_records import APPROVED
from pilotlight.tools.cli.main import build
from pilotlight.wiring import App

ROOT = Path(__file__).resolve().parents[4]
POLICY = """
version: 1
pools: {v100: {instance_type: p3.2xlarge, max: 4}}
caps: {approve_over: {usd_per_hour: 1}}
classes: {training: {gpu_models: any}}
"""


def _run(line: str) -> str:
    words = line.split()
    return CliRunner().invoke(build(words), words, catch_exceptions=False, env={"COLUMNS": "200"}).stdout


@pytest.mark.parametrize("by", ["ann", ""])
def test_an_approval_names_who_gave_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    """In the command's answer and in the state's record, which its decision's audit goes by."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    for name, value in {"HOME": tmp_path, "POLICY": tmp_path / "policy.yaml"}.items():
        monkeypatch.setenv(f"PILOTLIGHT_{name}", str(value))
    sent = json.loads(_run(f"send {ROOT}/events/samples/pilotlight/pod_pending.json --json"))
    decision = sent["decision"]
    said = _run(f"approve {decision} {f'--by {by}' if by else ''} --state sqlite:{tmp_path}/state.db")
    who = by or getpass.getuser()
    assert f"approved once by {who}, for an hour: 1 of pool v100" in said
    state = App(Settings.from_environ({"PILOTLIGHT_HOME": str(tmp_path)})).state
    assert [entry.value.by for entry in APPROVED.scan(state, "")] == [who]


@pytest.mark.parametrize("by", ["eve\nall is well", "eve\x1b[2J", "x" * 81, "eve\u202ebob"])
def test_a_name_that_is_no_name_approves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    """What would write a line of its own into the answer, or hide in it, is refused before the approval is given."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    for name, value in {"HOME": tmp_path, "POLICY": tmp_path / "policy.yaml"}.items():
        monkeypatch.setenv(f"PILOTLIGHT_{name}", str(value))
    decision = json.loads(_run(f"send {ROOT}/events/samples/pilotlight/pod_pending.json --json"))["decision"]
    words = ["approve", decision, "--by", by, "--state", f"sqlite:{tmp_path}/state.db"]
    with pytest.raises(BadInput, match="--by: write the name of a person"):
        CliRunner().invoke(build(words), words, catch_exceptions=False)
    state = App(Settings.from_environ({"PILOTLIGHT_HOME": str(tmp_path)})).state
    assert not list(APPROVED.scan(state, ""))


def test_no_route_of_http_approves() -> None:
    """So that no record needs a token's name: the right is there for what a person types."""
    assert [route.path for route in ROUTES if "approve" in route.rights] == []
