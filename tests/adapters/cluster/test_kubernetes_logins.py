"""Logins and proxies of a person's kubeconfig: exec plugins, an OIDC issuer, a tunnel; no secret of theirs is told."""

import base64
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import yaml
from answering import answering
from api_server import ApiServer, api_server
from certificates import Authority
from forward_proxy import forward_proxy
from kubeconfigs import b64, config
from odd_server import Line, talking

from fleet import free_port
from pilotlight.adapters.cluster.kubernetes.access import addresses, logins
from pilotlight.adapters.cluster.kubernetes.access.server_access import Source
from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api, Patience
from pilotlight.errors import BadInput, Forbidden, Unavailable

PODS = "/api/v1/pods"
AUTHORITY = Authority()
CA = {"certificate-authority-data": b64(AUTHORITY.pem)}


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    """A server over TLS that wants the token "good"."""
    with api_server(tls=AUTHORITY.server(tmp_path)) as made:
        made.tokens = {"good"}
        yield made


def _of(folder: Path, made: dict[str, Any], environ: Mapping[str, str] = {}) -> Source:
    (folder / "config").write_text(yaml.safe_dump(made))
    return addresses.source_of(f"kubeconfig:{folder}/config", environ)


def reach(source: Source) -> None:
    """One call."""
    Api(source, pause=lambda _: None).get(PODS, NOTHING)


PLUGIN = """
import json, pathlib, sys
count = pathlib.Path(sys.argv[1]); n = int(count.read_text() or 0) if count.exists() else 0
count.write_text(str(n + 1))
print("planted-secret", file=sys.stderr)
if sys.argv[2] == "fail": sys.exit(3)
if sys.argv[2] == "noise": print("no JSON, planted-secret"); sys.exit(0)
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                  "status": {"token": sys.argv[3 + min(n, len(sys.argv) - 4)], "expirationTimestamp": sys.argv[2]}}))
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """A user with an exec plugin whose tokens end at a time; it gives them one after another."""
    script = tmp_path / "plugin.py"
    script.write_text(PLUGIN)

    def user(ends: str, *tokens: str) -> dict[str, Any]:
        arguments = [str(script), str(tmp_path / "count"), ends, *tokens]
        version = "client.authentication.k8s.io/v1"
        return {"exec": {"apiVersion": version, "command": sys.executable, "args": arguments}}

    return user


def _in(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_an_exec_plugin(server: ApiServer, plugin: Any, tmp_path: Path) -> None:
    """It is run once while its token lasts, and again when that is refused."""
    api = Api(_of(tmp_path, config(server.url, plugin(_in(3600), "good", "better"), **CA)), pause=lambda _: None)
    api.get(PODS, NOTHING)
    api.get(PODS, NOTHING)
    assert (tmp_path / "count").read_text() == "1"
    server.tokens = {"better"}
    api.get(PODS, NOTHING)
    assert (tmp_path / "count").read_text() == "2"


def test_a_plugins_token_is_renewed_before_it_ends(server: ApiServer, plugin: Any, tmp_path: Path) -> None:
    """One that ends within a minute is not kept."""
    api = Api(_of(tmp_path, config(server.url, plugin(_in(30), "good"), **CA)), pause=lambda _: None)
    api.get(PODS, NOTHING)
    api.get(PODS, NOTHING)
    assert (tmp_path / "count").read_text() == "2"


@pytest.mark.parametrize("way", ["fail", "noise"])
def test_a_plugin_that_fails_keeps_its_secrets(
    server: ApiServer, plugin: Any, way: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its words may hold secrets: the error says to run it by hand, and nothing else is printed."""
    with pytest.raises(Forbidden, match="run it by hand") as caught:
        reach(_of(tmp_path, config(server.url, plugin(way), **CA)))
    shown = capfd.readouterr()
    assert "planted-secret" not in str(caught.value) + shown.out + shown.err


