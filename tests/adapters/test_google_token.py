"""Tokens of a credentials file: google-auth asks over our own HTTP."""

import json
from pathlib import Path

import pytest
from answering import answering
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from odd_server import Line, talking

from pilotlight.adapters import google_token
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.errors import Unavailable


@pytest.fixture(scope="module")
def pem() -> str:
    """A key of nobody."""
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return rsa.generate_private_key(65537, 2048).private_bytes(serialization.Encoding.PEM, form, plain).decode()


def _account(folder: Path, pem: str, token_uri: str) -> str:
    """The file of a service account whose tokens come from ``token_uri``."""
    account = {"type": "service_account", "client_email": "a@b", "private_key": pem, "token_uri": token_uri}
    file = folder / "account.json"
    file.write_text(json.dumps(account))
    return str(file)


def test_a_credentials_file_gets_its_token(tmp_path: Path, pem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token service's answer is the token that is shown."""
    with answering(lambda *_: (200, {"access_token": "from-file", "expires_in": 3600})) as host:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", _account(tmp_path, pem, f"http://{host}/token"))
        assert GoogleToken(file=True).header() == {"Authorization": "Bearer from-file"}


def test_a_token_service_that_drips_is_for_later(tmp_path: Path, pem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer has a deadline as every other."""

    def drips(line: Line) -> None:
        line.hear()
        line.drip(b"HTTP/1.1 200 OK\r\nX-Long: a")

    monkeypatch.setattr(google_token, "LIBRARY_WAIT_S", 0.1)
    with talking(drips) as odd:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", _account(tmp_path, pem, f"{odd.url}/token"))
        with pytest.raises(Unavailable, match="timed out"):
            GoogleToken(file=True).header()
