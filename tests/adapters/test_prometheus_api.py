"""Prometheus APIs that want a credential: a server that verifies Amazon's signature with botocore's, and tokens."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from answering import answering
from aws_wire_format import signature_holds

from pilotlight.adapters import prometheus_api
from pilotlight.adapters.prometheus_api import PrometheusApi
from pilotlight.adapters.queues import PolicyQueues
from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry
from pilotlight.errors import BadInput, Forbidden, Throttled, Unavailable
from pilotlight.facts.demand.worker_queues import QueueRules
from pilotlight.tools.cli.lab import trace_commands

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
AWS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET}
SESSION = {**AWS, "AWS_SESSION_TOKEN": "a/session+token=="}
ROOT = "/workspaces/ws-1"
LABELS = {"namespace": "a", "pod": "b-0", "UUID": "GPU-1", "modelName": 'an "A100", 80 GB'}


def body(kind: str, value: float | str = 50.0) -> Any:
    """An answer with one series."""
    values: dict[str, Any] = {"values": [[0, str(value)]]} if kind == "matrix" else {"value": [0, str(value)]}
    return {"status": "success", "data": {"resultType": kind, "result": [{"metric": LABELS, **values}]}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A managed Prometheus: what it verifies by, what it was asked and what it refused."""
    told: dict[str, Any] = {"verify": None, "asked": [], "tokens": 0, "status": 200}

    def answer(path: str, _: bytes, headers: Mapping[str, str]) -> tuple[int, Any]:
        if path == "/token":
            told["tokens"] += 1
            return 200, {"access_token": f"t{told['tokens']}", "expires_in": 3600}
        told["asked"].append(path)
        if not told["verify"](path, {name.lower(): value for name, value in headers.items()}):
            return 403, {"message": "The security token included in the request is invalid."}
        return told["status"], body("matrix" if "query_range" in path else "vector")

    with answering(answer) as host:
        monkeypatch.setattr("pilotlight.adapters.google_token.METADATA", f"http://{host}/token")
        prometheus_api._google.cache_clear()
        told["host"] = host
        told["url"] = f"http://{host}{ROOT}"
        yield told
        prometheus_api._google.cache_clear()


def signed(told: Mapping[str, Any], secret: str = SECRET) -> Any:
    """What lets in who signed with this secret."""

    def holds(path: str, headers: Mapping[str, str]) -> bool:
        url = f"http://{told['host']}{path}"
        return "authorization" in headers and signature_holds(url, b"", headers, secret, "GET")

    return holds


@pytest.mark.parametrize("environ", [AWS, SESSION], ids=["keys that last", "a role's"])
def test_amazon_lets_in_what_botocore_would_have_signed(server: dict[str, Any], environ: Mapping[str, str]) -> None:
    """A matrix and a vector, whatever the query holds; another secret is refused with the right that it takes."""
    server["verify"] = signed(server)
    api = PrometheusApi(server["url"], environ, "aws:eu-west-1")
    telemetry = PrometheusTelemetry(api).read(0, 0, 60)
    assert (telemetry.metric, telemetry.series[0].pod) == ("DCGM_FI_DEV_GPU_UTIL", "a/b-0")
    odd = 'sum by (a) (x{b=~"c|d/.+"}[5m] @ 1) > 0 # é'
    assert [value for _, value in api.vector(odd, 1.5)] == ["50.0"]
    server["verify"] = signed(server, "another")
    with pytest.raises(Forbidden, match="aps:QueryMetrics"):
        next(api.vector("up", 0))


def test_google_is_shown_the_metadata_servers_token_and_keeps_it(server: dict[str, Any]) -> None:
    """One token for many queries."""
    server["verify"] = lambda _, headers: headers.get("authorization") == "Bearer t1"
    api = PrometheusApi(server["url"], {}, "google")
    assert PrometheusTelemetry(api).read(0, 0, 60).series
    assert list(api.vector("up", 0))
    assert (server["tokens"], len(server["asked"])) == (1, 4)


