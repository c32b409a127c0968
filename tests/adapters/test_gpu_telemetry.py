"""Telemetry of GPUs from a Prometheus: which series are read, by which scale, and which are left out and told."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from answering import answering
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotlight.adapters.prometheus_api import PrometheusApi
from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry
from pilotlight.errors import BadInput
from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.tools.cli.gpus.waste_command import with_watts

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
    """Values read of four minutes, by metric: pod, device and a value a minute."""

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
    assert found.metric == (
        "DCGM_FI_DEV_GPU_UTIL (without 1 GPU, as of n/a, of which DCGM_FI_DEV_GPU_UTIL may be in shares of 1, "
        "not in percent: let what writes it multiply by 100)"
    )


IN_PERCENT = "DCGM_FI_PROF_GR_ENGINE_ACTIVE is in percent, not in shares of 1: let what writes it divide by 100"


def test_a_gpu_in_percent_beside_shares_of_one_is_left_out_and_told() -> None:
    """A GPU at 60 under a ratio's name is at work, is no gap, and is not silent where it was told as 0."""
    found = _fleet({"GR_ENGINE_ACTIVE": [("a", "GPU-1", [60.0, 55, 0, 0, 0]), ("b", "GPU-2", [0.6] * 5)]})
    assert [one.pod for one in found.series] == ["n/b"]
    assert found.metric == f"DCGM_FI_PROF_GR_ENGINE_ACTIVE (without 1 GPU, as of n/a, of which {IN_PERCENT})"


def test_gpus_all_in_percent_under_a_ratios_name_are_told() -> None:
    """No GPU that is known is left: an error says why, and not that nothing is scraped."""
    with pytest.raises(BadInput, match=f"nothing is known: 2 GPUs, as of n/a, of which {IN_PERCENT}"):
        _fleet({"GR_ENGINE_ACTIVE": [("a", "GPU-1", [60.0]), ("b", "GPU-2", [40.0])]})


def test_a_gpu_in_percent_under_a_ratios_name_is_read_by_its_utilisation() -> None:
    """Where it has both nothing is missing; where another has neither readable, both are told of."""
    ratio = {"GR_ENGINE_ACTIVE": [("a", "GPU-1", [60.0] * 5)]}
    found = _fleet({**ratio, "GPU_UTIL": [("a", "GPU-1", [90] * 5)]})
    assert (found.metric, set(found.series[0].activity)) == ("DCGM_FI_DEV_GPU_UTIL", {0.9})
    found = _fleet({**ratio, "GPU_UTIL": [("b", "GPU-2", [90] * 5)]})
    assert found.metric == f"DCGM_FI_DEV_GPU_UTIL (without 1 GPU, as of n/a, of which {IN_PERCENT})"


def test_a_share_of_one_rounded_up_is_a_gap_alone() -> None:
    """A hundredth over the whole is no measurement, and takes no GPU away."""
    found = _fleet({"GR_ENGINE_ACTIVE": [("a", "GPU-1", [0.6, 1.004, 0.6, 0.6, 1.0]), ("b", "GPU-2", [1.004])]})
    assert [(one.pod, [n for n, value in enumerate(one.activity) if value != value]) for one in found.series] == [
        ("n/a", [1])
    ]
    assert found.metric.endswith("ACTIVE (without 1 GPU, as of n/b, of which no value is a measurement)")


def test_a_device_that_tells_nothing_beside_its_slices_is_not_missed() -> None:
    """With MIG a whole device has no utilisation: its slices are what is read."""
    labels = {"namespace": "n", "pod": "a", "UUID": "GPU-1"}
    blank = {"metric": labels, "values": [[0, "9223372036854775794"]]}
    part = {"metric": {**labels, "GPU_I_ID": "3"}, "values": [[60 * n, "0.5"] for n in range(5)]}

    def answer(path: str, *_: Any) -> tuple[int, Any]:
        result = [part] if "ENGINE_ACTIVE" in path else [blank] if "GPU_UTIL" in path else []
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}

    with answering(answer) as host:
        found = PrometheusTelemetry(PrometheusApi(f"http://{host}", {})).read(0, 240, 60)
    assert ([one.device for one in found.series], found.metric) == (["GPU-1/3"], "DCGM_FI_PROF_GR_ENGINE_ACTIVE")


