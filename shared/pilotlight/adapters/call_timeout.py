"""One total time for a call to the outside: when it is over, a timer cuts the connection, whoever waits for it.

A socket's own time limit is for one piece of an answer: a server that sends a byte a second keeps it alive for ever.
"""

import socket
import struct
import time
from contextlib import suppress
from threading import Lock, Timer
from types import TracebackType
from typing import Self

from pilotlight.units import Seconds

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: on, for no time."""


class Deadline:
    """So long for a whole call, from entering the context. Watches one connection at a time."""

    def __init__(self, within_s: Seconds) -> None:
        self._ends = time.monotonic() + within_s
        self._lock = Lock()
        self._watched: socket.socket | None = None
        self._timer = Timer(within_s, self._strike)
        self._timer.daemon = True
        self.over = False
        """Whether the time is up: what was read until then may be half of it."""

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._timer.cancel()
        self.watch(None)

    def seconds_left(self) -> Seconds:
        """Seconds that are left. Raises ``TimeoutError`` when nothing is."""
        left = self._ends - time.monotonic()
        if left <= 0 or self.over:
            raise TimeoutError("timed out")
        return left

    def watch(self, connection: socket.socket | None) -> None:
        """Cut this connection when the time is over, instead of the one before it."""
        with self._lock:
            self._watched = connection
            if self.over and connection is not None:
                cut(connection)

    def _strike(self) -> None:
        with self._lock:
            self.over = True
            if self._watched is not None:
                cut(self._watched)


def cut(connection: socket.socket) -> None:
    """End a connection for whoever waits for it. Once it is closed, nothing of it is sent any more."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        # Of the file descriptor: an SSLSocket's own shutdown() would take the cipher from under its reader.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
