"""One notion of which cluster: a serve that runs over the same state, else what is set up, else a line that says so."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fleet import free_port, until
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput
from pilotlight.flow.records.lease import acquire
from pilotlight.settings import Settings, deployed_settings
from pilotlight.tools.cli import served
from pilotlight.tools.cli.main import build

ROOT = Path(__file__).resolve().parents[3]
PILOTLIGHT = Path(sys.executable).parent / "pilotlight"
POD = ROOT / "events" / "samples" / "pilotlight" / "pod_pending.json"
QUESTIONS = [
    *("status", "pools", "why nobody", "budget", "report", "alerts list", "state ls", "targets", "bill", "gpus"),
    *("shadow report", "shadow canary", "audit verify", "reclaim list", "reclaim snooze ada", "reclaim wake ada"),
    *("alerts redeliver", "alerts ack fingerprint", "audit export copy.jsonl"),
]
BRAKES = ["pause --reason stop", "resume", "approve 01782864000000-723475b2"]


def _environ(home: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PILOTLIGHT_")}
    return {**own, "PILOTLIGHT_HOME": str(home), "COLUMNS": "200", "NO_COLOR": "1"}


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in served.SHARED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{tmp_path}/home/state.db")
    monkeypatch.setenv("PILOTLIGHT_HOME", f"{tmp_path}/home")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/no-kubeconfig")


def ask(words: str) -> Result:
    """A command in this process."""
    return CliRunner().invoke(build(words.split()), words.split(), env={"COLUMNS": "200"})


@pytest.mark.parametrize("words", QUESTIONS)
def test_of_a_state_that_is_not_there_no_question_says_that_it_is_new(words: str) -> None:
    """Nothing is made by it."""
    assert "is new" not in ask(words).stderr


@pytest.mark.parametrize("words", QUESTIONS)
def test_a_question_writes_nothing(tmp_path: Path, words: str) -> None:
    """No folder is made for a state that is not there."""
    ask(words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [*QUESTIONS, "budget --json", "audit verify --json", "reclaim list --json"])
def test_with_nothing_set_up_the_next_command_is_said(words: str) -> None:
    """In one line, in place of pools that nobody has."""
    _refused(ask(words))


@pytest.mark.parametrize("words", QUESTIONS)
def test_a_question_leaves_files_that_are_no_state_as_they_are(tmp_path: Path, words: str) -> None:
    """Another program's database is refused by name; a file without a byte stays without one."""
    there = tmp_path / "app.db"
    with closing(sqlite3.connect(there)) as other:
        other.execute("CREATE TABLE users (name)")
    (tmp_path / "empty.db").touch()
    was = there.read_bytes()
    done = ask(f"{words} --state sqlite:{there}")
    assert str(done.exception).startswith(f"state {there}: is another program's database (table users)")
    ask(f"{words} --state sqlite:{tmp_path}/empty.db")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"app.db": was, "empty.db": b""}


def _refused(done: Result) -> None:
    assert isinstance(done.exception, BadInput), done.output
    assert str(done.exception).startswith("nothing is set up here: no cluster is named, and no pilotlight serve runs")
    assert "pilotlight plan --sample" in str(done.exception)
    assert done.stdout == ""


@pytest.mark.parametrize("words", ["status", "pools", "gpus", "budget"])
def test_with_a_kubeconfig_the_next_command_names_its_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """The cluster that kubectl would ask is said to be unread, and how it is read."""
    (tmp_path / "kubeconfig").write_text("current-context: prod\nclusters: []\n")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/kubeconfig")
    said = str(ask(words).exception)
    assert "no cluster is named (your kubeconfig's context prod is read where --context names it)" in said
    assert "next: pilotlight plan --context prod, pilotlight init --context prod, " in said


