"""Prometheus APIs that want a credential: a server that verifies Amazon's signature with botocore's, and tokens."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from answering import answering
from aws_wire_format import signature_holds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotlight.adapters import prometheus_api
from pilotlight.adapters.prometheus_api import PrometheusApi
from pilotlight.adapters.queues import PolicyQueues
from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry
from pilotlight.errors import BadInput, Forbidden, Throttled, Unavailable
from pilotlight.facts.demand.worker_queues import QueueRules
from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.tools.cli.gpus.waste_command import with_watts
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


STEP = 60
TEXTS = st.sampled_from(
    ["0", "3", "97.5", "100", "-1", "101", "NaN", "+Inf", "-Inf", "9223372036854775794", "x", "", "-0"]
)
SERIES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", ""]),
        st.sampled_from(["GPU-1", "GPU-2"]),
        st.lists(st.tuples(st.integers(-1, 5), TEXTS), max_size=6),
    ),
    max_size=4,
)


@pytest.fixture(scope="module")
def raw() -> Iterator[dict[str, Any]]:
    """A Prometheus that answers utilisation with the series that are set, and has no other."""
    told: dict[str, Any] = {"series": []}

    def answer(path: str, *_: Any) -> tuple[int, Any]:
        result = told["series"] if "GPU_UTIL" in path else []
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}

    with answering(answer) as host:
        told["api"] = PrometheusApi(f"http://{host}", {})
        yield told


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(sent=SERIES)
def test_no_series_makes_a_figure_up(raw: dict[str, Any], sent: list[tuple[str, str, list[tuple[int, str]]]]) -> None:
    """Missing, stale, doubled, reset, negative or absurd: what is measured was sent for that pod and moment."""
    raw["series"] = [
        {"metric": {"namespace": "n", "pod": pod, "UUID": device}, "values": [[n * STEP, text] for n, text in values]}
        for pod, device, values in sent
    ]
    found = PrometheusTelemetry(raw["api"]).read(0, 4 * STEP, STEP)
    told: dict[tuple[str, str, int], set[float]] = {}
    for pod, device, values in sent:
        for n, text in values:
            if pod and 0 <= n <= 4 and text in ("0", "-0", "3", "97.5", "100"):
                told.setdefault((f"n/{pod}", device, n), set()).add(abs(float(text)) / 100)
    read = {
        (one.pod, one.device, n): value
        for one in found.series
        for n, value in enumerate(one.activity)
        if value == value
    }
    known = {key: max(values) for key, values in told.items()}
    assert {key: value for key, value in read.items() if key in known} == known
    for pod, device, n in read.keys() - known.keys():  # The last value, where nobody has the device since.
        last = max(m for own, other, m in known if (own, other) == (pod, device))
        assert last < n
        assert read[pod, device, n] == known[pod, device, last]
        assert not any(m > last for _, other, m in known if other == device)
    assert (found.metric == "") == (not told)


def _fleet(told: Mapping[str, Sequence[tuple[str, str, Sequence[float]]]]) -> Telemetry:
    """What is read of four minutes, by metric: pod, device and a value a minute."""

    def answer(path: str, *_: Any) -> tuple[int, Any]:
        rows = next((rows for name, rows in told.items() if name in path), ())
        result = [
            {
                "metric": {"namespace": "n", "pod": pod, "UUID": device},
                "values": [[60 * n, str(value)] for n, value in enumerate(values)],
            }
            for pod, device, values in rows
        ]
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}

    with answering(answer) as host:
        return PrometheusTelemetry(PrometheusApi(f"http://{host}", {})).read(0, 240, 60)


def test_each_gpu_is_read_by_the_metric_that_it_has() -> None:
    """One with utilisation alone beside one with the profiling metric is read too; who has both counts once."""
    found = _fleet(
        {
            "GR_ENGINE_ACTIVE": [("a", "GPU-1", [0.5] * 5)],
            "GPU_UTIL": [("a", "GPU-1", [90] * 5), ("b", "GPU-2", [40] * 5)],
        }
    )
    assert {one.pod: set(one.activity) for one in found.series} == {"n/a": {0.5}, "n/b": {0.4}}
    assert found.metric == "DCGM_FI_PROF_GR_ENGINE_ACTIVE and DCGM_FI_DEV_GPU_UTIL"


@pytest.mark.parametrize("percent", [90, 0])
def test_a_gpu_whose_profiling_stopped_is_read_by_its_utilisation(percent: int) -> None:
    """Profiling that is paused, by a profiler or a setting, is no GPU that is gone."""
    found = _fleet({"GR_ENGINE_ACTIVE": [("a", "GPU-1", [0.5])], "GPU_UTIL": [("a", "GPU-1", [percent] * 5)]})
    assert [list(one.activity) for one in found.series] == [[0.5, *[percent / 100] * 4]]
    assert found.metric == "DCGM_FI_PROF_GR_ENGINE_ACTIVE and DCGM_FI_DEV_GPU_UTIL"


@pytest.mark.parametrize(
    ("measured", "there"), [(5, True), (4, True), (2, True), (1, False)], ids=["now", "a minute", "three", "four"]
)
def test_the_last_value_counts_for_three_scrapes(measured: int, there: bool) -> None:
    """A scrape that is late is no GPU that is gone; four of them are."""
    found = _fleet({"GPU_UTIL": [("a", "GPU-1", [40] * measured)]})
    assert (found.series[0].activity[-1] == 0.4) == there


def test_a_pod_whose_device_another_has_since_is_gone() -> None:
    """Nothing is carried on for it."""
    found = _fleet({"GPU_UTIL": [("a", "GPU-1", [40] * 3), ("b", "GPU-1", [40] * 5)]})
    assert [one.activity[-1] == 0.4 for one in found.series] == [False, True]


def test_shares_of_one_under_the_name_of_a_percentage_are_told() -> None:
    """Read as percent they would make every GPU idle."""
    with pytest.raises(BadInput, match="multiply by 100"):
        _fleet({"GPU_UTIL": [("a", "GPU-1", [0.4, 0.9, 1])]})


@pytest.mark.parametrize("percent", [90, 90.5], ids=["whole percents", "means of percents"])
def test_a_gpu_that_may_be_in_shares_of_one_beside_percents_is_left_out_and_told(percent: float) -> None:
    """It would be the one idle GPU of a busy fleet. A mean of 0.4 % looks the same: nobody can tell, so it is told."""
    odd = ("a", "GPU-1", [0.4, 0.9, 1.0])
    found = _fleet({"GPU_UTIL": [odd, ("b", "GPU-2", [percent, 1, 0])]})
    assert [one.pod for one in found.series] == ["n/b"]
    assert found.metric == "DCGM_FI_DEV_GPU_UTIL (without 1 GPU that may be told in shares of 1, not in percent)"


def test_a_gpu_at_one_beside_shares_and_percents_is_in_doubt_too() -> None:
    """All of a GPU or a hundredth of it; one that did nothing did nothing either way."""
    rows: list[tuple[str, str, list[float]]] = [
        ("a", "GPU-1", [0.4] * 3),
        ("b", "GPU-2", [90] * 3),
        ("c", "GPU-3", [1] * 3),
        ("d", "GPU-4", [0] * 3),
    ]
    found = _fleet({"GPU_UTIL": rows})
    assert [one.pod for one in found.series] == ["n/b", "n/d"]
    assert "without 2 GPUs" in found.metric
    assert len(_fleet({"GPU_UTIL": rows[1:]}).series) == 3


WATTS = {"61.5": 61.5, "0": None, "-1": None, "NaN": None, "+Inf": None, "140737488355328": None, "x": None}


@pytest.mark.parametrize(("text", "watts"), WATTS.items(), ids=WATTS)
def test_watts_are_asked_for_apart(text: str, watts: float | None) -> None:
    """What functions read asks nothing of power; what no card draws is not known, also of a device without a series."""
    asked: list[str] = []

    def answer(path: str, *_: Any) -> tuple[int, Any]:
        asked.append(path)
        second = {"metric": {**LABELS, "UUID": "GPU-2"}, "values": [[0, "0"]]}
        data = body("matrix", text if "POWER_USAGE" in path else 0)["data"]
        more = [] if "POWER_USAGE" in path else [second]
        return 200, {"status": "success", "data": {**data, "result": [*data["result"], *more]}}

    with answering(answer) as host:
        api = PrometheusApi(f"http://{host}", {})
        read = PrometheusTelemetry(api).read(0, 0, 60)
        assert not any("POWER_USAGE" in path for path in asked)
        assert [list(one.watts) for one in read.series] == [[], []]
        told = with_watts(api, read)
    assert sum("POWER_USAGE" in path for path in asked) == 1
    assert [[value for value in one.watts if value == value] for one in told.series] == [[watts] if watts else [], []]


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
