"""Plain HTTP of a person's commands: by the proxies and authorities of the environment, and no secret goes astray."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import answering
from aws_server import Aws
from aws_server import serving as aws_serving
from certificates import Authority
from forward_proxy import forward_proxy
from small_cloud import world
from typer.testing import CliRunner

from fleet import free_port
from pilotlight.errors import BadInput, Failed, PilotlightError, Unavailable
from pilotlight.tools.cli.main import build

ROOT = Path(__file__).resolve().parents[3]
TICK = ROOT / "events/samples/google/scheduler_tick.json"
PRICES = """
name: aws-eu-west-1
as_of: 2026-01-01T00:00:00Z
region: eu-west-1
instance_types:
  g4dn.xlarge: {cloud: eks, gpu_model: T4, gpus: 1, prices: {on-demand: {usd_per_hour: 1, source: x, date: 2026-01-01}}}
"""
AUTHORITY = Authority()
NOBODY = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A person who has no proxies yet."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.pem)
    return monkeypatch


class Told:
    """A server that answers everybody the same, and what it was asked."""

    def __init__(self, status: int, body: Any) -> None:
        self.status, self.body = status, body
        self.asked: list[tuple[str, dict[str, str]]] = []

    def __call__(self, path: str, _: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        """The answer."""
        self.asked.append((path, headers))
        return self.status, self.body


NO_PODS = {"status": "success", "data": {"result": []}}


def run(*words: str) -> str:
    """What a command says. Raises its error."""
    done = CliRunner().invoke(build([words[0]]), list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def trace(url: str, folder: Path, *words: str) -> None:
    """Ask a Prometheus. It is reached and has no pods: ``BadInput``."""
    run("trace", "--prometheus", url, "--since", "1d", "-o", str(folder / "x.csv"), *words)


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[tuple[str, Told]]:
    """A Prometheus over TLS whose name only the proxy knows: where it really is, and what it was asked."""
    told = Told(200, NO_PODS)
    with answering(told, AUTHORITY.server(tmp_path, "prometheus.test")) as host:
        yield host, told


def test_a_prometheus_behind_a_proxy_and_an_authority_of_ones_own(
    prometheus: tuple[str, Told], environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The proxy tunnels to the name, and the server alone sees the token."""
    host, told = prometheus
    environment.setenv("METRICS_TOKEN", "planted-token")
    environment.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    with forward_proxy(host, "me:planted") as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(BadInput, match="no GPU pods"):
            trace("https://prometheus.test/prom", tmp_path, "--token-env", "METRICS_TOKEN")
    assert set(proxy.asked) == {"prometheus.test:443"}
    assert {(path, headers["Authorization"]) for path, headers in told.asked} == {
        ("/prom/api/v1/query", "Bearer planted-token")
    }


