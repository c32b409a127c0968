"""``pilotlight waste`` on a real Prometheus that holds recorded series of dcgm-exporter."""

import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fleet import free_port, until
from pilotlight.adapters.http import Broken, fetch
from pilotlight.adapters.prometheus_api import PrometheusApi
from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry
from pilotlight.errors import BadInput, Failed, Unavailable
from pilotlight.tools.cli.main import build

pytestmark = pytest.mark.skipif(not shutil.which("prometheus"), reason="needs prometheus (apt-get install prometheus)")

START, STEP, COUNT = 1_790_000_000, 60, 1440
END = START + STEP * (COUNT - 1)
ABSURD = 9223372036854775794.0
REPLICAS = 6
WATTS = (60.0, -1.0, 70.0, 0.0, 140737488355328.0)
"""Of the notebook's GPU: two that are measured, and what a card gives that does not tell."""
EARLY = 30
"""Samples, two hours before the others, of three pods that share one device."""


def _activity(n: int, replica: int) -> float:
    """Busy for six minutes of an hour, one replica after the other."""
    return 60.0 if n % 60 // 10 == replica else 1.0


def _kube_state(at: int) -> dict[str, list[str]]:
    """Node a has 8 GPUs and 7 held by two containers, b 4 and none; a pod waits for 2. One more pod has ended."""
    gpu = 'resource="nvidia_com_gpu",unit="integer"'
    nodes = [
        f'kube_node_status_allocatable{{node="{node}",{gpu}}} {count} {at}' for node, count in (("a", 8), ("b", 4))
    ]
    held = (("big", "a", "one", 6), ("big", "a", "two", 1), ("done", "b", "one", 4), ("late", "", "one", 2))
    asked = [
        f'kube_pod_container_resource_requests{{namespace="x",pod="{pod}",'
        f'container="{box}",node="{node}",{gpu}}} {count} {at}'
        for pod, node, box, count in held
    ]
    phases = {"big": "Running", "done": "Succeeded", "late": "Pending"}
    phase = [f'kube_pod_status_phase{{namespace="x",pod="{pod}",phase="{of}"}} 1 {at}' for pod, of in phases.items()]
    return {
        "kube_node_status_allocatable": nodes,
        "kube_pod_container_resource_requests": asked,
        "kube_pod_status_phase": phase,
        "kube_pod_status_unschedulable": [f'kube_pod_status_unschedulable{{namespace="x",pod="late"}} 1 {at}'],
    }


