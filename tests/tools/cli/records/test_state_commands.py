"""pilotlight state, as a person runs it: look, carry away, bring back, and never write over anything unasked."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput, Failed
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.bill import KeptDays
from pilotlight.flow.records import ledger
from pilotlight.ports.state import State
from pilotlight.state_schema.billing_records import CLOSED
from pilotlight.state_schema.decision_records import MEMORY
from pilotlight.state_schema.lease_records import FENCE as FENCES
from pilotlight.tools.cli.main import build
from pilotlight.tools.cli.records.state_families import read

FENCE = b'{"schema":2,"fence":7}'
BROKEN = b'{"schema":1,"quaran'


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    """A deployment's store, with a memory, a fence and a told mark in it."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{tmp_path / 'state.db'}")
    state = SqliteState(tmp_path / "state.db", SystemClock())
    state.put("memory/local", MEMORY.format.write(Memory()))
    ledger.mark_told(state, "local", "finding-pvc/1")
    state.put("fence/local", FENCE)
    return state


def run(*words: object) -> Result:
    """The command's outcome; what it raises goes on to the test."""
    return CliRunner().invoke(build(["state"]), ["state", *map(str, words)], catch_exceptions=False)


def test_ls_lists_the_records_of_a_prefix(state: State) -> None:
    """Each record comes with its size and version, as JSON too; what cannot be read says why."""
    state.put("memory/other", BROKEN)
    items = json.loads(run("ls", "memory/", "--json").stdout)
    assert [(i["key"], bool(i["unreadable"])) for i in items] == [("memory/local", False), ("memory/other", True)]
    assert items[1]["size"] == len(BROKEN)
    assert "fence/local" in run("ls").stdout
    assert "no record begins with 'x/'" in run("ls", "x/").stdout


def test_get_prints_a_record_and_says_what_is_wrong_with_it(state: State) -> None:
    """A whole record is JSON on stdout; a broken one is printed as it is, with the reason on stderr."""
    assert json.loads(run("get", "fence/local").stdout) == {"schema": 2, "fence": 7}
    state.put("memory/local", BROKEN)
    broken = run("get", "memory/local")
    assert broken.stdout.encode().strip() == BROKEN
    assert "memory/local: cannot be read" in broken.stderr


def test_get_of_an_absent_key_fails(state: State) -> None:
    """It names the key and where to look."""
    with pytest.raises(Failed, match=r"memory/nowhere.*state ls"):
        run("get", "memory/nowhere")


def test_an_export_comes_back_into_another_store(state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every record of one store is in the other, byte for byte."""
    run("export", tmp_path / "state.jsonl")
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{tmp_path / 'other.db'}")
    assert "wrote 3 records" in run("import", tmp_path / "state.jsonl").stdout
    other = SqliteState(tmp_path / "other.db", SystemClock())
    before, after = state.scan("").items, other.scan("").items
    assert [(key, stored.value) for key, stored in after] == [(key, stored.value) for key, stored in before]


def test_an_import_keeps_what_is_there_unless_told_to_replace_it(state: State, tmp_path: Path) -> None:
    """Records that are there stay and are counted; --replace writes over them; --dry-run does neither."""
    file = tmp_path / "state.jsonl"
    file.write_bytes(
        b'{"key":"fence/local","value":{"schema":2,"fence":9}}\n{"key":"fence/b","value":{"schema":2,"fence":1}}\n'
    )
    counts = {"written": 1, "kept": 1, "left_out": 0}
    assert json.loads(run("import", file, "--dry-run", "--json").stdout) == {**counts, "dry_run": True}
    assert state.get("fence/b") is None
    assert json.loads(run("import", file, "--json").stdout) == {**counts, "dry_run": False}
    found = state.get("fence/local")
    assert found is not None
    assert found.value == FENCE
    run("import", file, "--replace")
    found = state.get("fence/local")
    assert found is not None
    assert read("fence/local", found.value) == FENCES.format.kind(fence=9)


def test_an_import_leaves_out_sums_of_closed_days_and_counts_what_the_next_export_has(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are told apart from the records that are written; those of the store itself go."""
    closed = CLOSED.table.format.write(KeptDays())
    state.put("closed/local/x", closed)
    run("export", tmp_path / "state.jsonl")
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{tmp_path / 'other.db'}")
    other = SqliteState(tmp_path / "other.db", SystemClock())
    other.put("closed/other/x", closed)
    said = run("import", tmp_path / "state.jsonl").stdout
    assert said.splitlines() == [
        "wrote 3 records",
        "1 record of closed days left out: their sums are counted again from the days",
    ]
    assert "3 records in" in run("export", tmp_path / "again.jsonl").stdout


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param(b'{"key":"fence/b","value":{"schema":3,"fence":1}}', "schema 3", id="a newer schema"),
        pytest.param(b'{"key":"fence/b","value":{"schema":2', "truncated", id="a line cut off"),
        pytest.param(b'{"key":"fence/b"}', "truncated", id="no record"),
        pytest.param(b'{"key":"fence/b","raw":"x"}', "", id="broken base64"),
        pytest.param(b'{"key":"fence/b","raw":"AAE="}', "cannot be read", id="bytes that are no record"),
        pytest.param(b'{"key":"lamp/b","value":{}}', "no key of Pilotlight's", id="a foreign key"),
        pytest.param(b'{"key":"fence/b","ttl":1,"value":{}}', "ttl", id="a field there is not"),
        pytest.param(b"\xff", "", id="no text"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(state: State, tmp_path: Path, line: bytes, says: str) -> None:
    """Good lines before it are not written either."""
    file = tmp_path / "state.jsonl"
    file.write_bytes(b'{"key":"fence/a","value":{"schema":2,"fence":1}}\n' + line + b"\n")
    with pytest.raises(BadInput, match=f"line 2: .*{says}"):
        run("import", file)
    assert state.get("fence/a") is None


def test_a_broken_record_is_exported_and_can_be_mended(state: State, tmp_path: Path) -> None:
    """Its line holds its bytes; a mended line goes back over it with --replace."""
    state.put("memory/local", BROKEN)
    run("export", tmp_path / "state.jsonl", "--prefix", "memory/")
    assert list(json.loads((tmp_path / "state.jsonl").read_text())) == ["key", "raw"]
    whole = MEMORY.format.write(Memory())
    (tmp_path / "mended.jsonl").write_bytes(b'{"key":"memory/local","value":' + whole + b"}\n")
    run("import", tmp_path / "mended.jsonl", "--replace")
    assert ledger.recall(state, "local").memory == Memory()


def test_a_file_that_cannot_be_opened_is_named(state: State, tmp_path: Path) -> None:
    """One line that says which file, for reading and for writing."""
    for words in (("import", tmp_path / "none.jsonl"), ("export", tmp_path / "none" / "x.jsonl")):
        with pytest.raises(BadInput, match=r"none.*: No such file"):
            run(*words)
