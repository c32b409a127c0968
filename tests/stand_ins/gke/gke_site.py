"""The project of ``gke_server`` over HTTP: every request and every answer is validated by Google's documents."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep

from civo_server import Fault
from gke_answers import Refused, error
from gke_server import Gke
from google_documents import BETA, COMPUTE, CONTAINER, PROJECTS, called, check


@contextmanager
def serving(gke: Gke) -> Iterator[Mapping[str, str]]:
    """The project over HTTP: the environment that leads to it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            name = CONTAINER if self.path.startswith("/v1/") else COMPUTE
            name = BETA if self.path.startswith("/compute/beta/") else name
            name = PROJECTS if self.path.endswith(":testIamPermissions") else name
            call, asked = called(name, self.command, self.path, body)
            verb = "get-operation" if "Operations" in call.method else call.method.rpartition(".")[2]
            with gke.lock:
                gke.calls.append((call.method, call.path, call.query, asked))
                fault = next((f for f in gke.faults if f.method in ("", verb)), None)
                if fault is not None:
                    gke.faults.remove(fault)
            status, said = 200, b""
            if fault is None or fault.when == "after":
                try:
                    value = gke.answer(call, asked)
                    check(call.document, call.answers, value)
                    said = json.dumps(value).encode()
                except Refused as no:
                    status, said = no.status, error(no.status, no.reason, str(no))
            return self._say(status, said) if fault is None else self._misbehave(fault, said)

        do_GET = do_POST = do_PUT = do_DELETE = _any

        def _misbehave(self, fault: Fault, said: bytes) -> None:
            match fault.what:
                case (int() as status, value):
                    self._say(
                        status, value if isinstance(value, bytes) else str(value).encode(), None, fault.retry_after
                    )
                case "hang":
                    sleep(0.4)
                    self.close_connection = True
                case "reset":
                    self.close_connection = True
                    self.connection.close()
                case "cut":
                    self._say(200, said[: len(said) // 2] or b'{"name', len(said) + 100)
                case "drip":
                    self.send_response(200)
                    self.end_headers()
                    for _ in range(8):
                        self.wfile.write(b" ")
                        sleep(0.05)
                    self.close_connection = True

        def _say(self, status: int, data: bytes, length: int | None = None, retry_after: str = "") -> None:
            self.send_response(status)
            if retry_after:
                self.send_header("Retry-After", retry_after)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data) if length is None else length))
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = length is not None

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield {
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER": url,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": url,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDRESOURCEMANAGER": url,
        }
    finally:
        server.shutdown()
        server.server_close()