def _recorded() -> str:
    """Six replicas that are mostly quiet, a notebook without work, a device without a pod, figures that are none."""
    util, used, free, power = [], [], [], []
    for n in range(COUNT):
        at = START + STEP * n
        for replica in range(REPLICAS):
            who = f'gpu="{replica}",UUID="GPU-{replica}",Hostname="n1",exported_pod="chat-{replica}"'
            who += ',exported_namespace="web",pod="dcgm-exporter-x",namespace="gpu-operator"'
            value = ABSURD if n == 30 and replica == 0 else _activity(n, replica)
            util.append(f"DCGM_FI_DEV_GPU_UTIL{{{who}}} {value} {at}")
            used.append(f"DCGM_FI_DEV_FB_USED{{{who}}} {10000 + 100 * (n % 7)} {at}")
            free.append(f"DCGM_FI_DEV_FB_FREE{{{who}}} {30000 - 100 * (n % 7)} {at}")
        note = 'gpu="0",UUID="GPU-9",Hostname="n2",pod="notebook-0",namespace="lab"'
        util.append(f"DCGM_FI_DEV_GPU_UTIL{{{note}}} 0 {at}")
        used.append(f"DCGM_FI_DEV_FB_USED{{{note}}} 500 {at}")
        power.append(f"DCGM_FI_DEV_POWER_USAGE{{{note}}} {WATTS[n % len(WATTS)]} {at}")
        util.append(f'DCGM_FI_DEV_GPU_UTIL{{gpu="1",UUID="GPU-10",Hostname="n2",pod=""}} 0 {at}')
        for device, value in (("GPU-20", 80), ("GPU-21", 0)):
            both = f'gpu="{device[-1]}",UUID="{device}",Hostname="n3",pod="train-0",namespace="lab"'
            util.append(f"DCGM_FI_DEV_GPU_UTIL{{{both}}} {value} {at}")
    kube = _kube_state(START + STEP * (COUNT - 1))
    for n in range(EARLY):
        at = START - 7200 + STEP * n
        for share in range(3):
            who = f'gpu="0",Hostname="n4",vgpu="{share}",pod="note-{share}",namespace="lab{share}"'
            util.append(f"DCGM_FI_DEV_GPU_UTIL{{{who}}} 50 {at}")
    metrics = {"DCGM_FI_DEV_GPU_UTIL": util, "DCGM_FI_DEV_FB_USED": used, "DCGM_FI_DEV_FB_FREE": free}
    metrics["DCGM_FI_DEV_POWER_USAGE"] = power
    metrics |= kube
    lines = [line for name, rows in metrics.items() for line in (f"# TYPE {name} gauge", *rows)]
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Prometheus with the recorded series."""
    folder: Path = tmp_path_factory.mktemp("prometheus")
    (folder / "recorded.txt").write_text(_recorded())
    (folder / "prometheus.yml").write_text("{}")
    made = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "recorded.txt", "data"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    url = f"127.0.0.1:{free_port()}"
    words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=100y"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", *words, f"--web.listen-address={url}"], cwd=folder, stdout=log, stderr=log
        )
    until(lambda: _ready(f"http://{url}") or process.poll() is not None)
    yield f"http://{url}"
    process.kill()
    process.wait()


def _ready(url: str) -> bool:
    try:
        return fetch(f"{url}/-/ready", 5).status == 200
    except Broken:
        return False


def _said(*words: str, columns: int = 160) -> str:
    line = ["waste", "--price", "2", "--until", str(END), *words]
    done = CliRunner().invoke(build(["waste"]), line, env={"COLUMNS": str(columns)})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


def _figures(url: str, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_said("--prometheus", url, "--since", "1439m", "--json", *words))
    return found


def test_dollars_are_those_of_the_recorded_series(prometheus: str) -> None:
    """Held, idle and spare dollars, recomputed from what was recorded: the notebook is idle, no quiet replica is."""
    found = _figures(prometheus)
    chat, train, notebook = sorted(found["owners"], key=lambda row: -row["gpus"])
    assert (chat["owner"], chat["gpus"], notebook["owner"], notebook["gpus"]) == (
        "web/chat",
        REPLICAS,
        "lab/notebook",
        1,
    )
    assert Decimal(found["usd_per_hour"]) == 2 * (REPLICAS + 3)
    assert [one["device"] for one in train["beyond"]] == ["GPU-21"]
    assert Decimal(found["beyond_usd_per_hour"]) == 2
    for row in (found, *found["owners"]):
        parts = sum(Decimal(row[f"{part}_usd_per_hour"]) for part in ("idle", "beyond", "spare", "rest"))
        assert parts == Decimal(row["usd_per_hour"])
    assert Decimal(found["idle_usd_per_hour"]) == 2
    assert [one["pod"] for one in notebook["idle"]] == ["lab/notebook-0"]
    assert chat["idle"] == []
    values = [_activity(n, r) / 100 for n in range(COUNT) for r in range(REPLICAS) if not (n == 30 and r == 0)]
    assert chat["mean_activity"] == pytest.approx(sum(values) / len(values), rel=0.001)
    asked = max(sum(_activity(n, r) for r in range(REPLICAS)) / 100 for n in range(COUNT - 240, COUNT))
    assert chat["spare"] == REPLICAS - math.ceil(1.2 * asked / 0.95)
    assert found["metric"] == "DCGM_FI_DEV_GPU_UTIL"


def test_an_idle_gpus_draw_is_told_where_it_is_known(prometheus: str) -> None:
    """Of the notebook the mean of what was measured; of the trainer's idle device nothing is known, which is not 0."""
    watts = {row["owner"]: row["watts"] for row in _figures(prometheus)["owners"]}
    assert watts == {"web/chat": None, "lab/train": None, "lab/notebook": pytest.approx(65)}
    assert "W of an idle GPU" in _said("--prometheus", prometheus, "--since", "1439m", columns=1000)
    busy = _said("--prometheus", prometheus, "--since", "29m", "--until", str(START - 7200 + STEP * (EARLY - 1)))
    assert "W of an idle GPU" not in busy


def test_a_device_that_is_shared_by_time_costs_once(prometheus: str) -> None:
    """Three pods of three owners on one device, named by its host: a third of its price each, half of it at work."""
    end = START - 7200 + STEP * (EARLY - 1)
    found = json.loads(_said("--prometheus", prometheus, "--since", "29m", "--until", str(end), "--json"))
    assert [round(row["gpus"], 3) for row in found["owners"]] == [0.333] * 3
    assert [round(Decimal(row["usd_per_hour"]), 6) for row in found["owners"]] == [Decimal("0.666667")] * 3
    assert round(Decimal(found["usd_per_hour"]), 9) == 2
    assert found["all_weeks"]["gpu_hours"] == pytest.approx(EARLY * STEP / 3600)
    assert found["all_weeks"]["working_gpu_hours"] == pytest.approx(EARLY * STEP / 3600 / 2)


