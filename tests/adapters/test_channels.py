"""Channels: the console, and web hooks against a real local HTTP server."""

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import pytest

from pilotlight.adapters.channels.console import ConsoleChannel
from pilotlight.adapters.channels.webhook import ATTEMPTS, WebhookChannel
from pilotlight.errors import BadInput, BadRequest, Forbidden, Throttled
from pilotlight.facts.messages import Alert
from pilotlight.ports import Clock

ALERT = Alert(
    cluster="c1",
    kind="capacity",
    severity="warning",
    fingerprint="f1",
    what="no T4 left",
    why="quota",
    next="ask for more",
)


class Receiver(HTTPServer):
    """Answers what it was told to, in order, and keeps what came; at the end of its script it answers 204."""

    def __init__(self) -> None:
        self.script: list[tuple[int, dict[str, str]]] = []
        self.came: list[tuple[str, str, dict[str, object]]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/hook?key=secret"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """Keep the request and answer by the script."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.came.append((self.path, self.headers["Content-Type"], body))
        status, headers = self.server.script.pop(0) if self.server.script else (204, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Stay silent."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A web hook's receiver on a local port."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_console_shows_what_why_and_next() -> None:
    """An alert is a line with its severity and cluster, then its sentences; empty ones are left out."""
    stream = io.StringIO()
    ConsoleChannel(stream).deliver(ALERT)
    assert stream.getvalue() == "WARNING c1: no T4 left\n    why: quota\n    next: ask for more\n"


def test_a_web_hook_gets_a_cloudevent(receiver: Receiver, clock: Clock) -> None:
    """The alert is posted whole as a structured CloudEvent under its fingerprint, to the URL's path and query."""
    WebhookChannel(receiver.url, clock).deliver(ALERT)
    [(path, content_type, body)] = receiver.came
    assert (path, content_type) == ("/hook?key=secret", "application/cloudevents+json")
    assert (body["type"], body["id"]) == ("dev.pilotlight.alert.v1", "f1")
    assert msgspec.convert(body["data"], Alert) == ALERT


@pytest.mark.parametrize(
    ("answer", "paused_s"),
    [
        pytest.param((503, {}), 1.0, id="an overloaded receiver is tried again after a second"),
        pytest.param((429, {"Retry-After": "3"}), 3.0, id="a receiver that names seconds is given them"),
        pytest.param((429, {"Retry-After": "Fri, 20 Nov 2026 12:00:07 GMT"}), 7.0, id="one that names a date too"),
        pytest.param((429, {"Retry-After": "soon"}), 1.0, id="one that names nonsense is tried after a second"),
    ],
)
def test_a_refusal_for_now_is_tried_again(
    receiver: Receiver, clock: Clock, answer: tuple[int, dict[str, str]], paused_s: float
) -> None:
    """The second attempt comes after the pause that the receiver asked for."""
    receiver.script = [answer]
    pauses: list[float] = []
    WebhookChannel(receiver.url, clock, pauses.append).deliver(ALERT)
    assert (len(receiver.came), pauses) == (2, [paused_s])


def test_attempts_are_bounded(receiver: Receiver, clock: Clock) -> None:
    """A receiver that stays down gets a few attempts with growing pauses, then the alert comes back later."""
    receiver.script = [(500, {})] * 10
    pauses: list[float] = []
    with pytest.raises(Throttled, match="answered 500"):
        WebhookChannel(receiver.url, clock, pauses.append).deliver(ALERT)
    assert (len(receiver.came), pauses) == (ATTEMPTS, [1.0, 2.0])


def test_a_long_pause_is_not_waited_for(receiver: Receiver, clock: Clock) -> None:
    """A receiver that asks for minutes gets the alert by a later delivery, which is told how long."""
    receiver.script = [(429, {"Retry-After": "600"})]
    with pytest.raises(Throttled) as caught:
        WebhookChannel(receiver.url, clock, lambda _: pytest.fail("it waited")).deliver(ALERT)
    assert caught.value.after_s == 600


@pytest.mark.parametrize(
    ("status", "error"),
    [
        pytest.param(400, BadRequest, id="a request it does not read"),
        pytest.param(403, Forbidden, id="a request it does not allow"),
        pytest.param(410, BadRequest, id="a hook that is gone"),
        pytest.param(302, BadRequest, id="a hook that moved"),
    ],
)
def test_a_refusal_for_good_is_not_tried_again(
    receiver: Receiver, clock: Clock, status: int, error: type[Exception]
) -> None:
    """One attempt, and an error that names the host but not the secret in the URL."""
    receiver.script = [(status, {})]
    with pytest.raises(error, match=r"127\.0\.0\.1 answered") as caught:
        WebhookChannel(receiver.url, clock).deliver(ALERT)
    assert len(receiver.came) == 1
    assert "secret" not in str(caught.value)


def test_a_host_that_does_not_answer_is_for_later(clock: Clock) -> None:
    """Nobody at the port: bounded attempts, then Throttled."""
    closed = Receiver()
    url = closed.url
    closed.server_close()
    with pytest.raises(Throttled, match=r"127\.0\.0\.1"):
        WebhookChannel(url, clock, lambda _: None).deliver(ALERT)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "s3cret.example.com/x",
        "ftp://s3cret/x",
        "https://",
        "http://s3cret:port/",
        "http://[s3cret",
        "http://h/s3cret x",
    ],
)
def test_a_url_that_is_none_is_refused_without_showing_it(clock: Clock, url: str) -> None:
    """What is no web hook's URL is bad input; the text may be a secret and is not repeated."""
    with pytest.raises(BadInput, match="https://") as caught:
        WebhookChannel(url, clock)
    assert "s3cret" not in str(caught.value)
