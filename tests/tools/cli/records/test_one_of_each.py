"""What a command counts is one of it in the singular: one record, one file, one row."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.facts.decisions import Plan, Record
from pilotlight.facts.memory import Memory
from pilotlight.flow.records import ledger
from pilotlight.settings import deployed_settings
from pilotlight.state_schema.decision_records import MEMORY
from pilotlight.tools.cli.main import build
from pilotlight.wiring import App


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, with a state that holds nothing."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{tmp_path / 'state.db'}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(line: str) -> str:
    """What a command prints."""
    return CliRunner().invoke(build([line.split()[0]]), line.split(), catch_exceptions=False).stdout


def test_one_record_is_1_record_and_never_1_records() -> None:
    """On its way out of a state, into one, and where it stays as it was."""
    MEMORY.put(App(deployed_settings()).state, "local", Memory())
    assert said("state export kept.jsonl") == "1 record in kept.jsonl\n"
    new = "--state sqlite:new.db"
    assert said(f"state import kept.jsonl --dry-run {new}") == "would write 1 record\n"
    assert said(f"state import kept.jsonl {new}") == "wrote 1 record\n"
    kept = said(f"state import kept.jsonl {new}").splitlines()[-1]
    assert kept == "1 record there already, left as before; --replace writes over what is there"


def test_one_link_of_the_audit_chain_is_1_record() -> None:
    """Verified and exported."""
    at = datetime.now(UTC) - timedelta(hours=1)
    record = Record(id=ledger.new_id(at, "a"), cluster="local", flow="reconcile", trigger="t", at=at, status="open",
                    plan=Plan(), steps=())  # fmt: skip
    ledger.close(App(deployed_settings()).state, record)
    assert "\n1 record, from 1 to 1, is as it was written\n" in said("audit verify")
    assert "\n1 record in chain.jsonl; anchor 1:" in said("audit export chain.jsonl")


def test_one_file_without_a_fault_is_1_file(here: Path) -> None:
    """The last line of lint."""
    (here / "one.yaml").write_text("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n")
    assert said("lint one.yaml").splitlines()[-1].startswith("1 file: 0 faults, 0 warnings")
