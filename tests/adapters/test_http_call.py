"""A call's one deadline and its gate, against servers that reset, stay silent and drip."""

import socket
import ssl
import threading
from pathlib import Path

import pytest
from certificates import Authority
from odd_server import END, OK, Line, talking

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Broken, Site, Takes

SOON_S = 0.3
LONG_S = 300.0


class Gate:
    """A gate that counts, and runs something."""

    def __init__(self, then: object = None) -> None:
        self.asked, self.then = 0, then

    def __call__(self) -> None:
        """Let through what ``then`` lets through."""
        self.asked += 1
        if callable(self.then):
            self.then()


def _put(site: Site, gate: Gate, within_s: float = LONG_S, body: bytes = b"") -> int:
    with Deadline(within_s) as deadline:
        return site.ask(deadline, "PUT", "/x", body, gate=gate).status


def _get(site: Site, within_s: float = LONG_S, *, repeatable: bool = True) -> int:
    with Deadline(within_s) as deadline:
        return site.ask(deadline, "GET", "/x", repeatable=repeatable).status


def _answers(line: Line) -> None:
    while line.hear():
        line.say(OK)


def _answers_once(line: Line) -> None:
    line.hear()
    line.say(OK)
    line.hear()
    line.reset()


def _never_answers(line: Line) -> None:
    line.hear()
    line.stop.wait()


def test_a_gate_is_asked_once_with_the_connection_open_and_nothing_sent() -> None:
    """When the gate is asked, the server has the connection and not a byte; then it has one request."""
    with talking(_answers) as odd:

        def look() -> None:
            assert odd.came.wait(LONG_S)
            assert odd.heard == [b""]

        gate = Gate(look)
        assert (_put(Site(odd.url), gate), gate.asked) == (200, 1)
        assert [heard.count(b"PUT /x") for heard in odd.heard] == [1]


def test_a_gate_that_raises_lets_nothing_out() -> None:
    """Its error passes as it is, and the server hears nothing but the end."""
    with talking(_answers) as odd:

        def no() -> None:
            raise OSError("revoked")

        with pytest.raises(OSError, match="revoked"):
            _put(Site(odd.url), Gate(no))
        assert b"".join(odd.heard) == b""


def test_a_gate_that_takes_longer_than_the_call_may_lets_nothing_out() -> None:
    """After the deadline nothing is sent, and the error says that nothing was."""
    with talking(_answers) as odd:
        with pytest.raises(Broken, match="timed out") as broken:
            _put(Site(odd.url), Gate(lambda: threading.Event().wait(2 * SOON_S)), SOON_S)
        assert (broken.value.sent, b"".join(odd.heard)) == (False, b"")


def test_a_connection_that_ends_while_the_gate_is_asked_is_not_written_to() -> None:
    """The server hung up meanwhile: nothing was sent, and that is known."""
    ended = threading.Event()

    def hang_up(line: Line) -> None:
        line.reset()
        ended.set()

    with talking(hang_up) as odd:
        with pytest.raises(Broken) as broken:
            _put(Site(odd.url), Gate(lambda: ended.wait(LONG_S)))
        assert not broken.value.sent


def test_a_gated_request_is_written_once_to_a_server_that_resets_kept_connections() -> None:
    """Reads go on over new connections; each change has one of its own and is heard once."""
    with talking(_answers_once) as odd:
        site, gate = Site(odd.url), Gate()
        assert [_get(site), _get(site), _put(site, gate), _get(site), _put(site, gate)] == [200] * 5
        assert (b"".join(odd.heard).count(b"PUT /x"), gate.asked) == (2, 2)


def test_a_gated_request_whose_connection_breaks_is_not_written_again() -> None:
    """A reset after the request is an answer that is lost: it may have been done."""

    def breaks(line: Line) -> None:
        line.hear()
        line.reset()

    with talking(breaks) as odd:
        with pytest.raises(Broken) as broken:
            _put(Site(odd.url), Gate())
        assert (broken.value.sent, len(odd.lines)) == (True, 1)


def test_a_request_that_may_not_be_repeated_is_not() -> None:
    """Over a kept connection that breaks, only what the caller calls repeatable is sent again."""
    with talking(_answers_once) as odd:
        site = Site(odd.url)
        _get(site)
        with pytest.raises(Broken):
            _get(site, repeatable=False)
        assert b"".join(odd.heard).count(b"GET /x") == 2


def test_one_connection_is_kept_for_calls_one_after_another() -> None:
    """A server that keeps its connections is connected to once."""
    with talking(_answers) as odd:
        site = Site(odd.url)
        assert ([_get(site) for _ in range(5)], len(odd.lines)) == ([200] * 5, 1)


def _drips_head(line: Line) -> None:
    line.hear()
    line.drip(b"HTTP/1.1 200 OK\r\nX-Long: a")


def _drips_body(line: Line) -> None:
    line.hear()
    line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    line.drip(b" ")


