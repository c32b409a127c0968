"""TLS of the poster: the connection goes to the address that was looked at, the certificate is checked by name."""

import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from pilotlight.adapters import http
from pilotlight.adapters.webhook_post import Poster
from pilotlight.errors import Unavailable

x509 = pytest.importorskip("cryptography.x509", reason="cryptography makes the certificate")

HOST = "hooks.example.com"


class _Takes(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Take it."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.send_header("X-Host", self.headers["Host"])
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Stay silent."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a TLS server on this machine, whose certificate is HOST's; every name leads to it."""
    certificate = _certificate(tmp_path)
    https = HTTPServer(("127.0.0.1", 0), _Takes)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    https.socket = context.wrap_socket(https.socket, server_side=True)
    https.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=https.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    real = socket.getaddrinfo

    def here(host: str, port: int, *rest: Any, **more: Any) -> Any:
        return real("127.0.0.1", port, *rest, **more)

    monkeypatch.setattr("socket.getaddrinfo", here)
    monkeypatch.setattr(http, "_tls", lambda: ssl.create_default_context(cafile=str(certificate)))
    yield https.server_port
    https.shutdown()
    thread.join()
    https.server_close()


def _certificate(folder: Path) -> Path:
    """Certificate and key of HOST, signed by itself."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(text + made.public_bytes(serialization.Encoding.PEM))
    return file


def test_the_certificate_of_the_name_is_taken(server: int) -> None:
    """The address comes from one look-up, the certificate and the Host header are the name's."""
    reply = Poster(f"https://{HOST}:{server}/x", "it", allow_private=True).post(b"{}", {})
    assert (reply.status, reply.headers["x-host"]) == (204, f"{HOST}:{server}")


def test_another_names_certificate_is_not(server: int) -> None:
    """A server that cannot show the name's certificate gets nothing; the error shows no path."""
    with pytest.raises(Unavailable, match=r"other\.example\.com") as caught:
        Poster(f"https://other.example.com:{server}/s3cret", "it", allow_private=True).post(b"{}", {})
    assert "s3cret" not in str(caught.value)