def test_queues_are_read_there_too(server: dict[str, Any]) -> None:
    """A source says how its Prometheus is asked; a secret of its own is a token."""
    server["verify"] = signed(server)
    rules = QueueRules(source=f"prometheus:{server['url']}?query=sum(vllm:num_requests_waiting)&auth=aws:eu-west-1")
    assert PolicyQueues({"q": rules}, str, AWS).length("q") == 50
    server["verify"] = lambda _, headers: headers.get("authorization") == "Bearer hush"
    rules = QueueRules(source=f"prometheus:{server['url']}?query=up", secret_env="S")
    assert PolicyQueues({"q": rules}, lambda _: "hush", {}).length("q") == 50


@pytest.mark.parametrize(
    ("url", "way"),
    [
        ("https://monitoring.googleapis.com/v1/projects/p/location/global/prometheus", ("google", "")),
        ("https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1", ("aws", "eu-west-1")),
        ("https://aps-workspaces.eu-west-1.amazonaws.com.evil.example/ws", ("none", "")),
        ("http://prometheus:9090", ("none", "")),
    ],
)
def test_a_managed_one_is_told_by_its_host(url: str, way: tuple[str, str]) -> None:
    """Only by the whole of it: a credential goes nowhere else."""
    assert prometheus_api._way(url, "", {}) == way


@pytest.mark.parametrize(
    ("url", "auth", "said"),
    [
        ("prometheus:9090", "", "names no Prometheus"),
        ("http://h", "aws", "write google, aws:REGION"),
        ("http://h", "google:x", "write google, aws:REGION"),
        ("http://h", "env:NOT_SET", "NOT_SET is not set"),
        ("http://h", "magic", "write google, aws:REGION"),
    ],
)
def test_what_names_none_is_refused_at_once(url: str, auth: str, said: str) -> None:
    """In one line that says what to write."""
    with pytest.raises(BadInput, match=said):
        PrometheusApi(url, {}, auth)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:s3cret@127.0.0.1:1",
        "http://s3cret@127.0.0.1:1",
        "http://user:s3/cret@127.0.0.1:1",
        "http://user:s3cret@s3cret@127.0.0.1:1/x",
        "user:s3cret@prometheus:9090",
        "ftp://user:s3cret@prometheus",
    ],
)
def test_a_password_in_an_address_is_in_no_error(url: str) -> None:
    """Whichever way the address is miswritten or nobody answers, for waste and for a trace of one's own."""
    with pytest.raises((BadInput, Unavailable)) as refused:
        PrometheusTelemetry(PrometheusApi(url, {})).read(0, 60, 60)
    with pytest.raises((BadInput, Unavailable)) as of_history:
        trace_commands.prometheus(url)("up", 0.0)
    assert all(word not in f"{refused.value} {of_history.value}" for word in ("s3", "cret", "user"))
    assert "[redacted]@" in str(refused.value)


@pytest.mark.parametrize("status", [401, 429, 503])
def test_a_password_is_in_no_answers_error(server: dict[str, Any], status: int) -> None:
    """An answer's error names the address without it."""
    server["verify"], server["status"] = (lambda *_: True), status
    api = PrometheusApi(server["url"].replace("://", "://user:s3cret@"), {})
    with pytest.raises((Forbidden, Throttled, Unavailable)) as refused:
        PrometheusTelemetry(api).read(0, 60, 60)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "error"), [(429, Throttled), (401, Forbidden), (403, Forbidden), (503, Unavailable)]
)
def test_an_answer_that_is_none_is_no_figure(server: dict[str, Any], status: int, error: type[Exception]) -> None:
    """Each is raised, and none read as an empty fleet; no token is in the words."""
    server["verify"], server["status"] = (lambda *_: True), status
    api = PrometheusApi(server["url"], {"T": "hush"}, "env:T")
    with pytest.raises(error) as refused:
        PrometheusTelemetry(api).read(0, 60, 60)
    assert "hush" not in str(refused.value)