def _drips_to_the_end(line: Line) -> None:
    line.hear()
    line.say(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    line.drip(b" ")


def _drips_chunks(line: Line) -> None:
    line.hear()
    line.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not line.stop.is_set():
        line.say(b"1\r\n \r\n")
        line.wait()


SLOW = {
    "no answer": _never_answers,
    "a head that drips": _drips_head,
    "a body that drips": _drips_body,
    "a body without a length that drips": _drips_to_the_end,
    "chunks that drip": _drips_chunks,
}


@pytest.mark.parametrize("talk", SLOW.values(), ids=SLOW)
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_an_answer_that_does_not_come_whole_ends_with_the_deadline(talk: object, secure: bool, tmp_path: Path) -> None:
    """However steadily it drips, the call ends; what came until then is never taken for an answer."""
    authority = Authority()
    with talking(talk, authority.server(tmp_path) if secure else None) as odd:  # type: ignore[arg-type]
        gate = Gate()
        with pytest.raises(Broken, match="timed out") as broken:
            _put(_trusting(odd.url, authority), gate, SOON_S)
        # A slow machine may not even have connected by then.
        assert broken.value.sent == (gate.asked == 1)
        assert b"".join(odd.heard).count(b"PUT /x") <= 1


def _trusting(url: str, authority: Authority) -> Site:
    return Site(url, context=ssl.create_default_context(cadata=authority.pem.decode()))


def test_a_request_that_is_read_in_drips_is_cut_off() -> None:
    """A server that reads a byte at a time never gets the whole request once the deadline is over."""
    body, done = b"x" * 64 * 1024 * 1024, threading.Event()

    def reads_slowly(line: Line) -> None:
        line.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            for _ in range(20):
                line.heard += line.connection.recv(1)
                line.wait()
            done.wait(LONG_S)
            while piece := line.connection.recv(1024 * 1024):
                line.heard += piece
        finally:
            line.stop.set()

    with talking(reads_slowly) as odd:
        with pytest.raises(Broken, match="timed out"):
            _put(Site(odd.url), Gate(), SOON_S, body)
        done.set()
        assert all(line.stop.wait(LONG_S) for line in odd.lines)
        assert len(b"".join(odd.heard)) < len(body)


def test_tls_that_is_not_agreed_on_in_time_asks_no_gate() -> None:
    """A server that takes the connection and says nothing: nothing was sent, the gate was not asked."""
    gate = Gate()
    with talking(lambda line: line.drip(b"\x16")) as odd:
        with pytest.raises(Broken) as broken:
            _put(Site(odd.url.replace("http:", "https:")), gate, SOON_S)
        assert (broken.value.sent, gate.asked) == (False, 0)


def test_a_certificate_of_nobody_known_is_insecure(tmp_path: Path) -> None:
    """The error says so, the gate is not asked, and nothing is sent."""
    gate = Gate()
    with talking(_answers, Authority().server(tmp_path)) as odd:
        with pytest.raises(Broken) as broken:
            _put(Site(odd.url), gate)
        assert (broken.value.insecure, broken.value.sent, gate.asked) == (True, False, 0)


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking a name up is part of the call."""
    never, gate = threading.Event(), Gate()

    def silent(*_: object, **__: object) -> object:
        never.wait()
        raise OSError("no name server")

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    with pytest.raises(Broken, match="timed out"):
        _put(Site("http://cloud.example"), gate, SOON_S)
    never.set()
    assert gate.asked == 0


HALVES = {
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
    "half of the chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    "half a status": b"HTTP/1.1 2",
    "no HTTP": b"hello" + END,
    "nothing": b"",
}


@pytest.mark.parametrize("said", HALVES.values(), ids=HALVES)
def test_half_an_answer_is_none(said: bytes) -> None:
    """A connection that ends too soon is a call whose answer is lost."""

    def half(line: Line) -> None:
        line.hear()
        line.say(said)
        line.connection.close()

    with talking(half) as odd, pytest.raises(Broken) as broken:
        _put(Site(odd.url), Gate())
    assert broken.value.sent


def test_an_answer_without_end_is_given_up() -> None:
    """More than the caller takes is not an answer."""

    def floods(line: Line) -> None:
        line.hear()
        line.say(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            line.say(b"x" * 65536)

    with talking(floods) as odd, Deadline(LONG_S) as deadline, pytest.raises(Broken, match="does not end"):
        Site(odd.url).ask(deadline, "GET", "/", takes=Takes(1024 * 1024))


def test_what_http_cannot_carry_is_refused_without_being_told() -> None:
    """A secret with a line break in it is not in the error."""
    with Deadline(LONG_S) as deadline, pytest.raises(Broken) as broken:
        Site("http://127.0.0.1:9").ask(deadline, "GET", "/", headers={"Authorization": "planted\nsecret"})
    assert ("planted" in f"{broken.value!r}", broken.value.sent) == (False, False)
