"""Tokens of a credentials file: google-auth asks over our own HTTP."""

import json
import ssl
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from answering import Answer, answering
from certificates import Authority
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from odd_server import Line, talking

from pilotlight.adapters import google_token, http
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.pools.gke.google_rest import GoogleRest
from pilotlight.errors import Forbidden, Unavailable
from pilotlight.ports.clouds import OPEN


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


class _Said(msgspec.Struct, frozen=True):
    """What the interface answers."""

    by: str = ""


def test_a_token_that_ended_early_is_taken_anew(tmp_path: Path, pem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine slept, or tokens last ten minutes: a read goes on with a new one, a change is sent once and refused,
    and the next has a new one."""
    authority, tokens, ended = Authority(), count(1), set[str]()
    heard: list[str] = []

    def says(path: str, body: bytes, headers: dict[str, str]) -> Answer:
        heard.append(headers["Authorization"].removeprefix("Bearer "))
        return (401, {"error": {"code": 401}}) if heard[-1] in ended else (200, {"by": heard[-1]})

    def gives(*_: Any) -> Answer:
        return 200, {"access_token": f"t{next(tokens)}", "expires_in": 3600}

    monkeypatch.setattr(http, "_tls", lambda: ssl.create_default_context(cadata=authority.pem.decode()))
    with answering(gives) as giver, answering(says, authority.server(tmp_path)) as host:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", _account(tmp_path, pem, f"http://{giver}/token"))
        rest = GoogleRest(f"https://{host}", GoogleToken(file=True), {})
        assert rest.read("/a", _Said).by == "t1"
        ended.add("t1")
        assert rest.read("/a", _Said).by == "t2"
        ended.add("t2")
        with pytest.raises(Forbidden), Deadline(5) as deadline:
            rest.change(deadline, "/b", _Said, {}, OPEN)
        assert heard == ["t1", "t1", "t2", "t2"]
        with Deadline(5) as deadline:
            assert rest.change(deadline, "/b", _Said, {}, OPEN).by == "t3"
        ended.update(f"t{n}" for n in range(99))
        with pytest.raises(Forbidden):
            rest.read("/a", _Said)
        assert heard[4:] == ["t3", "t3", "t4"]


@pytest.mark.parametrize("said", [b"<html>captive portal</html>", b"{}", b"\xff\xfe", b'{"access_token": "t"}'])
def test_a_metadata_server_that_gives_no_token_is_for_later(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 with a page of somebody else's, or without the token: the error says who answered, and repeats nothing."""
    with answering(lambda *_: (200, said)) as host:
        monkeypatch.setattr(google_token, "METADATA", f"http://{host}/token")
        with pytest.raises(Unavailable, match="the metadata server answers 200 without a token") as caught:
            GoogleToken().header()
    assert "portal" not in str(caught.value)
