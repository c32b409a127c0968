"""The server of ``serve`` beside a test: the application at a port of this machine, while it is wanted."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from pilotlight.tools.serve.http_server import HttpServer


@contextmanager
def serving(site: Any, threads: int = 8, *, at: int = 0) -> Iterator[int]:
    """The port where ``site`` is served: that one, or one that is free."""
    listener, stop = socket.create_server(("127.0.0.1", at), backlog=512), Event()
    port: int = listener.getsockname()[1]
    server = HttpServer(site, listener, threads)
    thread = Thread(target=server.serve, args=(lambda: not stop.is_set(),), daemon=True)
    thread.start()
    yield port
    stop.set()
    thread.join()