@pytest.mark.parametrize("text", ["", "- a\n", "current-context: [1]\n", "current-context: '\n", "\x00"])
def test_a_kubeconfig_without_a_context_goes_unsaid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Whatever it holds: no context is made up, and the sample is what to try."""
    (tmp_path / "kubeconfig").write_text(text)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/kubeconfig")
    _refused(ask("status"))


@pytest.mark.parametrize("address", ["nonsense", "sqlite:", "dynamodb:"])
def test_an_address_of_no_state_is_told_as_that(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """By option as by variable: the setting and what it takes, before anything is said of a cluster."""
    told = f"state {address!r}: is no address of one: use memory: or sqlite:PATH, dynamodb:TABLE, "
    assert str(ask(f"status --state {address}").exception).startswith(told)
    monkeypatch.setenv("PILOTLIGHT_STATE", address)
    done = ask("status")
    assert isinstance(done.exception, BadInput)
    assert str(done.exception).startswith(told)
    assert str(done.exception).endswith("by --state or PILOTLIGHT_STATE")


@pytest.mark.parametrize("words", BRAKES)
def test_a_brake_where_nothing_is_set_up_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """Nobody would meet it, in a default state that is not there as in one that an ended serve left."""
    monkeypatch.delenv("PILOTLIGHT_STATE")
    _refused(ask(words))
    _refused(ask(f"{words} --state sqlite:{tmp_path}/mistyped.db"))
    assert list(tmp_path.iterdir()) == []
    SqliteState(tmp_path / "home" / "state.db").put("chat/1", b"{}")
    _refused(ask(words))


@pytest.mark.parametrize("named", ["PILOTLIGHT_STATE", "PILOTLIGHT_CLUSTER"])
def test_a_deployed_user_brakes_before_the_first_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """Where the environment names the state or the cluster a pause begins the state, and says which it is."""
    value = {"PILOTLIGHT_STATE": f"sqlite:{tmp_path}/home/state.db", "PILOTLIGHT_CLUSTER": "prod"}[named]
    monkeypatch.delenv("PILOTLIGHT_STATE")
    monkeypatch.setenv(named, value)
    done = ask("pause --reason stop")
    cluster = "prod, a pretend world with pretend dollars"
    cluster = cluster if value == "prod" else f"local{cluster[4:]} (no cluster is set up)"
    assert done.stdout == (f"cluster {cluster}; state sqlite:{tmp_path}/home/state.db\npaused all pools, reason stop\n")
    assert done.stderr == f"state: sqlite:{tmp_path}/home/state.db is new\n"
    assert ask("resume").stdout.endswith("\nresumed all pools\n")


def test_send_status_and_why_name_one_pretend_world(tmp_path: Path) -> None:
    """Without serve and cluster the world of a sent event is pretended: its answer says so, and all that follows."""
    which = "cluster local, a pretend world with pretend dollars (no cluster is set up)"
    head = f"{which}; state sqlite:{tmp_path}/home/state.db\n"
    assert ask(f"send {POD} --dry-run").stdout.startswith(head)
    sent = ask(f"send {POD}").stdout
    assert sent.startswith(f"{head}pod_pending: buys 1 x ")
    assert ask("why nlp/finetune-0").stdout.startswith(head)
    assert ask("state ls").stdout.startswith(head)
    assert "which holds what a pretend world left: pilotlight why and report show it" in str(ask("status").exception)
    lease = acquire(SqliteState(tmp_path / "home" / "state.db"), "prod", "a reconcile")
    assert lease is not None
    lease.release()
    said = str(ask("status").exception)
    assert "which holds records of cluster prod: PILOTLIGHT_CLUSTER=prod pilotlight why" in said


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


def _done(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PILOTLIGHT, *words], env=_environ(home), capture_output=True, text=True, check=False)


def _said(home: Path, *words: str) -> str:
    done = _done(home, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_commands_find_the_serve_over_their_state(home: Path) -> None:
    """Without its address or settings: send reaches it, and the others see its world, which the node came to."""
    left = json.loads((home / "state.db.serve").read_text())
    assert left["settings"]["PILOTLIGHT_POLICY"] == str(home / "policy.yaml")
    assert "buys 1 x " in _said(home, "send", str(POD)) + _said(home, "why", "nlp/finetune-0").replace(
        "bought", "buys 1 x"
    )
    which = f"cluster local, a pretend world at {left['settings']['PILOTLIGHT_WORLD']} with pretend dollars"
    head = f"{which}; served at {left['url']}; "
    until(lambda: "billing_tick never" not in _done(home, "status").stdout)  # Its first tick comes after the address.
    for words in (
        *("status", "pools", "why nlp/finetune-0", "budget", f"send {POD}", "targets", "bill", "alerts list"),
        *(
            "state ls",
            "shadow report",
            "shadow canary",
            "audit verify",
            "reclaim list",
            "alerts redeliver",
            "gpus",
            "reconcile --dry-run",
            "pause --reason look",
        ),
    ):
        assert _said(home, *words.split()).startswith(f"{head}state sqlite:{home}/state.db\n"), words
    plan = _said(home, "plan")
    assert plan.startswith(f"{head}state none, a dry run remembers nothing: pilotlight status goes by pauses")
    assert "nlp/finetune-0 holds GPUs" in plan or "$3.06/h" in plan
    refused = _done(home, "doctor")
    assert (refused.returncode, refused.stderr.startswith(f"error: {head}")) == (2, True)
    status = _said(home, "status")
    assert "lit: " in status
    assert "$3.06/h" in status
    assert "paused: all pools since" in status
    assert _said(home, "resume") == f"{head}state sqlite:{home}/state.db\nresumed all pools\n"


def test_who_names_the_serves_own_world_gets_the_answers_of_the_serve(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its first lines advise for a drill: its policy counts, and an event goes to it. Another world is another's."""
    left = json.loads((home / "state.db.serve").read_text())
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{home}/state.db")
    monkeypatch.setenv("PILOTLIGHT_WORLD", left["settings"]["PILOTLIGHT_WORLD"])
    lent = served.settings_of(served.serve_beside(deployed_settings()), deployed_settings())
    assert lent == {"PILOTLIGHT_POLICY": str(home / "policy.yaml")}
    assert ask(f"send {POD}").stdout.startswith(
        f"cluster local, a pretend world at {left['settings']['PILOTLIGHT_WORLD']} with pretend dollars; served"
    )
    monkeypatch.setenv("PILOTLIGHT_TOKENS", json.dumps({"ops": {"token": "a-token-of-0123456789", "roles": ["send"]}}))
    assert (
        "; served at" not in ask(f"send {POD}").stdout.splitlines()[0]
    )  # A home's own shell has its tokens, and shows none.
    monkeypatch.delenv("PILOTLIGHT_TOKENS")
    for name, value in (("WORLD", "http://127.0.0.1:9"), ("CLUSTER", "other")):
        monkeypatch.setenv(f"PILOTLIGHT_{name}", value)
        assert served.serve_beside(deployed_settings()) is None
        assert "served at" not in served.header(deployed_settings(), "memory:")


