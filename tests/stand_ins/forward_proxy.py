"""A forward proxy on this machine: it tunnels and forwards to one server, whatever name it is asked for."""

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class ForwardProxy:
    """What it was asked for, and the login that it wants, as ``user:password``, if any."""

    def __init__(self, port: int, login: str = "") -> None:
        self.port, self.login = port, login
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        """Its address, with its login."""
        return f"http://{self.login}@127.0.0.1:{self.port}" if self.login else f"http://127.0.0.1:{self.port}"


@contextmanager
def forward_proxy(to: str, login: str = "") -> Iterator[ForwardProxy]:
    """A proxy to the server at HOST:PORT."""
    host, _, port = to.partition(":")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_CONNECT(self) -> None:
            if self._let_in():
                self.send_response(200, "Connection established")
                self.end_headers()
                with socket.create_connection((host, int(port))) as upstream:
                    back = threading.Thread(target=_copy, args=(upstream, self.connection), daemon=True)
                    back.start()
                    _copy(self.connection, upstream)
                    back.join()
            self.close_connection = True

        def do_POST(self) -> None:
            if not self._let_in():
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            where = urlsplit(self.path)
            upstream = HTTPConnection(host, int(port))
            upstream.putrequest("POST", where.path or "/", skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                upstream.putheader(name, value)
            upstream.endheaders(body)
            answer = upstream.getresponse()
            said = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
            upstream.close()

        def _let_in(self) -> bool:
            proxy.asked.append(self.path)
            wanted = f"Basic {base64.b64encode(login.encode()).decode()}" if login else None
            if self.headers.get("Proxy-Authorization") == wanted:
                return True
            self.send_response(407)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy = ForwardProxy(server.server_port, login)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()


def _copy(here: socket.socket, there: socket.socket) -> None:
    """All that comes, to its end."""
    with suppress(OSError):
        while piece := here.recv(65536):
            there.sendall(piece)
    with suppress(OSError):
        there.shutdown(socket.SHUT_WR)