@pytest.mark.parametrize(
    ("words", "usd"),
    [
        pytest.param((), 0, id="serving, on devices as the Prometheus tells them"),
        pytest.param(("--no-serving",), 8, id="a batch on them: three on each"),
        pytest.param(
            ("--no-serving", "--device-gib", "80", "--model", "A100-80GB"), 10, id="on devices that are named"
        ),
    ],
)
def test_dollars_by_sharing_are_those_that_manifests_sharing_reaches(
    prometheus: str, words: tuple[str, ...], usd: int
) -> None:
    """Both commands say one figure, by owner; every way that reaches something says what its pods ask for."""
    found = _figures(prometheus, *words)
    line = ["manifests", "sharing", "--prometheus", prometheus, "--price", "2", "--since", "1439m", "--until", str(END)]
    told = json.loads(CliRunner().invoke(build(["manifests"]), [*line, "--json", *words]).stdout)
    reached = {one["owner"]: Decimal(one["saved_usd_per_hour"]) for one in told["plans"]}
    assert {o["owner"]: Decimal(o["sharing_usd_per_hour"]) for o in found["owners"] if o["owner"] in reached} == reached
    assert Decimal(found["sharing_usd_per_hour"]) == sum(reached.values()) == usd
    ways = {one["way"]: one for one in found["owners"][0]["sharing"]}
    assert set(ways) == ({"mps", "time-slicing"} if usd else set())
    assert all(len(one["asks"]) == REPLICAS for one in ways.values())
    lines = _said("--prometheus", prometheus, "--since", "1439m", *words, columns=1000)
    assert (f"by mps save ${usd}.00/h: each asks for nvidia.com/gpu.shared" in lines) == bool(usd)


def test_it_reads_as_a_table(prometheus: str) -> None:
    """Totals, then a line for each idle pod, spare replicas and devices to share."""
    said = _said("--prometheus", prometheus, "--since", "1439m")
    assert "idle: lab/notebook-0 for " in said
    assert "spare: web/chat runs 6, " in said
    assert "beyond use: GPU-21 of lab/train-0 for " in said
    assert "$18.00" in said


def test_free_gpus_that_nothing_waiting_can_take(prometheus: str) -> None:
    """One GPU is left on a node while the only pod that waits wants two; four on another are whole."""
    assert _figures(prometheus)["fragmentation"] == {
        "free": 5,
        "stranded": 1,
        "stranded_usd_per_hour": "2.0",
        "score": pytest.approx(0.2),
        "by_node": {"a": 1, "b": 4},
        "waiting": [2],
    }


def test_weeks_add_up_and_are_drawn(prometheus: str, tmp_path: Path) -> None:
    """Silent, working and room are what was held; the page has them, and asks for nothing when it is opened."""
    page = tmp_path / "waste.html"
    found = _figures(prometheus, "--html", str(page))
    week = found["all_weeks"]
    samples = (REPLICAS + 3) * COUNT - 1
    assert week["gpu_hours"] == pytest.approx(samples * STEP / 3600)
    assert Decimal(week["usd"]) == sum(Decimal(week[f"{part}_usd"]) for part in ("silent", "working", "room"))
    assert sum(one["gpu_hours"] for one in found["weeks"]) == pytest.approx(week["gpu_hours"])
    assert week["silent_gpu_hours"] >= 2 * COUNT * STEP / 3600
    text = page.read_text()
    assert "Week by week" in text
    assert "lab/notebook" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text


def test_sharing_is_printed_with_its_objects_and_the_way_back(prometheus: str) -> None:
    """Serving that is busy keeps its devices; a batch shares by MPS, with the container that asks, and goes back."""
    line = ["manifests", "sharing", "--prometheus", prometheus, "--price", "2", "--device-gib", "40"]
    line += ["--since", "1439m", "--until", str(END), "--owner", "web/chat"]
    kept, shared = (
        json.loads(CliRunner().invoke(build(["manifests"]), [*line, "--json", each]).stdout)
        for each in ("--serving", "--no-serving")
    )
    assert (kept["plans"][0]["way"], kept["objects"]) == ("none", [])
    (plan,) = shared["plans"]
    assert (plan["way"], plan["pods"], plan["devices"]) == ("mps", 6, 2)
    assert Decimal(plan["saved_usd_per_hour"]) == 8
    assert "patch statefulset chat" in plan["then"][-1]
    text = CliRunner().invoke(build(["manifests"]), [*line, "--no-serving"]).stdout
    (told,) = yaml.safe_load_all(text)
    assert told == shared["objects"][0]
    config = yaml.safe_load(told["data"]["web-chat"])
    assert config["sharing"]["mps"]["resources"] == [{"name": "nvidia.com/gpu", "replicas": 3}]