def test_a_second_serve_over_the_state_is_refused(home: Path, tmp_path: Path) -> None:
    """It says where the first is and the way out, and the first stays the one that commands find."""
    url = json.loads((home / "state.db.serve").read_text())["url"]
    second = subprocess.run(
        [PILOTLIGHT, "serve", "--port", str(free_port())],
        env=_environ(home), cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert second.returncode == 2, second.stderr
    assert second.stderr.startswith(f"error: a pilotlight serve runs at {url} over sqlite:{home}/state.db already: end")
    assert second.stderr.endswith("or name another state: --state sqlite:PATH\n")
    assert json.loads((home / "state.db.serve").read_text())["url"] == url


@pytest.mark.parametrize("workers", ["1", "2"])
def test_of_two_serves_begun_at_once_one_is_refused(tmp_path: Path, workers: str) -> None:
    """A lock that lives as long as the first is taken before anything else is begun: the second names its address."""
    both = [_begin(tmp_path, port, workers) for port in (free_port(), free_port())]
    try:
        until(lambda: any(process.poll() is not None for process in both))
        refused = next(process for process in both if process.poll() is not None)
        served_by = next(process for process in both if process is not refused)
        until(lambda: (tmp_path / "state.db.serve").exists())
        url = json.loads((tmp_path / "state.db.serve").read_text())["url"]
        assert served_by.poll() is None
        assert refused.wait() == 2
        assert (tmp_path / f"log-{refused.pid}").read_text() == (
            f"error: a pilotlight serve runs at {url} over sqlite:{tmp_path}/state.db already: "
            f"end it (process {served_by.pid}), or name another state: --state sqlite:PATH\n"
        )
    finally:
        _end(both)


def test_a_serve_whose_predecessor_was_killed_begins(tmp_path: Path) -> None:
    """Its workers see that it is gone and end, and with them the lock."""
    first = _begin(tmp_path, free_port(), "2")
    second = None
    try:
        until(lambda: (tmp_path / "state.db.serve").exists())
        first.kill()
        first.wait(60)
        port = free_port()
        second = _begin(tmp_path, port, "2")
        until(lambda: f":{port}" in (tmp_path / "state.db.serve").read_text() or second.poll() is not None)
        assert second.poll() is None, (tmp_path / f"log-{second.pid}").read_text()
    finally:
        _end([process for process in (first, second) if process is not None])


def _begin(folder: Path, port: int, workers: str) -> subprocess.Popen[bytes]:
    with (folder / f"log-{port}").open("wb") as log:
        words = [str(PILOTLIGHT), "serve", "--port", str(port), "--workers", workers]
        process = subprocess.Popen(words, stdout=log, stderr=log, env=_environ(folder))
    (folder / f"log-{port}").rename(folder / f"log-{process.pid}")
    return process


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_serve_of_a_world_that_is_not_there_ends(tmp_path: Path, workers: str) -> None:
    """In seconds, with the address and the way out in one line, and exit code 1."""
    world, words = f"http://127.0.0.1:{free_port()}", ["--port", str(free_port()), "--workers", workers]
    done = subprocess.run(
        [PILOTLIGHT, "serve", "--world", world, *words],
        env=_environ(tmp_path), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: the world at {world}: Connection refused; is it running? Start it with pilotlight world, or leave "
        "out --world and PILOTLIGHT_WORLD for one of serve's own\n"
    )


def test_a_serve_whose_predecessor_died_begins(tmp_path: Path) -> None:
    """The file that it left says an address where nobody listens."""
    place, port = tmp_path / "state.db.serve", free_port()
    place.write_text(json.dumps({"url": f"http://127.0.0.1:{free_port()}", "pid": os.getpid()}))
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [PILOTLIGHT, "serve", "--port", str(port)], stdout=log, stderr=log, env=_environ(tmp_path)
        )
    try:
        until(lambda: f":{port}" in place.read_text() or process.poll() is not None)
        assert process.poll() is None, (tmp_path / "log").read_text()
    finally:
        process.terminate()
        process.wait(60)


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
        (Settings(cluster="prod", api="in-cluster", policy="p.yaml"), "cluster prod at in-cluster; state memory:"),
        (
            Settings(cluster="prod", api="in-cluster"),
            f"cluster prod at in-cluster; state memory:; {served.BUILT_IN}",
        ),
        (Settings(), "cluster local, a pretend world with pretend dollars (no cluster is set up); state memory:"),
        (
            Settings(world="http://w:1"),
            "cluster local, a pretend world at http://w:1 with pretend dollars; state memory:",
        ),
    ],
)
def test_the_header_names_the_cluster_and_its_state(settings: Settings, said: str) -> None:
    """Where it is, and where what is known of it lies; of a real one also where its pools are those of nobody."""
    assert served.header(settings, "memory:") == said