def test_a_certificate_of_an_unknown_authority_is_not_trusted(
    prometheus: tuple[str, Told], environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is asked, and the line says where an authority is named."""
    host, told = prometheus
    with forward_proxy(host) as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(Unavailable, match=r"certificate verify failed.*in REQUESTS_CA_BUNDLE"):
            trace("https://prometheus.test", tmp_path)
    assert told.asked == []


@pytest.mark.parametrize("refused", ["its login", "to anybody"])
def test_a_proxy_that_lets_nobody_through_is_named_without_its_login(
    refused: str, prometheus: tuple[str, Told], environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One line says which proxy it was and why."""
    with forward_proxy(prometheus[0], "me:right") as proxy:
        port = proxy.port if refused == "its login" else free_port()
        environment.setenv("HTTPS_PROXY", f"http://me:planted@127.0.0.1:{port}")
        with pytest.raises(
            Unavailable, match=f"proxy http://.*@127.0.0.1:{port} does not let it through: .*(407|refus)"
        ) as said:
            trace("https://prometheus.test", tmp_path)
    assert "planted" not in str(said.value)
    assert "\n" not in str(said.value)


def test_an_authority_that_cannot_be_read_is_named(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """REQUESTS_CA_BUNDLE leads to no file."""
    environment.setenv("REQUESTS_CA_BUNDLE", "/no/ca.pem")
    with pytest.raises(Unavailable, match=r"/no/ca.pem"):
        trace("https://prometheus.test", tmp_path)


@pytest.mark.parametrize("proxy", ["socks5://planted@127.0.0.1:1", "http://"])
def test_a_proxy_that_is_none_is_said(proxy: str, environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kind that needs another package, and one without a host."""
    environment.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(Unavailable, match="none that requests can use") as said:
        trace("https://prometheus.test", tmp_path)
    assert "planted" not in str(said.value)


def test_this_machine_is_reached_without_a_proxy(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Proxies of the environment are for others, also where NO_PROXY does not say so."""
    environment.setenv("HTTP_PROXY", NOBODY)
    told = Told(200, NO_PODS)
    with answering(told) as host, pytest.raises(BadInput, match="no GPU pods"):
        trace(f"http://{host}", tmp_path)
    assert told.asked


def test_a_password_of_netrc_is_shown_to_nobody(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The token that is named is shown, else the login of the address, else nothing."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password planted\n")
    environment.setenv("NETRC", str(tmp_path / "netrc"))
    environment.setenv("METRICS_TOKEN", "good")
    told = Told(200, NO_PODS)
    with answering(told) as host:
        for url, words in (
            (f"http://{host}", ()),
            (f"http://a:b@{host}", ()),
            (f"http://a:b@{host}", ("--token-env", "METRICS_TOKEN")),
        ):
            with pytest.raises(BadInput, match="no GPU pods"):
                trace(url, tmp_path, *words)
    shown = [headers.get("Authorization") for _, headers in told.asked]
    assert list(dict.fromkeys(shown)) == [None, "Basic YTpi", "Bearer good"]


TRACE = ("trace", "--token-env", "PILOTLIGHT_TOKEN", "-o", "/dev/null", "--prometheus")


@pytest.mark.parametrize("words", [TRACE, ("send", str(TICK), "--url")], ids=["trace", "send"])
def test_a_redirect_is_not_followed(words: tuple[str, ...], environment: pytest.MonkeyPatch) -> None:
    """A token is not carried to where the answer leads, and the line says what to name instead."""
    environment.setenv("PILOTLIGHT_TOKEN", "planted")
    other = Told(200, NO_PODS)
    with (
        answering(other) as there,
        answering(Told(302, {}), location=f"http://{there}/") as host,
        pytest.raises((BadInput, Failed), match=r"leads elsewhere.*302"),
    ):
        run(*words, f"http://{host}")
    assert other.asked == []


def test_an_event_is_sent_by_a_proxy(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The home's name is the proxy's to find, and the home sees the token."""
    environment.setenv("PILOTLIGHT_TOKEN", "planted-token")
    told = Told(200, {"ignored": "said by the home"})
    with answering(told) as host, forward_proxy(host) as proxy:
        environment.setenv("HTTP_PROXY", proxy.url)
        assert "said by the home" in run("send", str(TICK), "--url", "http://home.test/base/")
    assert proxy.asked == ["http://home.test" + path for path, _ in told.asked]
    assert told.asked[0][0].startswith("/base/")
    assert told.asked[0][1]["Authorization"] == "Bearer planted-token"


def test_an_event_is_sent_past_the_proxy_where_no_proxy_says_so(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Then the name is one of this machine's own, and there is none of it."""
    environment.setenv("HTTP_PROXY", NOBODY)
    with pytest.raises(Failed, match="the proxy"):
        run("send", str(TICK), "--url", "http://home.invalid")
    environment.setenv("NO_PROXY", ".invalid")
    with pytest.raises(Failed, match=r"home.invalid: (?!the proxy)"):
        run("send", str(TICK), "--url", "http://home.invalid")


def test_a_login_in_the_homes_address_is_in_no_error(environment: pytest.MonkeyPatch) -> None:
    """Whichever way it fails."""
    environment.setenv("HTTP_PROXY", NOBODY)
    for url in ("http://me:planted@home.test", "http://me:planted@127.0.0.1:1", "ftp://me:planted@home.test"):
        with pytest.raises(PilotlightError) as said:
            run("send", str(TICK), "--url", url)
        assert "planted" not in str(said.value)


def test_prices_are_refreshed_by_a_proxy(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The Price List and EC2 are asked through it, with signatures that hold for their own names."""
    here = Aws(world())
    here.listed, here.spot = {"g4dn.xlarge": "0.587"}, {}
    file = tmp_path / "aws-eu-west-1.yaml"
    file.write_text(PRICES)
    with aws_serving(here) as environ, forward_proxy(environ["AWS_ENDPOINT_URL"].removeprefix("http://")) as proxy:
        for name, value in {**environ, "AWS_ENDPOINT_URL": "http://aws.test", "HTTP_PROXY": proxy.url}.items():
            environment.setenv(name, value)
        words = ("prices", str(file), "--region", "eu-west-1", "--dry-run")
        done = CliRunner().invoke(build(["prices"]), list(words), catch_exceptions=False)
    assert "$1 of 2026-01-01 -> $0.587 of" in done.output
    assert set(proxy.asked) == {"http://aws.test/"}
