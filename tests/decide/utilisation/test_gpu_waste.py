"""GPUs held and not used: what is idle, spare or could share, and that missing figures make none up."""

import shutil
from math import nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import held_gpus
import waste_on_prometheus
from pilotlight.decide.demand.classify import made_by
from pilotlight.decide.utilisation.gpu_waste import replicas
from pilotlight.decide.utilisation.idle_pods import idle_pods
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry

STEP = 600
HOURS = 6
FILE = Path("traces", "genai", "genai_dev_gpu.csv.gz")


def pod(name: str, *activity: float, memory: float = 1000.0) -> GpuSeries:
    """A pod's hours, each of six samples."""
    values = [value for value in activity for _ in range(HOURS)]
    return GpuSeries(pod=name, activity=values, memory=[memory] * len(values))


def called(*series: GpuSeries, group: str = "") -> list[str]:
    """The pods that are idle at the end."""
    telemetry = Telemetry(start_s=0, step_s=STEP, series=series)
    return [one.pod for one in idle_pods(telemetry, {one.pod: group or one.pod for one in series})]


@pytest.mark.parametrize(
    ("hours", "idle"),
    [
        pytest.param((0.0,) * 24, True, id="never active"),
        pytest.param((0.0,) * 23, False, id="never active, and nobody knows what a day brings"),
        pytest.param((0.9, *(0.0,) * 3), False, id="silent since three hours, of which nothing is known"),
        pytest.param((0.9, *(0.0,) * 16), False, id="silent since a night, which the morning may end"),
        pytest.param((0.9, *(0.0,) * 23), False, id="silent since it worked a day ago"),
        pytest.param((0.9, *(0.0,) * 28), True, id="silent for longer than a day"),
        pytest.param((*(0.0,) * 20, 0.9, 0.0, 0.0, 0.0) * 7, True, id="silent at these hours, a week long"),
        pytest.param((*(0.0,) * 20, 0.9, 0.0, 0.0, 0.0) * 6, False, id="silent at these hours of six days"),
        pytest.param(
            (0.9, *(0.0,) * 19, 0.9, 0.0, 0.0, 0.0) * 7, False, id="silent, and at work within hours each day"
        ),
        pytest.param((*(0.0,) * 6, 0.9), False, id="active now"),
        pytest.param((*(0.0,) * 6, nan), False, id="not measured now"),
        pytest.param((0.9, 0.0, 0.9, 0.0, 0.9, 0.0, 0.9, 0.0), False, id="silent as often before, and back each time"),
        pytest.param((nan,) * 8, False, id="never measured"),
    ],
)
def test_a_pod_is_idle_by_its_own_past(hours: tuple[float, ...], idle: bool) -> None:
    """Silent for an hour, and such silence seldom ended within four."""
    assert called(pod("a", *hours)) == (["a"] if idle else [])


def test_a_quiet_replica_of_a_busy_service_is_not_idle() -> None:
    """What its siblings' silences came to counts for it."""
    busy = [pod(f"s-{n}", *((0.0, 0.9) * 6)) for n in range(4)]
    assert called(*busy, pod("s-9", *(nan,) * 10, 0.9, 0.0), group="s") == []


def test_a_call_says_its_evidence_by_group_and_its_own() -> None:
    """One that came back itself is not idle, though the silences of its group seldom ended."""
    quiet = [pod(f"s-{n}", *(0.0,) * 24) for n in range(8)]
    back = pod("s-8", 0.0, *(0.9, 0.0) * 10, 0.9, 0.0, 0.0)
    telemetry = Telemetry(start_s=0, step_s=STEP, series=(*quiet, back))
    found = idle_pods(telemetry, {one.pod: "s" for one in telemetry.series})
    assert [one.pod for one in found] == [one.pod for one in quiet]
    assert found[0].evidence == ((40, 0), (2, 0), (1, 1), (1, 0))


@given(st.lists(st.sampled_from([0.0, 0.02, 0.5, nan]), min_size=1, max_size=60))
def test_missing_samples_never_make_a_pod_idle(values: list[float]) -> None:
    """A pod whose last sample was not measured is not called idle, whatever came before."""
    gone = [*values[:-1], nan]
    series = GpuSeries(pod="a", activity=gone, memory=[nan] * len(gone))
    assert called(series) == []


@given(st.lists(st.floats(0, 20), min_size=1, max_size=80), st.integers(1, 40))
def test_advice_knows_no_future(demand: list[float], at: int) -> None:
    """What comes later changes no advice that was due before it, and none is over what ran."""
    running = [25] * len(demand)
    whole = replicas(demand, running, STEP, 1200)
    cut = replicas(demand[:at], running[:at], STEP, 1200)
    assert whole.advised[: len(cut.advised)] == cut.advised
    assert all(1 <= asked <= 25 for asked in whole.advised)


def test_advice_follows_what_was_asked_with_room() -> None:
    """A steady demand of six: 7.6 with room, eight replicas of twenty, and never too few."""
    advice = replicas([6.0] * 100, [20] * 100, STEP, 240)
    assert advice.advised[-1] == 8
    assert advice.over == 0
    assert advice.mean_running == 20


@pytest.mark.parametrize(
    ("pod_name", "owner"),
    [
        ("web/chat-7d9f8b6c5d-x2x4z", "web/chat"),
        ("web/db-0", "web/db"),
        ("lab/train-abc12", "lab/train"),
        ("lab/notebook", "lab/notebook"),
    ],
)
def test_an_owner_is_a_pods_name_without_what_was_added(pod_name: str, owner: str) -> None:
    """ReplicaSets, Jobs and StatefulSets add their own."""
    assert made_by(pod_name) == owner


def test_a_real_fleet_is_over_replicated_not_idle(shelf: Path) -> None:
    """What is said of the shelf's serving fleet holds in what came afterwards, by the bench's own judge."""
    telemetry = held_gpus.read(shelf / FILE)
    kept = held_gpus.advice(telemetry, lead_s=240)
    assert kept["mean"] <= 17
    assert kept["over"] <= 0.001
    assert held_gpus.sharing(telemetry, 80, "A100-80GB")["ways"] == {}
    roomy = held_gpus.sharing(telemetry, 141, "H200-141GB")["ways"]
    assert roomy
    assert all(one["outgrown"] == 0 for one in roomy.values())
    told = held_gpus.idle(telemetry)
    assert told["active_after"] <= max(1, told["called_idle"] / 10)


@pytest.mark.skipif(not shutil.which("prometheus"), reason="needs prometheus (apt-get install prometheus)")
def test_a_real_prometheus_with_it_is_told_as_its_file_says(shelf: Path) -> None:
    """Three hours of the fleet: every dollar is what the bench works out from the file without our code."""
    assert waste_on_prometheus.main([str(shelf / FILE), "--hours", "3", "--dollars-only"]) == 0
