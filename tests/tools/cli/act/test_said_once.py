"""What waits for a person's approval: its reason stands once in the answer of send, and once in why."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.tools.cli.main import build

ROOT = Path(__file__).resolve().parents[4]
POLICY = """
version: 1
pools: {v100: {instance_type: p3.2xlarge, max: 4}}
caps: {approve_over: {usd_per_hour: 1}}
classes: {training: {gpu_models: any}}
"""
REASON = "$3.06 an hour would be spent, over $1.00: it waits for approval"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(f"send {ROOT}/events/samples/pilotlight/pod_pending.json", id="send"),
        pytest.param("why nlp/finetune-0", id="why"),
    ],
)
def test_the_reason_of_a_purchase_over_approve_over_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """With what would be bought."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    for name, value in {"HOME": tmp_path, "POLICY": tmp_path / "policy.yaml"}.items():
        monkeypatch.setenv(f"PILOTLIGHT_{name}", str(value))
    sent = f"send {ROOT}/events/samples/pilotlight/pod_pending.json"
    said = ""
    for line in dict.fromkeys((sent, words)):
        done = CliRunner().invoke(build(line.split()), line.split(), catch_exceptions=False, env={"COLUMNS": "200"})
        said = done.stdout
    assert said.count(REASON) == 1
    assert "v100/p3.2xlarge/on-demand" in said
