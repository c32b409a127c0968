"""serve under senders that hold on: slow heads, slow bodies, silence, floods. Honest ones are answered meanwhile."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread

import pytest

from fleet import free_port
from pilotlight.tools.serve import http_server
from pilotlight.tools.serve.workers import CLI
from serving import serving

HEAD = b"POST /pod_pending HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
WAYS = {
    "nothing at all": b"",
    "half of a first line": b"POST /pod_p",
    "a head without its end": HEAD,
    "a body that does not come": HEAD + b"Content-Length: 1000\r\n\r\n{",
    "chunks that do not come": HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n{",
    "who waits to be told to continue": HEAD + b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n",
}


@contextmanager
def serve(home: Path, workers: int) -> Iterator[int]:
    """The command itself with a world of its own, at a port."""
    port = free_port()
    environ = {**os.environ, "PILOTLIGHT_HOME": str(home)}
    words = [sys.executable, "-c", CLI, "serve", "--port", str(port), "--workers", str(workers)]
    with (home / "serve.log").open("wb") as log:
        process = subprocess.Popen(words, env=environ, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 60
        while not healthy(port) and time.monotonic() < until:
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        assert process.wait(20) == 0, (home / "serve.log").read_text()


def healthy(port: int, path: str = "/healthz", within_s: float = 5.0) -> bool:
    """Whether the process says that it is well, as a kubelet asks."""
    connection = HTTPConnection("127.0.0.1", port, timeout=within_s)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def opened(port: int, sent: bytes) -> socket.socket:
    """A connection that has sent so much."""
    line = socket.create_connection(("127.0.0.1", port), timeout=30)
    line.sendall(sent)
    return line


def trickle(lines: list[socket.socket], stop: Event) -> None:
    """A byte each second on every connection, so that no silence is long."""
    while not stop.wait(1.0):
        for line in lines:
            with suppress(OSError):
                line.sendall(b"x")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_slow_senders_without_a_token_do_not_silence_the_home(workers: int, tmp_path: Path) -> None:
    """Of 150 that send a byte a second, or nothing, all are cut within their deadlines; health and a real event are
    answered every second meanwhile."""
    with serve(tmp_path, workers) as port:
        began, stop = time.monotonic(), Event()
        lines = [opened(port, list(WAYS.values())[n % len(WAYS)]) for n in range(150)]
        slow = Thread(target=trickle, args=(lines, stop))
        slow.start()
        for _ in range(6):
            assert healthy(port)
            assert healthy(port, "/readyz")
            time.sleep(1.0)
        connection = HTTPConnection("127.0.0.1", port, timeout=20)
        body = json.dumps({"cluster": "local", "namespace": "ml", "pod": "p", "uid": "u"})
        connection.request("POST", "/pod_pending?dryrun=1", body, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 200
        assert workers == 1 or all_cut(lines, began + http_server.HEAD_S + http_server.BODY_S + 10)
        stop.set()
        slow.join()


def all_cut(lines: list[socket.socket], by: float) -> bool:
    """Whether the server has ended all connections by then."""
    open_ = {line.fileno(): line for line in lines}
    while open_ and time.monotonic() < by:
        time.sleep(0.2)
        open_ = {number: line for number, line in open_.items() if not ended(line)}
    return not open_


def ended(line: socket.socket) -> bool:
    """Whether the server has ended a connection."""
    line.setblocking(False)
    try:
        while got := line.recv(4096):
            if b"408" in got:
                return True
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test can wait for."""
    monkeypatch.setattr(http_server, "HEAD_S", 0.6)
    monkeypatch.setattr(http_server, "BODY_S", 1.2)
    monkeypatch.setattr(http_server, "SETTLED_S", 0.2)


def hello(environ: object, start: Callable[..., object]) -> list[bytes]:
    """An application that answers at once."""
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "5")])
    return [b"hello"]


@pytest.mark.parametrize("sent", [pytest.param(sent, id=name) for name, sent in WAYS.items()])
@pytest.mark.parametrize("dribbles", [False, True], ids=["then silence", "then a byte at a time"])
def test_a_request_that_does_not_come_is_cut(sent: bytes, dribbles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one deadline for its head and one for its body, whatever comes in between; a begun one is answered 408."""
    quick(monkeypatch)
    with serving(hello) as port, opened(port, sent) as line:
        got = b""
        began = time.monotonic()
        line.settimeout(0.1)
        while time.monotonic() < began + 10:
            with suppress(TimeoutError):
                try:
                    more = line.recv(4096)
                except OSError as error:
                    if isinstance(error, TimeoutError):
                        raise
                    break
                got += more
                if not more:
                    break
            if dribbles and sent:
                with suppress(OSError):
                    line.sendall(b"1" if b"chunked" not in sent else b"a")
        assert time.monotonic() < began + 10
        assert (b" 408 " in got) == bool(sent)


@pytest.mark.parametrize("sent", [pytest.param(sent, id=name) for name, sent in WAYS.items()])
def test_the_oldest_connection_without_a_request_gives_way(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 20 places taken, 60 silent ones and no deadline near, an honest request is answered."""
    monkeypatch.setattr(http_server, "CONNECTIONS", 20)
    monkeypatch.setattr(http_server, "SETTLED_S", 0.1)
    with serving(hello) as port, ExitStack() as held:
        for _ in range(3):
            for _ in range(20):
                held.enter_context(opened(port, sent))
            time.sleep(0.3)
            assert healthy(port, "/", within_s=5)


def test_bodies_in_hand_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound large bodies are read on no further until others end; small requests are answered meanwhile."""
    monkeypatch.setattr(http_server, "IN_HAND", 1_000_000)
    monkeypatch.setattr(http_server, "BODY_S", 3.0)
    with serving(hello) as port, ExitStack() as held:
        taken = 0
        for _ in range(4):
            line = held.enter_context(opened(port, HEAD + b"Content-Length: 9000000\r\n\r\n"))
            line.settimeout(0.5)
            with suppress(OSError):
                while taken < 36_000_000:
                    taken += line.send(b"[" * 100_000)
        assert taken < 30_000_000  # The rest is what the system holds for both sides of four connections.
        assert healthy(port, "/")
        until = time.monotonic() + 15
        while not large(port) and time.monotonic() < until:
            time.sleep(0.2)
        assert large(port)


def large(port: int) -> bool:
    """Whether a body of half a megabyte is answered soon."""
    connection = HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("POST", "/", b"[" * 500_000)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def test_health_is_answered_while_all_threads_work() -> None:
    """Two threads that both wait for somebody, and a queue before them."""
    done = Event()

    def site(environ: dict[str, str], start: Callable[..., object]) -> list[bytes]:
        if environ["PATH_INFO"] != "/healthz":
            done.wait(30)
        return hello(environ, start)

    with serving(site, threads=2) as port, ExitStack() as held:
        waiting = [held.enter_context(opened(port, b"GET /work HTTP/1.1\r\nHost: x\r\n\r\n")) for _ in range(10)]
        assert [healthy(port) for _ in range(5)] == [True] * 5
        done.set()
        for line in waiting:
            assert line.recv(4096).startswith(b"HTTP/1.1 200")


def test_requests_on_one_connection_are_answered_one_after_the_other() -> None:
    """Two at once in one piece, as a sender with a pool has them; the counts of bytes end at nothing."""
    with serving(hello) as port, opened(port, b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n" * 2) as line:
        got = b""
        while got.count(b"hello") < 2:
            got += line.recv(4096)
    assert got.count(b"200 OK") == 2
