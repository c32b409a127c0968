"""The guide's backup and restore, walked on each store that lasts: what was there before is there again, and counts."""

import re
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.ports.state import State
from pilotlight.settings import deployed_settings
from pilotlight.state_schema.cluster_records import PAUSE
from pilotlight.state_schema.lease_records import FENCE, Fence
from pilotlight.tools.cli.main import build
from pilotlight.wiring import App

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "backup.md"


def run(line: str) -> str:
    """What a command of the guide prints."""
    words = line.removeprefix("pilotlight ").split()
    return CliRunner().invoke(build([words[0]]), words, catch_exceptions=False).stdout


@pytest.fixture(params=["sqlite", "dynamodb", "firestore"])
def places(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The address of a store, and of an empty one of its kind, as a cloud's own recovery or a new disk gives it."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("PILOTLIGHT_CLUSTER", "prod")
    monkeypatch.setenv("PILOTLIGHT_API", "http://127.0.0.1:9")
    monkeypatch.setenv("PILOTLIGHT_POOLS", "advisor")
    monkeypatch.chdir(tmp_path)
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/state.db", f"sqlite:{tmp_path}/new.db"
    if request.param == "dynamodb":
        monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("dynamodb_server"))
        return f"dynamodb:of-{tmp_path.name[:40]}", f"dynamodb:new-{tmp_path.name[:40]}"
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", request.getfixturevalue("firestore_emulator"))
    return f"firestore:demo/(default)/of-{tmp_path.name}", f"firestore:demo/(default)/new-{tmp_path.name}"


def _there(state: State) -> dict[str, bytes]:
    """Every record but those of who looks, and of pauses."""
    page = state.scan("")
    kept = {key: stored.value for key, stored in page.items}
    while page.next:
        page = state.scan("", after=page.next)
        kept |= {key: stored.value for key, stored in page.items}
    return {key: value for key, value in kept.items() if not key.startswith(("pause/", "lease/"))}


def test_what_an_export_holds_comes_back_in_the_guides_order(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty place, a pause, a dry run, the import, and then all goes on; the pause outlives it. The next look
    is told since when nothing is known.
    """
    before, after = places
    monkeypatch.setenv("PILOTLIGHT_STATE", before)
    run("pilotlight state init")
    state = App(deployed_settings()).state
    looked = Fence(fence=7, at=state.now() - timedelta(hours=1))
    FENCE.put(state, "prod", looked)
    FENCE.put(state, "other", Fence(fence=2))
    kept = _there(state)
    assert run("pilotlight state export backup.jsonl") == f"{len(kept)} records in backup.jsonl\n"

    monkeypatch.setenv("PILOTLIGHT_STATE", after)
    run("pilotlight state init")
    assert run("pilotlight pause --reason restore").endswith("paused all pools, reason restore\n")
    assert run("pilotlight state import backup.jsonl --dry-run") == f"would write {len(kept)} records\n"
    assert run("pilotlight state import backup.jsonl --replace") == f"wrote {len(kept)} records\n"
    state = App(deployed_settings()).state
    assert _there(state).keys() == kept.keys()
    assert (entry := FENCE.get(state, "prod"))
    assert entry.value == msgspec.structs.replace(looked, lost_since=looked.at)
    assert [entry.value.reason for entry in PAUSE.scan(state, "prod/")] == ["restore"]
    assert run("pilotlight resume").endswith("resumed all pools\n")


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 is found")
def test_sqlites_own_backup_comes_back_by_the_guides_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of after the backup are gone, those of before are whole, and the lot is a state that is opened."""
    backup, restore = re.findall(r'`(sqlite3 state\.db "\.(?:backup|restore) backup\.db")`', GUIDE.read_text("utf-8"))
    state = SqliteState(tmp_path / "state.db")
    FENCE.put(state, "prod", Fence(fence=7))
    subprocess.run(["bash", "-c", backup], cwd=tmp_path, check=True)
    FENCE.put(state, "prod", Fence(fence=8))
    FENCE.put(state, "other", Fence(fence=2))
    del state
    subprocess.run(["bash", "-c", restore], cwd=tmp_path, check=True)
    found = SqliteState(tmp_path / "state.db")
    assert [key for key, _ in found.scan("").items] == ["fence/prod"]
    assert (entry := FENCE.get(found, "prod"))
    assert entry.value.fence == 7
