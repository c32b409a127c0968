"""A cluster's own past becomes a trace: from a table of pods, and from a real Prometheus that holds its series."""

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleet import free_port
from pilotlight.errors import BadInput, Unavailable
from pilotlight.tools.cli.lab.trace_commands import prometheus
from pilotlight.tools.cli.main import build
from pilotlight.tools.replay.traces.trace_file import read_trace

HOUR = 3600
PODS = (
    # name, namespace, GPUs, owner; created, started, completed (None: not told), last sample: hours after the beginning
    ("train", "ml", 8, "", 1, 2, 5, 6),
    ("deleted", "ml", 1, "", 1, 1, None, 4),
    ("worker-0", "nlp", 8, "MPIJob", 2, 3, 8, 8),
    ("worker-1", "nlp", 8, "MPIJob", 2, 4, 8, 8),
    ("never", "ml", 1, "", 2, None, None, 9),
    ("from-before", "apps", 2, "", -5, -4, 3, 3),
)
TRACE = {  # namespace, submitted, ran, GPUs; a gang runs from when the last of it has started
    ("ml", 1, 3, 8),
    ("ml", 1, 3, 1),
    ("nlp", 2, 4, 16),
    ("apps", 0, 3, 2),
}


def _series(begin: float) -> str:
    """The samples of kube-state-metrics, one a minute, as OpenMetrics."""
    out: dict[str, list[str]] = {}
    for name, namespace, gpus, owner, created, started, completed, last in PODS:
        labels = f'namespace="{namespace}",pod="{name}",uid="uid-{name}"'
        asked = f'{{{labels},container="c",resource="nvidia_com_gpu"}} {gpus}'
        owned = f'{{{labels},owner_kind="{owner or "Job"}",owner_name="one"}} 1'
        for minute in range(max(0, created * 60), last * 60 + 1):
            at = begin + minute * 60
            out.setdefault("kube_pod_container_resource_requests", []).append(f"{asked} {at}")
            out.setdefault("kube_pod_owner", []).append(f"{owned} {at}")
            for metric, hour in (("created", created), ("start_time", started), ("completion_time", completed)):
                if hour is not None and minute >= hour * 60:
                    line = f"{{{labels}}} {begin + hour * HOUR} {at}"
                    out.setdefault(f"kube_pod_{metric}", []).append(line)
    return (
        "".join(f"# TYPE {m} gauge\n" + "".join(f"{m}{line}\n" for line in lines) for m, lines in out.items())
        + "# EOF\n"
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, float]]:
    """A Prometheus loaded with half a day that ended a moment ago, and when that began."""
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        pytest.skip("needs prometheus and promtool (apt-get install prometheus)")
    begin = float(int(time.time()) - 12 * HOUR)
    (tmp_path / "series").write_text(_series(begin))
    (tmp_path / "p.yaml").write_text("{}")
    data = str(tmp_path / "data")
    words = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(tmp_path / "series"), data]
    subprocess.run(words, check=True, capture_output=True)
    port, quiet = free_port(), subprocess.DEVNULL
    command = ["prometheus", f"--config.file={tmp_path}/p.yaml", f"--storage.tsdb.path={data}"]
    process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=quiet, stderr=quiet)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            with suppress(OSError), urllib.request.urlopen(f"{url}/-/ready"):
                break
            time.sleep(0.1)
        yield url, begin
    finally:
        process.terminate()
        process.wait()


def _run(*words: str) -> str:
    done = CliRunner().invoke(build(["trace"]), ["trace", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_real_prometheus_yields_the_trace(server: tuple[str, float], tmp_path: Path) -> None:
    """Every pod that ran, as the table says: gangs are one job, who ran before begins at 0, who never ran is told."""
    file = tmp_path / "ours.csv.gz"
    told = _run("--prometheus", server[0], "--since", "12h", "-o", str(file))
    assert "1 pod never started" in told
    found = {(job.team, round(job.submit_s / HOUR), round(job.duration_s / HOUR), job.gpus) for job in read_trace(file)}
    assert found == TRACE
    replayed = CliRunner().invoke(build(["replay"]), ["replay", str(file), "--json"], catch_exceptions=False)
    assert json.loads(replayed.stdout)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--prometheus", "prometheus:9090"), "write its address"),
        (("--prometheus", "http://127.0.0.1:1", "--since", "yesterday"), "how far back"),
        (("--prometheus", "http://127.0.0.1:1", "--token-env", "NOBODY_SET_THIS"), "NOBODY_SET_THIS is not set"),
        ((), "one of them"),
    ],
)
def test_what_is_written_wrong_is_told(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    """In one line, with what to write."""
    with pytest.raises(BadInput, match=why):
        _run(*words, "-o", str(tmp_path / "x.csv"))


def test_nobody_there_is_no_empty_past() -> None:
    """A Prometheus that does not answer is told, and nothing is written."""
    with pytest.raises(Unavailable, match="does not answer"):
        prometheus("http://127.0.0.1:1")("up", 0)