def test_what_gpus_do_is_foretold_by_owner(prometheus: str) -> None:
    """Each replica is at 60 % once an hour: so is every quantile, and all later hours stay under it."""
    line = ["runs", "--prometheus", prometheus, "--since", "1439m", "--step", "60s", "--until", str(END), "--json"]
    found = json.loads(CliRunner().invoke(build(["runs"]), line, catch_exceptions=False).stdout)
    chat = next(row for row in found["groups"] if row["group"] == "owner web/chat")
    assert (chat["seen"], chat["p50_percent"], chat["p90_percent"], chat["under_p90"]) == (24 * REPLICAS, 60, 60, 1)
    assert chat["foretold"] == 22 * REPLICAS


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_its_table_is_whole_at_any_width(prometheus: str, columns: int) -> None:
    """What is printed wide is printed narrow, in lines that fit."""
    wide, narrow = (_said("--prometheus", prometheus, "--since", "1439m", columns=each) for each in (1000, columns))
    assert max(map(len, narrow.splitlines())) <= columns
    assert "…" not in narrow
    assert set(re.findall(r"\$[\d.]+", narrow)) == set(re.findall(r"\$[\d.]+", wide))


def test_a_figure_that_is_none_is_not_measured(prometheus: str) -> None:
    """An unsupported field's number is neither idle nor busy."""
    telemetry = PrometheusTelemetry(PrometheusApi(prometheus, {})).read(START, END, STEP)
    first = next(one for one in telemetry.series if one.pod == "web/chat-0")
    assert math.isnan(first.activity[30])
    assert all(one.pod for one in telemetry.series)


def test_the_week_before_has_the_most_of_each_hour(prometheus: str) -> None:
    """A replica that is busy for six minutes of an hour was no silent one; what is not kept is not known."""
    past = PrometheusTelemetry(PrometheusApi(prometheus, {})).past(END)
    [row] = [one.activity for one in past.series if one.pod == "web/chat-0"]
    assert (past.step_s, len(row)) == (3600, 168)
    assert all(math.isnan(value) for value in row[:144])
    assert {round(value, 2) for value in row[145:]} == {0.6}


def test_without_series_telemetry_is_absent(prometheus: str) -> None:
    """A span of which nothing is kept says so; it is no fleet that idles."""
    with pytest.raises(Failed, match="telemetry: absent"):
        _said("--prometheus", prometheus, "--until", str(START - 86400 * 9))


@pytest.mark.parametrize(("step", "said"), [("20s", "fewer: give a larger --step"), ("60s", "")])
def test_a_step_finer_than_the_samples_is_told(step: str, said: str, prometheus: str) -> None:
    """Figures of a grid with gaps come with a word on stderr; those of whole minutes come without."""
    line = ["waste", "--price", "2", "--until", str(END), "--prometheus", prometheus, "--since", "2h", "--step", step]
    told = CliRunner().invoke(build(["waste"]), line).stderr
    assert told.endswith(f"{said}\n") if said else told == ""


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        pytest.param(("--prometheus", "http://127.0.0.1:1"), Unavailable, "is that a Prometheus?", id="nobody there"),
        pytest.param(("--prometheus", "http://127.0.0.1:1", "--by", "me"), BadInput, "--by 'me'", id="no such group"),
        pytest.param(("--prometheus", "http://127.0.0.1:1", "--step", "0s"), BadInput, "--step 0s", id="no step"),
        pytest.param(("--prometheus", "http://127.0.0.1:1", "--since", "9s"), BadInput, "--since 9s", id="no minute"),
    ],
)
def test_what_is_wrong_is_said(words: tuple[str, ...], error: type[Exception], said: str) -> None:
    """In one line, with what to write instead."""
    with pytest.raises(error, match=said.replace("?", r"\?")):
        _said(*words)


def test_without_a_price_the_catalogue_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the policy's cheapest pool, which a line names; one that is named stays as it is."""
    from pilotlight.tools.cli.gpus.waste_command import _usd_per_gpu_hour

    monkeypatch.delenv("PILOTLIGHT_POLICY", raising=False)
    found, said = _usd_per_gpu_hour(None)
    assert found > 0
    assert said.startswith(f"priced at ${found:,.4f} a GPU-hour, as ")
    assert _usd_per_gpu_hour(2.5) == (Decimal("2.5"), "")
