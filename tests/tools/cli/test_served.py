"""One notion of which cluster: a serve that runs over the same state, else what is set up, else a line that says so."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fleet import free_port, until
from pilotlight.errors import BadInput
from pilotlight.settings import Settings
from pilotlight.tools.cli import served
from pilotlight.tools.cli.main import build

ROOT = Path(__file__).resolve().parents[3]
PILOTLIGHT = Path(sys.executable).parent / "pilotlight"
POD = ROOT / "events" / "samples" / "pilotlight" / "pod_pending.json"
QUESTIONS = ["status", "pools", "why nobody", "budget", "report", "alerts list", "state ls", "audit verify"]


def _environ(home: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PILOTLIGHT_")}
    return {**own, "PILOTLIGHT_HOME": str(home), "COLUMNS": "200", "NO_COLOR": "1"}


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in served.SHARED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{tmp_path}/home/state.db")
    monkeypatch.setenv("PILOTLIGHT_HOME", f"{tmp_path}/home")


def ask(words: str) -> Result:
    """A command in this process."""
    return CliRunner().invoke(build(words.split()), words.split(), env={"COLUMNS": "200"})


@pytest.mark.parametrize("words", QUESTIONS)
def test_a_question_writes_nothing(tmp_path: Path, words: str) -> None:
    """No folder is made for a state that is not there."""
    ask(words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", QUESTIONS[:4])
def test_with_nothing_set_up_the_next_command_is_said(words: str) -> None:
    """In one line, in place of pools that nobody has."""
    done = ask(words)
    assert isinstance(done.exception, BadInput)
    assert str(done.exception).startswith("nothing is set up here: no cluster is named, and no pilotlight serve runs")
    assert "pilotlight plan --sample" in str(done.exception)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A serve with a policy of its own over the state in a folder."""
    folder, port = tmp_path_factory.mktemp("home"), free_port()
    (folder / "policy.yaml").write_text((ROOT / "examples" / "policy.yaml").read_text())
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [PILOTLIGHT, "serve", "--port", str(port), "--tick", "60"], stdout=log, stderr=log, cwd=folder,
            env={**_environ(folder), "PILOTLIGHT_POLICY": "policy.yaml"},
        )  # fmt: skip
    try:
        until(lambda: (folder / "state.db.serve").exists() or process.poll() is not None)
        yield folder
    finally:
        process.terminate()
        process.wait(60)


def _said(home: Path, *words: str) -> str:
    done = subprocess.run([PILOTLIGHT, *words], env=_environ(home), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commands_find_the_serve_over_their_state(home: Path) -> None:
    """Without its address or settings: send reaches it, and the others see its world, which the node came to."""
    left = json.loads((home / "state.db.serve").read_text())
    assert left["settings"]["PILOTLIGHT_POLICY"] == str(home / "policy.yaml")
    assert "buys 1 x " in _said(home, "send", str(POD)) + _said(home, "why", "nlp/finetune-0").replace(
        "bought", "buys 1 x"
    )
    head = f"cluster local, a world at {left['settings']['PILOTLIGHT_WORLD']}; served at {left['url']}; "
    for words in (["status"], ["pools"], ["why", "nlp/finetune-0"], ["budget"]):
        assert _said(home, *words).startswith(f"{head}state sqlite:{home}/state.db\n"), words
    assert "lit: " in _said(home, "status")
    assert "$3.06/h" in _said(home, "status")


def test_a_serve_that_is_gone_is_not_found(tmp_path: Path) -> None:
    """A file that it could not take away names a process that is no more, or a port that nobody listens at."""
    place = tmp_path / "state.db.serve"
    settings = Settings(state=f"sqlite:{tmp_path}/state.db")
    for said in ('{"url":"http://127.0.0.1:9","pid":1}', f'{{"url":"x","pid":{os.getpid()}}}', "no JSON"):
        place.write_text(said)
        assert served.running_serve(settings) is None
    served.forget(settings)
    assert not place.exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(cluster="prod", api="in-cluster"), "cluster prod at in-cluster; state memory:"),
        (Settings(world="http://w:1"), "cluster local, a world at http://w:1; state memory:"),
    ],
)
def test_the_header_names_the_cluster_and_its_state(settings: Settings, said: str) -> None:
    """Where it is, and where what is known of it lies."""
    assert served.header(settings, "memory:") == said
