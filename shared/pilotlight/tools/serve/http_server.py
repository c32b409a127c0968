"""The HTTP server of ``serve``: waitress, which reads requests in one loop, so that only a whole one takes a thread.

Slow senders hold a connection and nothing else: a head and a body have one deadline each, however often a byte comes;
what is read and not yet answered is bounded in connections and in bytes. Health has threads of its own.
"""

import logging
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import inf
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher
from waitress.utilities import Error

from pilotlight.doorway.web import LATE
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

THREADS = 8
"""Requests that one process answers at once."""

APART = ("/healthz", "/readyz")
"""Health has threads of its own: it is answered while all others work."""

HEAD_S: Seconds = 10.0
"""How long a request's head may take, from the connection or the answer before it."""

BODY_S: Seconds = 30.0
"""How long its body may take after that."""

CONNECTIONS = 800
"""Connections of one process, below the usual limit of 1,024 open files. More wait with the system."""

SPARE = 40
"""So many connections are made free at once: who is honest finds a place before a flood takes all of them again."""

SETTLED_S: Seconds = 1.0
"""Where all are taken, the oldest connection without a whole request gives way once it is older."""

IN_HAND = 64 * 1024 * 1024
"""Bytes of requests that are read and not yet answered. Beyond, only requests of a few bytes are read on."""

SMALL = 16 * 1024

LARGEST = 16 * 1024 * 1024
"""Bytes of a body that the functions are asked about: what is over their own limit leaves a letter. Pub/Sub's largest
push is 10 MB, in base64."""

ASK_S: Seconds = 1.0
"""So often it asks whether it goes on; in between come thousands of requests."""

BACKLOG = 2048
"""Connections that may wait with the system: a burst waits, it is not refused."""


class _Late(Error):  # type: ignore[misc]
    code = LATE[0]
    reason = "Request Timeout"


class _Channel(HTTPChannel):  # type: ignore[misc]
    """One connection. ``since`` is when its next request could begin, and ``ends`` when that must have come, head or
    body, on the monotonic clock."""

    server: "HttpServer"
    request: Any

    def __init__(self, *words: Any, **named: Any) -> None:
        self.held, self.since = 0, time.monotonic()
        self.ends = self.since + HEAD_S
        super().__init__(*words, **named)

    @property
    def begun(self) -> bool:
        """True once a request has begun to arrive."""
        return self.request is not None

    def readable(self) -> bool:
        return bool(super().readable()) and (self.held < SMALL or self.server.held < IN_HAND)

    def handle_read(self) -> None:
        if self.begun and self._over():
            self.cut()
        else:
            super().handle_read()

    def _over(self) -> bool:
        """True where the sender sends no more, which may still read."""
        with suppress(OSError):
            return bool(self.socket.recv(1, socket.MSG_PEEK) == b"")
        return False

    def received(self, data: bytes) -> bool:
        had_head = self.begun and self.request.headers_finished
        self.server.hold(self, len(data))
        taken = bool(super().received(data))
        if self.begun and self.request.headers_finished and not had_head:
            self.ends = time.monotonic() + BODY_S
        return taken

    def service(self) -> None:
        super().service()
        self.server.hold(self, -self.held)
        self.since = time.monotonic()
        self.ends = self.since + HEAD_S

    def waits_until(self) -> Seconds:
        """When it is cut; never while a request of its is answered."""
        return inf if self.requests or self.will_close or self.close_when_flushed else self.ends

    def cut(self) -> None:
        """End it: with 408 where a request had begun, which a sender may send again."""
        with self.requests_lock:
            if self.requests or not self.begun:
                self.will_close = not self.requests
                return
            self.request.error, self.request.completed = _Late(LATE[1]), True
            self.requests.append(self.request)
            self.request = None
        self.server.add_task(self)

    def del_channel(self, map: Any = None) -> None:
        super().del_channel(map)
        self.server.hold(self, -self.held)


class HttpServer(TcpWSGIServer):  # type: ignore[misc]
    """Serves ``site`` on a socket that listens. ``held`` are the bytes in hand."""

    channel_class = _Channel
    active_channels: dict[int, _Channel]

    def __init__(self, site: "WSGIApplication", listener: socket.socket, threads: int = THREADS) -> None:
        for name in ("waitress", "waitress.queue"):
            logging.getLogger(name).setLevel(logging.ERROR)  # A queue is no news, nor is a sender that goes.
        words = Adjustments(
            sockets=[listener],
            threads=threads,
            backlog=BACKLOG,
            connection_limit=CONNECTIONS,
            cleanup_interval=1,
            max_request_header_size=64 * 1024,
            max_request_body_size=LARGEST,
            inbuf_overflow=2 * LARGEST,  # In memory: there may be no disk to write to.
            log_socket_errors=False,
            ident=None,
        )
        self.held, self._count = 0, Lock()
        self._apart = _dispatcher(2)
        at = (listener.family, listener.type, listener.proto, listener.getsockname())
        super().__init__(
            site, _sock=listener, dispatcher=_dispatcher(threads), adj=words, sockinfo=at, bind_socket=False
        )

    def hold(self, channel: _Channel, more: int) -> None:
        """Count bytes of a connection's requests, or that they are answered."""
        with self._count:
            channel.held, self.held = channel.held + more, self.held + more

    def add_task(self, channel: _Channel) -> None:
        asked = channel.requests[0]
        health = asked.error is None and asked.path in APART
        (self._apart if health else self.task_dispatcher).add_task(channel)

    def readable(self) -> bool:
        if len(self._map) >= CONNECTIONS:
            self._make_room()
        return bool(super().readable())

    def _make_room(self) -> None:
        settled = time.monotonic() - SETTLED_S
        waiting = [one for one in self.active_channels.values() if one.since < settled and one.waits_until() < inf]
        for one in sorted(waiting, key=attrgetter("since"))[: max(SPARE, len(self._map) - CONNECTIONS)]:
            one.will_close = True

    def maintenance(self, now: float) -> None:
        """Cut whoever is late."""
        at = time.monotonic()
        for channel in list(self.active_channels.values()):
            if channel.waits_until() < at:
                channel.cut()

    def serve(self, goes_on: Callable[[], bool], *, ends_within_s: Seconds = 5.0) -> None:
        """Serve while that is said once a second; then answer what was begun, within so long."""
        asked = -inf
        while (now := time.monotonic()) - asked < ASK_S or goes_on():
            asked = asked if now - asked < ASK_S else now
            self._turn(asked + ASK_S - now)
        self.accepting = False
        until = time.monotonic() + ends_within_s
        while time.monotonic() < until and any(_busy(self.active_channels.values())):
            goes_on()
            self._turn(0.1)
        for threads in (self.task_dispatcher, self._apart):
            threads.shutdown(timeout=0)
        wasyncore.close_all(self._map)

    def _turn(self, within_s: Seconds) -> None:
        wasyncore.loop(timeout=within_s, use_poll=True, map=self._map, count=1)


def _busy(channels: Iterable[_Channel]) -> Iterable[bool]:
    return (bool(one.requests or one.total_outbufs_len) for one in list(channels))


def _dispatcher(threads: int) -> ThreadedTaskDispatcher:
    found = ThreadedTaskDispatcher()
    found.set_thread_count(threads)
    return found
