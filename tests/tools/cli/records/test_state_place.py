"""Where a command finds the state: one place for each person, ``--state``, and what ``state init`` makes ready."""

import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput
from pilotlight.settings import Settings
from pilotlight.state_schema.marks import CHAT, Mark
from pilotlight.tools.cli.main import OPEN_STATE, _name, build

HOMES = {
    "the person's own": ({"HOME": "/home/ada"}, "sqlite:/home/ada/.local/state/pilotlight/state.db"),
    "where their state lies": (
        {"HOME": "/home/ada", "XDG_STATE_HOME": "/var/ada"},
        "sqlite:/var/ada/pilotlight/state.db",
    ),
    "a relative one does not count": (
        {"HOME": "/home/ada", "XDG_STATE_HOME": "state"},
        "sqlite:/home/ada/.local/state/pilotlight/state.db",
    ),
    "Pilotlight's own": ({"HOME": "/home/ada", "PILOTLIGHT_HOME": "/srv/p"}, "sqlite:/srv/p/state.db"),
    "nobody's": ({}, "sqlite:.pilotlight/state.db"),
}


@pytest.mark.parametrize(("environ", "state"), HOMES.values(), ids=HOMES.keys())
def test_the_state_lies_in_one_place_for_each_person(environ: dict[str, str], state: str) -> None:
    """The folder in which a command runs does not decide what is known."""
    settings = Settings.from_environ(environ)
    assert settings.state == state
    assert settings.outbox == state.replace("sqlite:", "local:").replace("state.db", "outbox")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home, with nothing in it."""
    for name in ("PILOTLIGHT_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PILOTLIGHT_STATE", "")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    """The command's outcome; what it raises goes on to the test."""
    return CliRunner().invoke(build(list(words)), list(words), catch_exceptions=False)


def test_a_state_that_is_not_there_or_empty_is_said_in_one_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On stderr, so that what a program reads stays as it is; and not once there is something."""
    monkeypatch.setenv("PILOTLIGHT_CLUSTER", "ml")
    place = f"sqlite:{home}/.local/state/pilotlight/state.db"
    for _ in range(2):  # A question makes no file.
        assert run("audit", "verify", "--json").stderr == f"state: {place} is not there\n"
    store = SqliteState(Path(place.removeprefix("sqlite:")))
    assert run("state", "ls", "--json").stderr == f"state: {place} is empty\n"
    CHAT.put(store, "1", Mark())
    again = run("state", "ls", "--json")
    assert again.stderr == ""
    assert [item["key"] for item in json.loads(again.stdout)] == ["chat/1"]


def test_a_state_of_before_in_this_folder_is_pointed_at(home: Path) -> None:
    """Whoever began in this folder is told how to go on there."""
    SqliteState(home / ".pilotlight" / "state.db")
    hint = "; one of before is in .pilotlight/state.db: --state sqlite:.pilotlight/state.db"
    for words in (("audit", "verify"), ("state", "ls")):
        with pytest.raises(BadInput, match=f"nothing is set up here: .*{hint}$"):
            run(*words)


def test_another_state_is_named_by_an_option(home: Path) -> None:
    """``--state`` goes before the environment, for the command that has it."""
    CHAT.put(SqliteState(home / "other.db"), "1", Mark())
    assert "chat/1" in run("state", "ls", "--state", f"sqlite:{home / 'other.db'}").stdout
    with pytest.raises(BadInput, match="use memory: or sqlite:PATH"):
        run("state", "ls", "--state", "nowhere")


@pytest.mark.parametrize("command", sorted(OPEN_STATE))
def test_every_command_that_opens_the_state_takes_the_option(command: str) -> None:
    """Groups too, in each of their commands."""
    group = build([command])
    groups = (one.typer_instance for one in group.registered_groups if one.typer_instance)
    inside = [[_name(info)] for one in groups for info in one.registered_commands]
    for words in inside or [[]]:
        shown = CliRunner().invoke(build([command]), [command, *words, "--help"], env={"COLUMNS": "200"})
        assert "--state" in shown.output, f"{command} {words}"


@pytest.mark.parametrize("words", [("lift",), ("manifests", "placement")], ids=" ".join)
def test_a_command_that_opens_no_state_says_nothing_of_it(words: tuple[str, str]) -> None:
    """It has no such option: where the state lies is nothing to it."""
    shown = CliRunner().invoke(build([words[0]]), [*words, "--help"], env={"COLUMNS": "200"})
    assert "--dry-run" in shown.output or "--policy" in shown.output
    assert "--state" not in shown.output


def test_a_file_is_made_ready_and_left_alone_then(home: Path) -> None:
    """A dry run makes nothing; the second run finds it there."""
    address = f"sqlite:{home / 'made' / 's.db'}"
    assert run("state", "init", "--state", address, "--dry-run").stdout == f"would make the file {home}/made/s.db\n"
    assert not (home / "made").exists()
    assert run("state", "init", "--state", address).stdout == f"made the file {home}/made/s.db\n"
    assert run("state", "init", "--state", address).stdout == f"the file {home}/made/s.db is there already\n"


def test_a_table_is_made_ready_and_left_alone_then(
    dynamodb_server: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Table and expiry are made once; what is there stays; another's table is refused by its keys."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_server)
    table = f"state-{uuid4()}"
    address = f"dynamodb:{table}"
    dry = run("state", "init", "--state", address, "--dry-run", "--json")
    assert json.loads(dry.stdout)["did"] == [
        f"would make the table {table}, paid by request",
        "would let it delete what has expired",
    ]
    made = run("state", "init", "--state", address).stdout
    assert made == f"made the table {table}, paid by request\nlet it delete what has expired\n"
    assert run("state", "init", "--state", address).stdout == f"the table {table} is there already\n"
    state = DynamoDBState(table, endpoint=dynamodb_server)
    state.put("chat/1", b'{"schema":2}')
    assert "chat/1" in run("state", "ls", "--state", address).stdout
    described = state.client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert described["AttributeName"] == "expires"
    theirs = f"theirs-{uuid4()}"
    state.client.create_table(
        TableName=theirs,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    with pytest.raises(BadInput, match="is not Pilotlight's"):
        run("state", "init", "--state", f"dynamodb:{theirs}")


def test_a_firestore_that_answers_is_ready(
    firestore_emulator: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its collection is made by the first record, so there is nothing to make."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_emulator)
    said = run("state", "init", "--state", f"firestore:demo/(default)/state-{uuid4()}").stdout
    assert "answers" in said


def test_a_world_takes_the_policy_of_the_environment(tmp_path: Path) -> None:
    """As serve does: the pools of both are those of one file."""
    environ = {**os.environ, "PILOTLIGHT_POLICY": str(tmp_path / "not-there.yaml")}
    begin = "from pilotlight.tools.cli.main import run"
    code = f"import sys; {begin}; sys.argv = ['pilotlight', 'world', '--port', '0']; run()"
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "not-there.yaml" in done.stderr
