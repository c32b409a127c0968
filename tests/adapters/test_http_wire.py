"""HTTP/1.1 byte by byte: what is written, and what is made of answers whole, in parts and broken."""

import socket
from email.utils import parsedate_to_datetime

import pytest

from pilotlight.adapters.http_wire import Malformed, Reply, moment_of, written

HEAD = b"HTTP/1.1 200 OK\r\n"


def _read(wire: bytes, method: str = "GET") -> tuple[Reply, bytes]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(wire)
        theirs.shutdown(socket.SHUT_WR)
        reply = Reply(ours, method)
        reply.begin()
        body = b"".join(reply.pieces())
        reply.close()
    return reply, body


WHOLE = {
    "of a known length": (HEAD + b"Content-Length: 2\r\n\r\nab", b"ab", False),
    "in chunks with extensions and trailers": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n1\r\nb\r\n0\r\nTrailer: t\r\n\r\n",
        b"ab",
        False,
    ),
    "up to the end of the connection": (HEAD + b"\r\nab", b"ab", True),
    "behind an interim one": (
        b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\nab",
        b"ab",
        False,
    ),
    "of HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", b"ab", True),
    "of HTTP/1.0 that stays": (
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nab",
        b"ab",
        False,
    ),
    "that says it closes": (HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nab", b"ab", True),
    "with no words beside its status": (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nab", b"ab", False),
    "without content": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", False),
}


@pytest.mark.parametrize(("wire", "body", "closes"), WHOLE.values(), ids=list(WHOLE))
def test_an_answer_is_read_to_its_end_and_no_further(wire: bytes, body: bytes, closes: bool) -> None:
    """Its body, and whether the connection is of use for another request."""
    reply, got = _read(wire)
    assert (got, reply.closes, reply.left or 0) == (body, closes, 0)


BROKEN = {
    "no HTTP": b"220 mail.example.com ESMTP\r\n",
    "another version": b"HTTP/2 200\r\n\r\n",
    "a head that ends early": HEAD + b"Content-Le",
    "a line that is no header": HEAD + b"nothing\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "headers without end": HEAD + b"A: b\r\n" * 200 + b"\r\n",
    "a chunk without its end": HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nab",
    "a chunk of a size that is none": HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nab",
}


@pytest.mark.parametrize("wire", BROKEN.values(), ids=list(BROKEN))
def test_what_is_no_whole_answer_is_refused(wire: bytes) -> None:
    """It is an error, in words that quote nothing of it."""
    with pytest.raises(Malformed, match=r"half an answer|no HTTP|headers"):
        _read(wire)


def test_half_a_body_says_what_is_missing() -> None:
    """The connection ended before the length that was said."""
    reply, got = _read(HEAD + b"Content-Length: 9\r\n\r\nab")
    assert (got, reply.left) == (b"ab", 7)


def test_a_head_has_no_body_whatever_it_says() -> None:
    """The length of an answer to HEAD is that of another's."""
    reply, got = _read(HEAD + b"Content-Length: 9\r\n\r\n", "HEAD")
    assert (got, reply.closes) == (b"", False)


@pytest.mark.parametrize(
    "asked",
    [("GET", "/a b", {}), ("GET", "/\r\nX: y", {}), ("GET", "/", {"A": "b\r\nC: d"}), ("GET", "/", {"A b": "c"})],
    ids=["a target with a space", "a target with a line", "a value with a line", "a name with a space"],
)
def test_a_request_cannot_carry_another(asked: tuple[str, str, dict[str, str]]) -> None:
    """Nothing that ends a line gets onto the wire, and the refusal does not quote it."""
    method, target, headers = asked
    with pytest.raises(Malformed, match="the request holds what HTTP cannot carry"):
        written(method, target, None, headers)


@pytest.mark.parametrize(
    "text",
    ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 +0100"],
    ids=["as servers write it", "as RFC 850 does", "with a zone"],
)
def test_a_date_is_read_as_mail_reads_it(text: str) -> None:
    """The quick way and the long way agree."""
    assert moment_of(text) == parsedate_to_datetime(text)
