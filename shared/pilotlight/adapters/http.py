"""HTTP/1.1 to one server, under a deadline of the caller's: names, connecting, sending and reading together.

A request is written once, in one piece. One that asks a gate has a connection of its own, opened before the gate is
asked, and is never written again; another may go over a kept connection, and once more over a new one where the caller
says that it may be repeated. Redirects are not followed; no proxy and no environment is asked.
"""

import ipaddress
import math
import select
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from io import BytesIO
from threading import Lock, Thread
from typing import BinaryIO, NamedTuple
from urllib.parse import urlsplit

from pilotlight.adapters.call_timeout import Deadline, cut
from pilotlight.ports.clouds import Gate
from pilotlight.units import Seconds

LARGEST = 8 * 1024 * 1024
CHUNK = 64 * 1024
CONNECT_S: Seconds = 5
KEPT = 8
"""So many idle connections to one server."""

_CLOSED = select.POLLERR | select.POLLHUP | getattr(select, "POLLRDHUP", 0)


class HttpAnswer(NamedTuple):
    """A whole answer: its headers' names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Takes(NamedTuple):
    """Limits of an answer: its bytes, a silence, and where given the file that the body of a 200 goes into."""

    largest: int = LARGEST
    piece_s: Seconds = math.inf
    into: BinaryIO | None = None


ALL = Takes()


class _Endless(OSError):
    """An answer beyond what is taken."""


class Broken(Exception):
    """No whole answer came. ``str()`` says why, in words that hold nothing of the request.

    ``sent``: the request may have arrived. ``part`` is what came of an answer. ``insecure``: TLS was not agreed on.
    ``endless``: the answer is larger than what is taken.
    """

    def __init__(self, why: Exception | str, *, sent: bool, part: HttpAnswer | None = None) -> None:
        super().__init__(why if isinstance(why, str) else reason(why))
        self.sent, self.part = sent, part
        self.endless = isinstance(why, _Endless)
        ended = isinstance(why, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        self.insecure = isinstance(why, ssl.SSLError) and not ended


class Site:
    """One server, by scheme, host and port of a URL. Opens nothing before the first call; safe for many threads."""

    def __init__(
        self,
        url: str,
        *,
        context: ssl.SSLContext | None = None,
        server_name: str = "",
        connect_s: Seconds = CONNECT_S,
        addresses: "Callable[[str, int, Deadline], Sequence[str]] | None" = None,
    ) -> None:
        where = urlsplit(url)
        self._secure = where.scheme == "https"
        self._host = where.hostname or ""
        self._port = where.port or (443 if self._secure else 80)
        self._named = where.netloc.rpartition("@")[2]
        self._context, self._server_name = context, server_name or self._host
        self._connect_s = connect_s
        self._addresses = addresses or addresses_of
        self._idle: list[socket.socket] = []
        self._lock = Lock()

    def ask(
        self,
        deadline: Deadline,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        gate: Gate | None = None,
        repeatable: bool = False,
        takes: Takes = ALL,
    ) -> HttpAnswer:
        """Whatever the server answers, as far as it ``takes`` that. Raises ``Broken``, or what ``gate`` does."""
        wire = _written(method, target, body, {"Host": self._named, **(headers or {})})
        kept = None if gate else self._kept()
        if kept is not None:
            try:
                return self._exchange(kept, deadline, method, wire, takes)
            except Broken as error:
                if not repeatable or error.part or deadline.over:
                    raise
        connection = self._connected(deadline)
        if gate is not None:
            _pass(gate, connection, deadline)
        return self._exchange(connection, deadline, method, wire, takes)

    def _exchange(
        self, connection: socket.socket, deadline: Deadline, method: str, wire: bytes, takes: Takes
    ) -> HttpAnswer:
        answer, body = HTTPResponse(connection, method=method), BytesIO()
        try:
            deadline.watch(connection)
            connection.settimeout(min(takes.piece_s, deadline.seconds_left()))
            connection.sendall(wire)
            answer.begin()
            _read(answer, body, takes)
            deadline.seconds_left()  # A connection that was cut looks like one whose answer is at its end.
        except BaseException as error:
            part = None if answer.headers is None else _taken(answer, body)
            _drop(connection, answer)
            if not isinstance(error, OSError | HTTPException):
                raise
            raise Broken("timed out" if deadline.over else error, sent=True, part=part) from None
        taken, stays = _taken(answer, body), not answer.will_close
        deadline.watch(None)
        answer.close()
        self._keep(connection, stays)
        return taken

    def _connected(self, deadline: Deadline) -> socket.socket:
        """A new connection, its TLS agreed on, to the first of the server's addresses that takes it."""
        try:
            failure: Exception = OSError("has no address")
            for address in self._addresses(self._host, self._port, deadline):
                try:
                    return self._opened(address, deadline)
                except OSError as error:
                    failure = TimeoutError() if deadline.over else error
            raise failure
        except OSError as error:
            raise Broken(error, sent=False) from None

    def _opened(self, address: str, deadline: Deadline) -> socket.socket:
        made = self._dialled(address, deadline)
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self._secure:
                return made
            made = secured = (self._context or _tls()).wrap_socket(
                made, server_hostname=self._server_name, do_handshake_on_connect=False
            )
            deadline.watch(secured)
            secured.do_handshake()
        except BaseException:
            made.close()
            raise
        return made

    def _dialled(self, address: str, deadline: Deadline) -> socket.socket:
        return socket.create_connection((address, self._port), min(self._connect_s, deadline.seconds_left()))

    def _kept(self) -> socket.socket | None:
        """An idle connection on which nothing has come: what has, is its end."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                kept = self._idle.pop()
            if not _said(kept, select.POLLIN | _CLOSED):
                return kept
            kept.close()

    def _keep(self, connection: socket.socket, stays: bool) -> None:
        with self._lock:
            if stays and len(self._idle) < KEPT:
                self._idle.append(connection)
                return
        connection.close()


def fetch(
    url: str,
    within_s: Seconds,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> HttpAnswer:
    """One request over a connection of its own. Raises ``Broken``."""
    with Deadline(within_s) as deadline:
        return Site(url).ask(deadline, method, target_of(url), body, {**(headers or {}), "Connection": "close"})


def target_of(url: str) -> str:
    """Target of a request for a URL: its path and query."""
    where = urlsplit(url)
    return (where.path or "/") + (f"?{where.query}" if where.query else "")


def addresses_of(host: str, port: int, deadline: Deadline) -> Sequence[str]:
    """The addresses of a host. A name server that does not answer is waited for no longer than the deadline."""
    with suppress(ValueError):
        return [str(ipaddress.ip_address(host))]
    found: list[str] = []
    failed: list[Exception] = []

    def look() -> None:
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.extend(dict.fromkeys(str(entry[4][0]) for entry in entries))
        except (OSError, UnicodeError) as error:
            failed.append(error)

    # Nothing can wake a thread out of the C library's resolver.
    thread = Thread(target=look, daemon=True)
    thread.start()
    thread.join(deadline.seconds_left())
    deadline.seconds_left()
    if failed:
        raise OSError("the name cannot be resolved")
    return found


def reason(error: Exception) -> str:
    """Reason for a broken call, in words that cannot hold any of the request."""
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return error.reason or type(error).__name__
    if isinstance(error, OSError):
        return error.strerror or (str(error.args[0]) if error.args else type(error).__name__)
    return type(error).__name__


class _Paper(HTTPConnection):
    """Takes down what http.client would send: its checks of names and values, in one piece."""

    def __init__(self) -> None:
        super().__init__("host")
        self.written = bytearray()

    def send(self, data: object) -> None:
        """Take it down."""
        assert isinstance(data, bytes | bytearray)
        self.written += data


def _written(method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    paper = _Paper()
    try:
        paper.request(method, target, body, dict(headers))
    except (ValueError, HTTPException):  # It quotes what it refuses, which may be a secret.
        raise Broken("the request holds what HTTP cannot carry", sent=False) from None
    return bytes(paper.written)


def _pass(gate: Gate, connection: socket.socket, deadline: Deadline) -> None:
    """Ask the gate with the connection open. Raises what it raises, or ``Broken`` where the connection did not last."""
    try:
        gate()
    except BaseException:
        connection.close()
        raise
    try:
        deadline.seconds_left()
        if _said(connection, _CLOSED):
            raise ConnectionResetError("closed before anything was sent")
    except OSError as error:
        connection.close()
        raise Broken(error, sent=False) from None


def _read(answer: HTTPResponse, body: BytesIO, takes: Takes) -> None:
    """Add to ``body``, or write to a file, what comes."""
    into = takes.into if answer.status == HTTPStatus.OK else None
    size = 0
    while piece := answer.read1(CHUNK):
        if into is not None:
            into.write(piece)
            continue
        body.write(piece)
        size += len(piece)
        if size > takes.largest:
            raise _Endless("the answer does not end")
    if answer.length:
        raise OSError("half an answer")


def _taken(answer: HTTPResponse, body: BytesIO) -> HttpAnswer:
    return HttpAnswer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, body.getvalue())


def _drop(connection: socket.socket, answer: HTTPResponse) -> None:
    """Close at once: what is not sent yet never leaves."""
    cut(connection)
    with suppress(OSError):
        answer.close()
    connection.close()


def _said(connection: socket.socket, what: int) -> bool:
    poll = select.poll()
    poll.register(connection, what)
    return bool(poll.poll(0))


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