def test_a_plugin_that_hangs_is_given_up(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that waits for a person is not waited for."""
    monkeypatch.setattr(logins, "LOGIN_WAIT_S", 0.2)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["2"]}}
    with pytest.raises(Unavailable, match="has not answered"):
        reach(_of(tmp_path, config(server.url, user, **CA)))


def test_an_exec_plugin_needs_no_official_client(
    server: ApiServer, plugin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubeconfigs of EKS, GKE and AKS name a plugin: the wheel alone reads them."""
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    reach(_of(tmp_path, config(server.url, plugin(_in(3600), "good"), **CA)))
    assert (tmp_path / "count").read_text() == "1"


TELLS = """
import json, os, pathlib
told = {"info": json.loads(os.environ["KUBERNETES_EXEC_INFO"]), "own": os.environ.get("OWN"), "at": os.getcwd()}
pathlib.Path("told").write_text(json.dumps(told))
print(json.dumps({"apiVersion": told["info"]["apiVersion"], "kind": "ExecCredential", "status": {"token": "good"}}))
"""


def test_a_plugin_is_told_what_kubectl_tells_it(server: ApiServer, tmp_path: Path) -> None:
    """Its variables, its version and, where it asks, the cluster with what the kubeconfig keeps for plugins."""
    kept = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}]
    asks: dict[str, Any] = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": sys.executable,
        "args": ["-c", TELLS],
        "env": [{"name": "OWN", "value": "1"}],
    }
    for more in ({}, {"provideClusterInfo": True}):
        reach(_of(tmp_path, config(server.url, {"exec": asks | more}, **CA, extensions=kept)))
        told = json.loads((tmp_path / "told").read_text())
        assert (told["own"], told["at"]) == ("1", str(tmp_path))
        assert told["info"]["apiVersion"] == "client.authentication.k8s.io/v1beta1"
        cluster = told["info"]["spec"].get("cluster", {})
        assert (cluster.get("server"), cluster.get("config")) == (
            (server.url, {"audience": "x"}) if more else (None, None)
        )


@pytest.mark.parametrize(
    "said",
    [
        "[]",
        "{}",
        '{"status": {"token": 1}}',
        '{"status": []}',
        '{"status": {}}',
        '{"apiVersion": "v0", "status": {"token": "good"}}',
    ],
)
def test_a_plugin_that_answers_otherwise_gives_no_credential(server: ApiServer, said: str, tmp_path: Path) -> None:
    """An answer of another form or another version is none."""
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "echo", "args": [said]}}
    with pytest.raises(Forbidden, match="run it by hand"):
        reach(_of(tmp_path, config(server.url, user, **CA)))


