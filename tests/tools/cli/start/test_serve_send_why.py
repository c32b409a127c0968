"""serve, send and why, as a person runs them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fleet import free_port, until
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.adapters.world_client import WorldClient
from pilotlight.errors import Unavailable
from pilotlight.flow.records.lease import acquire
from pilotlight.state_schema.marks import LOOK_AGAIN

ROOT = Path(__file__).resolve().parents[4]
SAMPLES = ROOT / "events" / "samples"
PILOTLIGHT = Path(sys.executable).parent / "pilotlight"
POD = SAMPLES / "kubernetes" / "pod_unschedulable.json"


def _run(home: Path, *words: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environ = {**os.environ, "PILOTLIGHT_HOME": str(home), "NO_COLOR": "1"}
    return subprocess.run([PILOTLIGHT, *map(str, words)], env=environ, input=stdin, capture_output=True, check=False)


class Served(NamedTuple):
    """A serve that runs: its address, its process, and where its log and state are."""

    port: int
    process: subprocess.Popen[bytes]
    home: Path

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What it has written so far."""
        return (self.home / "log").read_text()

    def post(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Post a body; the status and the answer."""
        connection = HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def _start(home: Path) -> Served:
    port = free_port()
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [PILOTLIGHT, "serve", "--port", str(port), "--tick", "1"],
            env={**os.environ, "PILOTLIGHT_HOME": str(home)},
            stdout=log,
            stderr=log,
        )
    served = Served(port, process, home)
    until(lambda: f"POST {served.url}/world/pods" in served.log or process.poll() is not None)
    return served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One serve for the tests of this file."""
    served = _start(tmp_path_factory.mktemp("serve"))
    yield served
    served.process.kill()
    served.process.wait()


@pytest.mark.parametrize("path", ["/pod_pending", "/pod_pending/"])
def test_every_function_is_at_its_own_path(served: Served, path: str) -> None:
    """A post is answered there, with and without the slash, and never redirected."""
    status, answer = served.post(f"{path}?dryrun=1", (SAMPLES / "pilotlight" / "pod_pending.json").read_bytes())
    assert status == 200
    assert "plan" in answer


def test_the_live_page_is_at_the_root_and_told_at_once(served: Served) -> None:
    """A real server hands on the first event while the stream is open."""
    connection = HTTPConnection("127.0.0.1", served.port, timeout=120)
    connection.request("GET", "/")
    assert connection.getresponse().read().startswith(b"<!doctype html>")
    connection.close()
    connection.request("GET", "/live")
    stream = connection.getresponse()
    lines = [stream.readline() for _ in range(4)]
    connection.close()
    assert lines[2] == b"event: all\n"
    assert json.loads(lines[3].removeprefix(b"data: "))["cluster"] == "local"


def test_an_unknown_path_lists_those_there_are(served: Served) -> None:
    """A wrong path is 404 with the right ones."""
    status, answer = served.post("/podpending", b"{}")
    assert status == 404
    assert "/pod_pending" in answer["error"]


def test_a_sent_pod_lights_a_node_and_people_are_told(served: Served) -> None:
    """send creates the pod and posts its event: a node is bought, its alert reaches the console, why explains it."""
    sent = _run(served.home, "send", POD, "--url", served.url)
    assert sent.returncode == 0, sent.stderr
    assert b"buys 1 x " in sent.stdout or b" is on its way: " in sent.stdout  # A tick may have looked before.
    until(lambda: "INFO local: asked for 1 node" in served.log)
    why = _run(served.home, "why", "nlp/finetune-0")
    assert why.returncode == 0
    assert b"nlp/finetune-0: bought " in why.stdout
    assert b"t4/g4dn.xlarge/on-demand: an empty node does not hold it" in why.stdout


def test_send_waits_for_the_delivery_that_looks(tmp_path: Path) -> None:
    """An event that finds another delivery at work is sent again until its own verdict is there."""
    state = SqliteState(tmp_path / "state.db")
    held = acquire(state, "local", "another delivery")
    assert held is not None
    environ = {**os.environ, "PILOTLIGHT_HOME": str(tmp_path), "NO_COLOR": "1"}
    sending = subprocess.Popen([PILOTLIGHT, "send", POD], env=environ, stdout=subprocess.PIPE)
    until(lambda: LOOK_AGAIN.get(state, "local") is not None)
    held.release()
    said, _ = sending.communicate()
    assert sending.returncode == 0
    assert b"buys 1 x " in said


def test_a_dry_run_beside_a_serve_names_the_world_and_the_state_that_it_asks(served: Served) -> None:
    """A pretend world of its own, with nothing of what the serve's state holds; --url asks the serve."""
    lines = _run(served.home, "send", POD, "--dry-run").stdout.decode().splitlines()
    assert lines[0] == (
        "cluster local, a pretend world with pretend dollars (no cluster is set up); state memory:; "
        f"the serve at {served.url} is not asked: --url {served.url} asks it"
    )
    assert any("would buy 1 x" in line for line in lines)


def test_no_other_worlds_pod_is_written_into_a_serves_state(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """PILOTLIGHT_WORLD names another than the serve over this state has: refused, with the ways out."""
    monkeypatch.setenv("PILOTLIGHT_WORLD", "http://127.0.0.1:9")
    done = _run(served.home, "send", POD)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"keeps this state, of another world than PILOTLIGHT_WORLD: leave that out" in b" ".join(done.stderr.split())


def test_a_pod_can_be_created_in_the_world(served: Served) -> None:
    """POST /world/pods takes a Pod; the next tick buys for it, without any event about it."""
    pod = json.loads(POD.read_text())
    pod["metadata"] |= {"name": "lost-event", "uid": "lost-1"}
    assert served.post("/world/pods", json.dumps(pod).encode()) == (200, {"created": ["nlp/lost-event"]})
    until(lambda: _run(served.home, "why", "nlp/lost-event").returncode == 0)


def test_a_pod_that_cannot_wait_for_a_gpu_is_refused(served: Served) -> None:
    """A body that is no pod with a GPU is 400, in one line."""
    for body in (b"{", b'{"kind": "Pod", "metadata": {"name": "web", "namespace": "x"}, "spec": {"containers": []}}'):
        status, answer = served.post("/world/pods", body)
        assert status == 400
        assert "\n" not in answer["error"]


def test_a_port_in_use_is_one_line(served: Served, tmp_path: Path) -> None:
    """A second serve on the port, over a state of its own, says so and ends with 1."""
    second = _run(tmp_path, "serve", "--port", served.port)
    assert (second.returncode, second.stderr.decode().splitlines()[-1]) == (
        1,
        f"error: port {served.port} is in use; choose another with --port",
    )


def test_serve_ticks_by_itself_and_ends_when_told(tmp_path: Path) -> None:
    """Ticks come unasked; SIGTERM ends it with 0."""
    served = _start(tmp_path)
    until(lambda: '"function": "capacity_reconcile"' in served.log)
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait() == 0


def test_send_works_without_serve(tmp_path: Path) -> None:
    """With nothing listening the flow runs in process; the decision is in the state."""
    sent = _run(tmp_path, "send", POD, "--json")
    decision = json.loads(sent.stdout)["decision"]
    [record] = json.loads(_run(tmp_path, "why", decision, "--json").stdout)
    assert record["id"] == decision


def test_a_dry_run_of_send_leaves_nothing(tmp_path: Path) -> None:
    """--dry-run prints what would be bought, and no decision, message or letter is left."""
    sent = _run(tmp_path, "send", POD, "--dry-run")
    assert b"would buy 1 x " in sent.stdout
    assert not (tmp_path / "outbox").exists()
    assert _run(tmp_path, "why", "nlp/finetune-0").returncode == 2
    assert not (tmp_path / "state.db").exists()


def test_send_finds_the_function_of_every_sample(tmp_path: Path) -> None:
    """Each sample of an outside source, stdin too, is taken by a function."""
    samples = ("google/scheduler_tick", "knative/apiserver_reference_pod", "pilotlight/alert")
    for sample in (f"{name}.json" for name in (*samples, "knative/apiserver_resource_pod_binary")):
        sent = _run(tmp_path, "send", "-", "--dry-run", stdin=(SAMPLES / sample).read_bytes())
        assert sent.returncode == 0, sent.stderr


@pytest.mark.parametrize(
    ("words", "stdin", "says"),
    [
        pytest.param(("send", "no-such.json"), b"", "no-such.json: No such file or directory", id="a missing file"),
        pytest.param(("send", "-"), b'{"kind": ', "not JSON", id="a truncated event"),
        pytest.param(("send", "-"), b"{}", "stdin: no known source sends this", id="an event of no source"),
        pytest.param(("send", POD, "--url", "http://h:x"), b"", "--url is 'http://h:x'", id="a port that is none"),
        pytest.param(("send", POD, "--url", "localhost"), b"", "--url is 'localhost'", id="an address without http"),
        pytest.param(("nonsense",), b"", "No such command", id="an unknown command"),
        pytest.param(("world", "--clock", "60"), b"", "--clock is '60'", id="a world's clock that is none"),
        pytest.param(
            ("serve", "--world", "here"), b"", "PILOTLIGHT_WORLD is 'here'", id="a world's address that is none"
        ),
        pytest.param(
            ("serve", "--world", "http://me:planted@127.0.0.1:1"),
            b"",
            "PILOTLIGHT_WORLD is an address with a credential:",
            id="a world's address with a credential, which is not shown",
        ),
    ],
)
def test_bad_input_is_exit_2_without_a_traceback(
    tmp_path: Path, words: tuple[str, ...], stdin: bytes, says: str
) -> None:
    """What a person got wrong is said on stderr, and ends with 2."""
    ran = _run(tmp_path, *words, stdin=stdin)
    assert ran.returncode == 2
    assert says in ran.stderr.decode()
    assert b"Traceback" not in ran.stderr


def test_nothing_set_up_is_exit_2(tmp_path: Path) -> None:
    """why where no cluster is and nothing was ever decided says so in one line."""
    ran = _run(tmp_path, "why", "ns/stranger")
    [said] = ran.stderr.decode().splitlines()
    assert ran.returncode == 2
    assert said.startswith("error: nothing is set up here")


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    """--debug, wherever it stands, adds the traceback to the line."""
    ran = _run(tmp_path, "send", "no-such.json", "--debug")
    assert b"Traceback" in ran.stderr
    assert ran.returncode == 2


@pytest.mark.parametrize(
    "command", ["plan", "check", "schema", "replay", "week", "synth", "stats", "trace", "serve", "world", "send", "why"]
)
def test_every_command_has_help_with_an_example(tmp_path: Path, command: str) -> None:
    """--help of each command shows how it is called."""
    ran = _run(tmp_path, command, "--help")
    assert ran.returncode == 0, ran.stderr
    assert f"pilotlight {command}" in ran.stdout.decode().replace("\n", " ").split("Usage:")[1]


def test_a_setting_that_is_none_is_named(tmp_path: Path) -> None:
    """A bad value in the environment names its variable and ends with 2."""
    environ = {**os.environ, "PILOTLIGHT_HOME": str(tmp_path), "PILOTLIGHT_MODE": "fly"}
    ran = subprocess.run([PILOTLIGHT, "why", "x"], env=environ, capture_output=True, check=False)
    assert ran.returncode == 2
    assert b"PILOTLIGHT_MODE is 'fly': use one of observe, advise, scale-up, act" in ran.stderr


def test_a_dry_run_beside_a_served_world_changes_nothing(tmp_path: Path) -> None:
    """PILOTLIGHT_WORLD names a world that runs: the pod is supposed there, not created, and the purchase is said."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environ = {**os.environ, "PILOTLIGHT_HOME": str(tmp_path), "NO_COLOR": "1", "PILOTLIGHT_WORLD": url}
    world = subprocess.Popen([PILOTLIGHT, "world", "--port", str(port)], env=environ, stderr=subprocess.DEVNULL)
    try:
        client = WorldClient(url)
        while True:
            try:
                client.time()
                break
            except Unavailable:
                assert world.poll() is None
        sent = subprocess.run([PILOTLIGHT, "send", POD, "--dry-run"], env=environ, capture_output=True, check=True)
        assert b"would buy 1 x" in sent.stdout
        assert client.pods() == ()
    finally:
        world.terminate()
        world.wait()
