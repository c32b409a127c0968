"""A proxy before a store that tells another time than it has, so that a test can let hours pass for a real backend."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3

_MOMENT = re.compile(rb'("(?:readTime|commitTime)": *")([^"]+)"')


@contextmanager
def shifted(host: str, by_s: Callable[[], float]) -> Iterator[str]:
    """Host and port of the proxy. Its ``Date``, and Firestore's read and commit times, are ``by_s`` later."""
    direct = urllib3.PoolManager(maxsize=8)

    def later(found: re.Match[bytes]) -> bytes:
        moment = datetime.fromisoformat(found[2].decode()) + timedelta(seconds=by_s())
        return found[1] + moment.isoformat().replace("+00:00", "Z").encode() + b'"'

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = direct.request("POST", f"http://{host}{self.path}", body=body, headers=dict(self.headers))
            data = _MOMENT.sub(later, answer.data)
            self.send_response_only(answer.status)
            self.send_header("Date", format_datetime(datetime.now(UTC) + timedelta(seconds=by_s()), usegmt=True))
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
