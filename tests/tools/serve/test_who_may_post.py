"""serve's front gate over real HTTP: who comes in, what a body may be, and that no token is ever shown."""

import hashlib
import hmac
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from functions_framework import create_app

from fleet import free_port
from pilotlight.doorway import RECEIVES
from pilotlight.facts.limits.routes import FUNCTIONS, ROUTES, Caller
from pilotlight.settings import Settings
from pilotlight.tools.cli.start.serve_command import site
from pilotlight.tools.serve.world_calls import CALLS
from pilotlight.wiring import App
from serving import serving

ROOT = Path(__file__).resolve().parents[3]
PILOTLIGHT = Path(sys.executable).parent / "pilotlight"
EVENT = (ROOT / "events" / "samples" / "pilotlight" / "pod_pending.json").read_bytes()
JSON = {"Content-Type": "application/json"}
SEND, HOOK, SIGN, EYE = (f"{name}-token-0123456789" for name in ("send", "hook", "sign", "eye"))
CALLERS = {
    "send": Caller(token=SEND),
    "grid": Caller(token=HOOK, by="path"),
    "ci": Caller(token=SIGN, by="signature"),
    "eye": Caller(token=EYE, roles=("read",)),
}


class Server(NamedTuple):
    """Where serve answers."""

    port: int