def test_a_gpu_without_any_figure_is_told_beside_others() -> None:
    """A field that its driver does not support, and utilisation in shares beside a profiled GPU's percents."""
    blank = ("a", "GPU-1", [2.0**63] * 5)
    found = _fleet({"GR_ENGINE_ACTIVE": [blank, ("b", "GPU-2", [0.6] * 5)]})
    assert [one.pod for one in found.series] == ["n/b"]
    assert found.metric.endswith(" (without 1 GPU, as of n/a, of which no value is a measurement)")
    shares = ("c", "GPU-3", [0.4] * 5)
    found = _fleet({"GR_ENGINE_ACTIVE": [("b", "GPU-2", [0.6] * 5)], "GPU_UTIL": [("b", "GPU-2", [60] * 5), shares]})
    assert found.metric.startswith("DCGM_FI_PROF_GR_ENGINE_ACTIVE (without 1 GPU, as of n/c, of which DCGM_FI_DEV")


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
    assert "without 2 GPUs, as of n/a," in found.metric
    assert len(_fleet({"GPU_UTIL": rows[1:]}).series) == 3


WATTS = {"61.5": 61.5, "0": None, "-1": None, "NaN": None, "+Inf": None, "140737488355328": None, "x": None}


@pytest.mark.parametrize(("text", "watts"), WATTS.items(), ids=WATTS)
def test_watts_are_asked_for_apart(text: str, watts: float | None) -> None:
    """Functions ask nothing of power; watts that no card draws, or of a device without a series, are not known."""
    asked: list[str] = []

    def answer(path: str, *_: Any) -> tuple[int, Any]:
        asked.append(path)
        told = {"GPU-1": text} if "POWER_USAGE" in path else {"GPU-1": "0", "GPU-2": "0"}
        result = [
            {"metric": {"namespace": "n", "pod": "a", "UUID": device}, "values": [[0, value]]}
            for device, value in told.items()
        ]
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}

    with answering(answer) as host:
        api = PrometheusApi(f"http://{host}", {})
        read = PrometheusTelemetry(api).read(0, 0, 60)
        assert not any("POWER_USAGE" in path for path in asked)
        assert [list(one.watts) for one in read.series] == [[], []]
        told = with_watts(api, read)
    assert sum("POWER_USAGE" in path for path in asked) == 1
    assert [[value for value in one.watts if value == value] for one in told.series] == [[watts] if watts else [], []]


@pytest.mark.parametrize(
    ("second", "gpus"),
    [
        pytest.param({"Hostname": "n1", "gpu": "0"}, 1, id="by its host and number"),
        pytest.param({"hostname": "n1", "gpu": "0"}, 1, id="its host in small letters"),
        pytest.param({"Hostname": "n1", "gpu": "1"}, 2, id="another number is another GPU"),
        pytest.param({"gpu": "0"}, 2, id="without a host nobody knows which"),
    ],
)
@pytest.mark.parametrize("first", ["ENGINE_ACTIVE", "GPU_UTIL"])
def test_a_gpu_that_two_exporters_name_otherwise_counts_once(first: str, second: dict[str, str], gpus: int) -> None:
    """One tells its UUID too, the other its host and number alone, under one metric or two."""
    owner = {"namespace": "n", "pod": "a"}
    whole = {"UUID": "GPU-1", "Hostname": "n1", "gpu": "0"}
    share = "0.6" if first == "ENGINE_ACTIVE" else "60"

    def answer(path: str, *_: Any) -> tuple[int, Any]:
        told = [(whole, share)] if first in path else []
        told += [(second, "50")] if "GPU_UTIL" in path else []
        result = [{"metric": owner | labels, "values": [[60 * n, value] for n in range(5)]} for labels, value in told]
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}

    with answering(answer) as host:
        found = PrometheusTelemetry(PrometheusApi(f"http://{host}", {})).read(0, 240, 60)
    assert len(found.series) == gpus
    assert {one.device: list(one.activity) for one in found.series}["GPU-1"] == [0.6] * 5
