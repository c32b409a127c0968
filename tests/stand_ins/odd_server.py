"""A server on a bare socket, which talks as a test scripts it: resets, silence, drips."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

END = b"\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

Talk = Callable[["Line"], None]


class Line:
    """One connection to the server. ``heard`` is what came over it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.heard = b""
        self.stop = threading.Event()

    def hear(self) -> bool:
        """One request without a body; whether one came."""
        came = b""
        while END not in came:
            piece = self.connection.recv(65536)
            if not piece:
                return False
            came += piece
            self.heard += piece
        return True

    def say(self, text: bytes) -> None:
        """Send it."""
        self.connection.sendall(text)

    def drip(self, text: bytes) -> None:
        """Send a byte at a time, the last one over and over, until the other side has had enough."""
        for byte in text:
            self.say(bytes([byte]))
            self.wait()
        while not self.stop.is_set():
            self.say(text[-1:])
            self.wait()

    def wait(self) -> None:
        """A moment shorter than any limit for one piece."""
        self.stop.wait(0.02)

    def reset(self) -> None:
        """Break the connection without a word."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class Odd:
    """The server: its address, and its connections in the order of their coming."""

    def __init__(self, port: int, secure: bool) -> None:
        self.url = f"{'https' if secure else 'http'}://127.0.0.1:{port}"
        self.lines: list[Line] = []
        self.came = threading.Event()

    @property
    def heard(self) -> list[bytes]:
        """What came over each connection so far."""
        return [line.heard for line in self.lines]


@contextmanager
def talking(talk: Talk, context: ssl.SSLContext | None = None) -> Iterator[Odd]:
    """A server whose every connection is talked to by ``talk``, while it is used."""
    listener = socket.create_server(("127.0.0.1", 0))
    odd = Odd(listener.getsockname()[1], context is not None)

    def one(connection: socket.socket) -> None:
        with suppress(OSError):
            if context is not None:
                connection = context.wrap_socket(connection, server_side=True)
            line = Line(connection)
            odd.lines.append(line)
            odd.came.set()
            talk(line)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=one, args=[listener.accept()[0]], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield odd
    finally:
        for line in odd.lines:
            line.stop.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