def _serving(home: Path, callers: dict[str, Caller]) -> Iterator[Server]:
    settings = Settings(state="memory:", outbox=f"local:{home}/outbox", callers=callers)
    # The functions' own app is the environment's: it has to find the same.
    os.environ["PILOTLIGHT_HOME"] = str(home)
    with serving(site(App(settings))) as port:
        yield Server(port)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the functions of this file keep state and outbox."""
    before = os.environ.get("PILOTLIGHT_HOME")
    yield tmp_path_factory.mktemp("home")
    os.environ.pop("PILOTLIGHT_HOME", None)
    if before is not None:
        os.environ["PILOTLIGHT_HOME"] = before


@pytest.fixture(scope="module")
def laptop(home: Path) -> Iterator[Server]:
    """serve without tokens."""
    yield from _serving(home, {})


@pytest.fixture(scope="module")
def guarded(home: Path) -> Iterator[Server]:
    """serve with tokens."""
    yield from _serving(home, CALLERS)


def _ask(
    server: Server, path: str, body: Any = EVENT, headers: dict[str, str] = JSON, method: str = "POST"
) -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.request(method, path, body, headers, encode_chunked="Transfer-Encoding" in headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text)


def test_a_laptop_is_open_to_its_own_programs(laptop: Server) -> None:
    """A plain post is answered, without anything set up."""
    status, answer = _ask(laptop, "/pod_pending?dryrun=1")
    assert (status, "why" in answer) == (200, True)


@pytest.mark.parametrize(
    ("headers", "status", "says"),
    [
        pytest.param({**JSON, "Host": "pilotlight.evil.example"}, 403, "Host", id="a name bound to this machine"),
        pytest.param({**JSON, "Origin": "https://evil.example"}, 403, "browser", id="a foreign page"),
        pytest.param({"Content-Type": "text/plain"}, 415, "application/json", id="what a form can send"),
    ],
)
def test_a_laptop_is_closed_to_pages(laptop: Server, headers: dict[str, str], status: int, says: str) -> None:
    """One clear line, and nothing of the body is read as an event."""
    got, answer = _ask(laptop, "/pod_pending", headers=headers)
    assert got == status
    assert says in answer["error"]
    assert "\n" not in answer["error"]


def test_every_served_path_is_in_the_table_with_its_method(laptop: Server) -> None:
    """Each takes POST and answers GET 405; what the table does not have is 404."""
    for path in [*(f"/{name}" for name in RECEIVES), "/world/pods"]:
        assert _ask(laptop, path, None, method="GET")[0] == 405
        assert _ask(laptop, path, b"{}")[0] in (200, 400)
    assert _ask(laptop, "/nothing", None, method="GET")[0] == 404


@pytest.mark.parametrize("function", RECEIVES)
def test_a_deployed_function_takes_posts_at_its_root(function: str) -> None:
    """Whatever the cloud has let in: GET is 405 with what it takes, another path is 404."""
    client = create_app(function, str(ROOT / "functions" / function / "main.py")).test_client()  # type: ignore[no-untyped-call]
    got = client.get("/")
    assert (got.status_code, got.headers["Allow"]) == (405, "POST")
    assert client.post("/admin", data=b"{}").status_code == 404


def test_tokens_signatures_and_paths_let_in(guarded: Server) -> None:
    """Each way over HTTP, and a wrong one of each kind."""
    assert _ask(guarded, "/pod_pending")[0] == 401
    assert _ask(guarded, "/pod_pending", headers={**JSON, "Authorization": f"Bearer {SEND}"})[0] == 200
    assert _ask(guarded, f"/in/grid/{HOOK}/pod_pending", headers={"Content-Type": "text/plain"})[0] == 200
    now = int(time.time())
    made = hmac.new(SIGN.encode(), b"%d." % now + EVENT, hashlib.sha256).hexdigest()
    signed = {**JSON, "X-Pilotlight-Signature": f"t={now},v1={made}"}
    assert _ask(guarded, "/pod_pending", headers=signed)[0] == 200
    assert _ask(guarded, "/pod_pending", EVENT + b" ", headers=signed)[0] == 401


@pytest.mark.parametrize("query", ["?dryrun=1", "?dry%72un=0&dryrun=1"])
def test_who_may_read_changes_nothing(guarded: Server, query: str) -> None:
    """However the query is written, a token that may only read gets a dry run."""
    shown = {**JSON, "Authorization": f"Bearer {EYE}"}
    status, answer = _ask(guarded, f"/pod_pending{query}", headers=shown)
    assert (status, "plan" in answer) == (200, True)
    assert _ask(guarded, "/pod_pending", headers=shown)[0] == 403


def test_a_body_that_has_no_end_is_cut(guarded: Server, home: Path) -> None:
    """Chunks without a length, or a length of a terabyte: 413 after the limit, and one short letter."""
    shown = {**JSON, "Authorization": f"Bearer {SEND}"}

    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield b"[" * 50_000

    with socket.create_connection(("127.0.0.1", guarded.port)) as line:
        head = (
            f"POST /pod_pending HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SEND}\r\nContent-Length: {10**12}\r\n\r\n"
        )
        line.sendall(head.encode() + b"[" * 1_000_100)
        assert line.recv(4000).split(b"\r\n")[0].split(b" ")[1] == b"413"
    with suppress(BrokenPipeError, ConnectionResetError):  # It may be answered before all of it was sent.
        assert _ask(guarded, "/pod_pending", chunks(), {**shown, "Transfer-Encoding": "chunked"})[0] == 413
    letters = [json.loads(line)["data"] for line in (home / "outbox" / "dead-letter.jsonl").read_text().splitlines()]
    large = [letter for letter in letters if "over 1,000,000 bytes" in letter["reason"]]
    assert large
    assert all(len(letter["body"]) <= 2_000 < letter["size"] for letter in large)


def test_a_body_that_breaks_off_is_for_its_sender(guarded: Server) -> None:
    """Less came than was announced: 408, and nothing of it is taken for an event."""
    with socket.create_connection(("127.0.0.1", guarded.port)) as line:
        head = f"POST /pod_pending HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SEND}\r\nContent-Length: 100\r\n\r\n"
        line.sendall(head.encode() + b"{}")
        line.shutdown(socket.SHUT_WR)
        assert line.recv(4000).split(b" ")[1] == b"408"


def test_a_token_in_a_path_is_never_shown(tmp_path: Path) -> None:
    """Neither the log of serve nor an answer has it, whatever became of the request."""
    port = free_port()
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"grid": {"token": HOOK, "by": "path"}}))
    environ = {**os.environ, "PILOTLIGHT_HOME": str(tmp_path), "PILOTLIGHT_TOKENS": str(tokens)}
    with (tmp_path / "log").open("wb") as log:
        serve = subprocess.Popen(
            [PILOTLIGHT, "serve", "--host", "0.0.0.0", "--port", str(port)], env=environ, stdout=log, stderr=log
        )
    try:
        while b"world/pods" not in (tmp_path / "log").read_bytes():
            assert serve.poll() is None
            time.sleep(0.1)
        said = ""
        for path in (f"/in/grid/{HOOK}/pod_pending", f"/in/grid/{HOOK}/nothing", f"/in/grid/{HOOK}x/alert_fanout"):
            connection = HTTPConnection("127.0.0.1", port)
            connection.request("POST", path, b"{", JSON)
            answer = connection.getresponse()
            said += f"{answer.status} {answer.read().decode()} {answer.headers}"
    finally:
        serve.terminate()
        serve.wait()
    assert [each in said for each in ("200 ", "404 ", "401 ")] == [True, True, True]
    kept = "".join(
        path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file() and path != tokens
    )
    assert "rejected" in kept
    assert HOOK not in said + kept


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        pytest.param("", "PILOTLIGHT_TOKENS is not set", id="no tokens"),
        pytest.param('{"a": {"token": "short"}}', "too short", id="a token that can be guessed"),
        pytest.param('{"a": {"token": "0123456789abcdef", "roles": ["all"]}}', "roles", id="a role there is not"),
        pytest.param("{}", "PILOTLIGHT_TOKENS is empty", id="nobody"),
        pytest.param("0123456789abcdef", "PILOTLIGHT_TOKENS: no JSON, and no file to read", id="a token by itself"),
        pytest.param(
            '{"a": {"token": "0123456789abcdef"}, "b": {"token": "0123456789abcdef"}}',
            "the same token",
            id="one for two",
        ),
    ],
)
def test_serve_beyond_this_machine_does_not_start_without_tokens(tokens: str, says: str) -> None:
    """Exit 2 and one line with the way out, which holds no token."""
    environ = {**os.environ, "PILOTLIGHT_STATE": "memory:", "PILOTLIGHT_TOKENS": tokens}
    ran = subprocess.run(
        [PILOTLIGHT, "serve", "--host", "0.0.0.0"], env=environ, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert says in ran.stderr
    assert "0123456789abcdef" not in ran.stderr


def test_the_table_has_every_function_and_every_call_of_a_world() -> None:
    """What doorway routes is what the table lists; each row of a world is one that the world answers."""
    assert set(FUNCTIONS) == set(RECEIVES)
    calls = {f"/{call.partition('/')[0]}/{{method}}" for call in CALLS}
    plain = {"/pods", "/interrupt", "/told", "/clock", "/report", "/faults"}
    assert {door.path for door in ROUTES if door.where == "world"} == calls | plain
