"""Calls to a store on the network: they end, and a write whose answer is lost is never said to have failed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import pytest
import urllib3
from answering import Answer, answering

from pilotlight.adapters.state import calls
from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.adapters.state.firestore import FirestoreState
from pilotlight.errors import Conflict, Unavailable, Unsure
from pilotlight.ports.state import State
from pilotlight.tools.install.state_store import create_table

At = Callable[[str], State]
"""The same store over another host and port."""


@pytest.fixture(params=["dynamodb", "firestore"])
def service(request: pytest.FixtureRequest) -> tuple[str, At]:
    """A managed store's host, and what opens one table or collection of it over any host."""
    name = f"state-{uuid4()}"
    if request.param == "firestore":
        host: str = request.getfixturevalue("firestore_emulator")
        return host, lambda at: FirestoreState("demo", database="(default)", collection=name, emulator=at)
    endpoint: str = request.getfixturevalue("dynamodb_server")
    create_table(DynamoDBState(name, endpoint=endpoint).client, name)
    return endpoint.removeprefix("http://"), lambda at: DynamoDBState(name, endpoint=f"http://{at}")


@contextmanager
def dripping(host: str, on: Callable[[str, dict[str, str]], bool]) -> Iterator[str]:
    """A proxy that hands requests on; those that ``on`` names it answers a byte at a time, for ever."""
    direct, over = urllib3.PoolManager(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            drips = on(self.path, dict(self.headers))
            answer = direct.request("POST", f"http://{host}{self.path}", body=body, headers=dict(self.headers))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Content-Length", str(len(answer.data) + 100_000 * drips))
            self.end_headers()
            while drips and not over.wait(0.02):
                self.wfile.write(b" ")
            self.wfile.write(answer.data)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    over.set()
    server.shutdown()
    server.server_close()


@contextmanager
def losing(host: str, on: Callable[[str, dict[str, str]], bool], meanwhile: Callable[[], object]) -> Iterator[str]:
    """A proxy that hands every request on; the first answer that ``on`` names is lost, and then something happens."""
    direct, lost = urllib3.PoolManager(), list[str]()

    def forward(path: str, body: bytes, headers: dict[str, str]) -> Answer | None:
        answer = direct.request("POST", f"http://{host}{path}", body=body, headers=headers)
        if on(path, headers) and not lost:
            lost.append(path)
            meanwhile()
            return None
        return answer.status, answer.json()

    with answering(forward) as proxy:
        yield proxy
    assert lost


def writes(path: str, headers: dict[str, str]) -> bool:
    """Whether a request changes something."""
    called = next((value for name, value in headers.items() if name.lower() == "x-amz-target"), "")
    return ":commit" in path or called.endswith(("PutItem", "DeleteItem"))


def test_a_read_that_drips_is_left_in_time(service: tuple[str, At], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is for later, and nothing was changed."""
    monkeypatch.setattr(calls, "STORE_S", 0.5)
    host, at = service
    with dripping(host, lambda path, headers: not writes(path, headers)) as proxy:
        with pytest.raises(Unavailable) as caught:
            at(proxy).get("lease/c")
        assert not isinstance(caught.value, Unsure)


def test_a_write_that_drips_is_left_in_time(service: tuple[str, At], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not known whether it was done; it was."""
    host, at = service
    at(host).put("lease/b", b"0")
    with dripping(host, writes) as proxy:
        state = at(proxy)
        state.get("lease/c")
        monkeypatch.setattr(calls, "STORE_S", 3)  # Enough for a busy machine to have sent it.
        with pytest.raises(Unsure):
            state.put("lease/b", b"1")
    assert at(host).get("lease/b") is not None


def test_a_lost_answer_to_a_write_that_was_written_over_is_not_a_conflict(service: tuple[str, At]) -> None:
    """Ours was done, then another's: neither "you lost" nor a second write of ours."""
    host, at = service
    other = at(host)
    other.put("lease/c", b"0")
    with losing(host, writes, lambda: other.put("lease/c", b"other")) as proxy:
        state = at(proxy)
        seen = state.get("lease/c")
        assert seen is not None
        with pytest.raises(Unsure):
            state.put("lease/c", b"ours", if_version=seen.version)
    found = other.get("lease/c")
    assert found is not None
    assert found.value == b"other"


def test_a_conflict_without_a_lost_answer_is_one(service: tuple[str, At]) -> None:
    """Who was told no at the first attempt was not first."""
    host, at = service
    state = at(host)
    seen = state.put("lease/c", b"0")
    state.put("lease/c", b"1")
    with pytest.raises(Conflict):
        state.put("lease/c", b"2", if_version=seen)


def test_a_delete_whose_answer_is_lost_is_done(service: tuple[str, At]) -> None:
    """Sent again it meets nothing, which is what it was for."""
    host, at = service
    seen = at(host).put("lease/c", b"0")
    with losing(host, writes, lambda: None) as proxy:
        at(proxy).delete("lease/c", if_version=seen)
    assert at(host).get("lease/c") is None


def test_a_delete_whose_answer_is_lost_and_key_made_again_is_unsure(service: tuple[str, At]) -> None:
    """What another wrote after ours was deleted stays, and it is not called a conflict."""
    host, at = service
    other = at(host)
    seen = other.put("lease/c", b"0")
    with losing(host, writes, lambda: other.put("lease/c", b"other")) as proxy, pytest.raises(Unsure):
        at(proxy).delete("lease/c", if_version=seen)
    assert other.get("lease/c") is not None