def test_a_login_by_oidc_without_the_official_client_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other login needs none of it."""
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(BadInput, match=r"pip install 'pilotlight\[kubernetes\]'"):
        reach(_of(tmp_path, config("https://h", {"auth-provider": {"name": "oidc"}}, **CA)))


def jwt(seconds: float, name: str = "me") -> str:
    """An identity token that ends in so many seconds."""
    claims = {"sub": name, "exp": int(time.time() + seconds)}
    parts = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "x"}, claims)
    )
    return ".".join((*parts, "planted-signature"))


class Issuer:
    """An OIDC issuer over TLS: what it answers for a refresh token, and what it was shown."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, ""
        self.discovery, self.status = 200, 200
        self.token = jwt(3600, "renewed")
        self.shown: list[dict[str, str]] = []

    def answer(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        """Its discovery document, or a token."""
        if path == "/.well-known/openid-configuration":
            return self.discovery, {"token_endpoint": f"{self.url}/token"}
        self.shown.append({"login": headers.get("Authorization", ""), **dict(parse_qsl(body.decode()))})
        if self.status != 200:
            return self.status, {"error": "invalid_grant", "error_description": "planted-description"}
        return 200, {
            "access_token": "x", "token_type": "Bearer", "id_token": self.token, "refresh_token": "planted-newer"
        }  # fmt: skip

    def user(self, token: str, **more: str) -> dict[str, Any]:
        """A person whom it knows."""
        own = {"idp-issuer-url": self.url, "client-id": "cli", "id-token": token, "refresh-token": "planted-refresh"}
        return {"auth-provider": {"name": "oidc", "config": {**own, **more}}}


@pytest.fixture
def issuer(tmp_path: Path, server: ApiServer) -> Iterator[Issuer]:
    """An issuer whose tokens the server takes."""
    made = Issuer(tmp_path)
    (tmp_path / "issuers.pem").write_bytes(AUTHORITY.pem)
    with answering(made.answer, AUTHORITY.server(tmp_path)) as host:
        made.url = f"https://{host}"
        server.tokens = {made.token}
        yield made


TRUSTED = {"idp-certificate-authority-data": b64(AUTHORITY.pem)}


def test_an_oidc_token_that_lasts_is_shown(server: ApiServer, issuer: Issuer, tmp_path: Path) -> None:
    """Its issuer is not asked."""
    lasting = jwt(3600)
    server.tokens = {lasting}
    reach(_of(tmp_path, config(server.url, issuer.user(lasting), **CA)))
    assert issuer.shown == []


def test_an_oidc_token_that_ended_is_renewed_and_kept(server: ApiServer, issuer: Issuer, tmp_path: Path) -> None:
    """The issuer is shown the refresh token once; the file has the new ones, and nothing that nobody wrote there."""
    user = issuer.user(jwt(-60), **{"client-secret": "s"}, **TRUSTED)
    source = _of(tmp_path, config(server.url, user, **CA))
    reach(source)
    reach(source)
    [shown] = issuer.shown
    assert (shown["grant_type"], shown["refresh_token"]) == ("refresh_token", "planted-refresh")
    assert shown["login"] == f"Basic {b64(b'cli:s')}"
    kept = yaml.safe_load((tmp_path / "config").read_text())
    renewed = issuer.user(issuer.token, **{"client-secret": "s", "refresh-token": "planted-newer"}, **TRUSTED)
    assert kept == config(server.url, renewed, **CA)


def test_an_issuer_is_trusted_by_the_authorities_of_requests(server: ApiServer, issuer: Issuer, tmp_path: Path) -> None:
    """Where the kubeconfig names none: a client without a secret of its own, and no line is added to the file."""
    environ = {"REQUESTS_CA_BUNDLE": str(tmp_path / "issuers.pem")}
    reach(_of(tmp_path, config(server.url, issuer.user(jwt(-60)), **CA), environ))
    kept = yaml.safe_load((tmp_path / "config").read_text())
    assert kept == config(server.url, issuer.user(issuer.token, **{"refresh-token": "planted-newer"}), **CA)


def test_an_issuer_that_nobody_vouches_for_is_shown_nothing(
    server: ApiServer, issuer: Issuer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Verification holds also where the kubeconfig names no authority."""
    with pytest.raises(Unavailable, match=r"issuer cannot be asked .*idp-certificate-authority") as said:
        reach(_of(tmp_path, config(server.url, issuer.user(jwt(-60)), **CA)))
    shown = capfd.readouterr()
    assert "planted" not in str(said.value)
    assert (shown.out, shown.err, issuer.shown) == ("", "", [])


@pytest.mark.parametrize(
    ("discovery", "status", "error", "why"),
    [(200, 400, Forbidden, "log in again"), (503, 200, Unavailable, "cannot be asked")],
    ids=["refused", "away"],
)
def test_an_issuer_that_gives_no_token_keeps_its_secrets(
    discovery: int,
    status: int,
    error: type[Exception],
    why: str,
    server: ApiServer,
    issuer: Issuer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One line says what to do; the file stays as it was."""
    issuer.discovery, issuer.status = discovery, status
    made = config(server.url, issuer.user(jwt(-60), **TRUSTED), **CA)
    with pytest.raises(error, match=why) as said:
        reach(_of(tmp_path, made))
    shown = capfd.readouterr()
    assert "planted" not in str(said.value)
    assert (shown.out, shown.err) == ("", "")
    assert yaml.safe_load((tmp_path / "config").read_text()) == made
    assert server.requests == []


BEHIND = {"tls-server-name": "127.0.0.1", **CA}


@pytest.mark.parametrize("login", ["", "me:planted@word"])
def test_a_server_behind_a_proxy(login: str, server: ApiServer, tmp_path: Path) -> None:
    """It tunnels to the server's name, which it alone knows, and the server's own certificate is expected."""
    with forward_proxy(server.url.removeprefix("https://"), login) as proxy:
        url = proxy.url.replace("planted@word", "planted%40word")
        source = _of(tmp_path, config("https://api.internal:6443", {"token": "good"}, **{"proxy-url": url}, **BEHIND))
        api = Api(source, pause=lambda _: None)
        api.get(PODS, NOTHING)
        api.get(PODS, NOTHING)
    assert proxy.asked == ["api.internal:6443"]
    assert "planted" not in repr(source.access())


def test_a_login_and_a_proxy_together(server: ApiServer, plugin: Any, tmp_path: Path) -> None:
    """A plugin's token goes through the tunnel."""
    with forward_proxy(server.url.removeprefix("https://")) as proxy:
        cluster = {"proxy-url": proxy.url, **BEHIND}
        reach(_of(tmp_path, config("https://api.internal", plugin(_in(3600), "good"), **cluster)))
    assert proxy.asked == ["api.internal:443"]


def test_a_proxy_that_wants_another_login_is_named_without_it(server: ApiServer, tmp_path: Path) -> None:
    """Nothing is shown to it but what the kubeconfig says."""
    with forward_proxy(server.url.removeprefix("https://"), "me:right") as proxy:
        url = f"http://me:planted@127.0.0.1:{proxy.port}"
        with pytest.raises(Unavailable, match=rf"the proxy 127.0.0.1:{proxy.port} answers 407") as said:
            reach(_of(tmp_path, config("https://api.internal", {"token": "good"}, **{"proxy-url": url}, **BEHIND)))
    assert "planted" not in str(said.value)
    assert server.requests == []


def test_a_proxy_that_is_not_there_is_named(tmp_path: Path) -> None:
    """It is the proxy that cannot be reached, not the server."""
    port = free_port()
    cluster = {"proxy-url": f"http://127.0.0.1:{port}", **BEHIND}
    with pytest.raises(Unavailable, match=f"the proxy 127.0.0.1:{port} cannot be reached: Connection refused"):
        reach(_of(tmp_path, config("https://api.internal", {"token": "good"}, **cluster)))


@pytest.mark.parametrize("way", ["silence", "noise"])
def test_a_proxy_that_is_none_is_given_up(way: str, tmp_path: Path) -> None:
    """What does not answer is not waited for, and what is no HTTP is no tunnel."""
    patience = Patience(connect=0.5, piece=0.2, answer=0.5, all=1, tries=1)

    def talk(line: Line) -> None:
        line.hear()
        line.drip(b"HTTP/1.1 200" if way == "silence" else b"noise\r\n")

    with talking(talk) as odd:
        cluster = {"proxy-url": odd.url, **BEHIND}
        source = _of(tmp_path, config("https://api.internal", {"token": "good"}, **cluster))
        with pytest.raises(Unavailable, match="timed out" if way == "silence" else "is none"):
            Api(source, patience=patience, pause=lambda _: None).get(PODS, NOTHING)


@pytest.mark.parametrize("url", ["https://planted@p:1", "socks5://p", "p:3128", "http://", "http://planted:x@p:no"])
def test_a_proxy_of_another_kind_is_refused(url: str, tmp_path: Path) -> None:
    """The line says how it is written, and nothing of a login."""
    with pytest.raises(BadInput, match=r"proxy-url .*write it as http://HOST:PORT") as said:
        reach(_of(tmp_path, config("https://h", {"token": "good"}, **{"proxy-url": url}, **CA)))
    assert "planted" not in str(said.value)
