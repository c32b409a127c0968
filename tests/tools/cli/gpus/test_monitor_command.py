"""``pilotlight monitor``: recorded looks scraped by a real Prometheus and read as dcgm-exporter's; kubelet by gRPC."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fleet import free_port, until
from pilotlight.adapters.http import fetch
from pilotlight.adapters.prometheus_api import PrometheusApi
from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry
from pilotlight.errors import BadInput, Unavailable
from pilotlight.tools.cli.gpus.monitor_command import Looks, server
from pilotlight.tools.cli.main import build
from pilotlight.tools.node_agent.gpu_readings import DeviceHolder
from pilotlight.tools.node_agent.kubelet import METHOD, holders
from pilotlight.tools.node_agent.nvml import RecordedNvml, readings
from pilotlight.tools.node_agent.pod_resources import decode_holders

RECORDED = Path(__file__).resolve().parents[4] / "examples" / "cluster" / "gpu_looks.json"


def field(number: int, value: bytes | str) -> bytes:
    """A field of a protobuf message that has a length, under 16 KiB."""
    data = value.encode() if isinstance(value, str) else value
    size = bytes([len(data)]) if len(data) < 128 else bytes([len(data) & 0x7F | 0x80, len(data) >> 7])
    return bytes([number << 3 | 2]) + size + data


def pod(namespace: str, name: str, container: str, resource: str, *devices: str) -> bytes:
    """A PodResources with one container, beside fields of later versions."""
    held = field(2, field(1, resource) + b"".join(field(2, one) for one in devices) + field(3, b"\x08\x01"))
    return field(1, field(1, name) + field(2, namespace) + field(3, field(1, container) + held + b"\x18\x05"))


ANSWER = (
    pod("web", "chat-0", "vllm", "nvidia.com/gpu", "GPU-1", "GPU-2")
    + pod("lab", "nic", "main", "vendor.example/nic", "eth7")
    + pod("lab", "cut", "main", "nvidia.com/mig-1g.10gb", "MIG-7")
)
HOLDERS = {
    "GPU-1": (DeviceHolder(namespace="web", pod="chat-0", container="vllm"),),
    "GPU-2": (DeviceHolder(namespace="web", pod="chat-0", container="vllm"),),
    "MIG-7": (DeviceHolder(namespace="lab", pod="cut", container="main"),),
}


class _Lister(grpc.GenericRpcHandler):  # type: ignore[misc]
    def service(self, call: Any) -> Any:
        if call.method != METHOD:
            return None
        return grpc.unary_unary_rpc_method_handler(lambda *_: ANSWER)


def test_kubelet_tells_who_holds_what(tmp_path: Path) -> None:
    """Over gRPC on its socket; devices of other vendors are not ours, and nobody there is no empty node."""
    kubelet = grpc.server(ThreadPoolExecutor(1), handlers=[_Lister()])
    kubelet.add_insecure_port(f"unix://{tmp_path}/k.sock")
    kubelet.start()
    try:
        assert holders(f"{tmp_path}/k.sock") == HOLDERS
    finally:
        kubelet.stop(None).wait()
    with pytest.raises(Unavailable, match="is the socket's folder mounted"):
        holders(f"{tmp_path}/none.sock")


@given(st.one_of(st.binary(max_size=60), st.integers(0, len(ANSWER)).map(lambda n: ANSWER[:n])))
def test_no_answer_breaks_the_reader(message: bytes) -> None:
    """Whatever comes, holders or one line."""
    try:
        found = decode_holders(message)
    except BadInput:
        found = {}
    assert all(holders for holders in found.values())


def test_a_slice_tells_no_utilisation() -> None:
    """NVML has none for it: there is memory and no made-up 0; the profile is named as DCGM names it."""
    found = list(readings(RecordedNvml(RECORDED)))
    cut = [one for one in found if one.slice]
    assert [(one.profile, one.util, one.used) for one in cut] == [("1g.10gb", None, 2048), ("3g.40gb", None, 0)]
    assert [one.util for one in found if not one.slice] == [87, 0, 20]


def test_one_look_is_printed() -> None:
    """Its lines are DCGM's, with the pod that holds each device; one that is free has an empty pod."""
    said = CliRunner().invoke(build(["monitor"]), ["monitor", "--recorded", str(RECORDED), "--node", "n1", "--once"])
    lines = said.stdout.splitlines()
    busy = next(line for line in lines if line.startswith("DCGM_FI_DEV_GPU_UTIL") and 'pod="chat-0"' in line)
    assert busy.endswith(" 87.0")
    assert 'Hostname="n1"' in busy
    assert any('pod=""' in line and 'gpu="1"' in line for line in lines)
    assert not any(line.startswith("DCGM_FI_DEV_GPU_UTIL") and 'gpu="2"' in line for line in lines)


@pytest.mark.parametrize("text", [None, "[]", "{}", '[{"devices": 3}]', "\x00"])
def test_what_is_no_recording_is_said(tmp_path: Path, text: str | None) -> None:
    """In one line that names the file."""
    path = tmp_path / "looks.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadInput, match=r"looks\.json"):
        RecordedNvml(path)


@pytest.fixture
def exporter() -> Iterator[str]:
    """Host and port of a monitor on recorded looks."""
    with server(Looks(RecordedNvml(RECORDED), "n1", ""), "127.0.0.1", 0) as serving:
        Thread(target=serving.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{serving.server_port}"
        serving.shutdown()


def test_what_cannot_be_asked_is_no_old_figure(tmp_path: Path) -> None:
    """A kubelet that does not answer is 503, which Prometheus takes for a node that is down."""

    class Driver:
        def ask(self, function: str, *_: Any) -> Any:
            return 0 if function == "nvmlDeviceGetCount" else None

        def active(self, handle: Any, uuid: str) -> float | None:
            return None

    with server(Looks(Driver(), "n1", f"{tmp_path}/none.sock"), "127.0.0.1", 0) as serving:
        Thread(target=serving.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{serving.server_port}"
        assert fetch(f"{url}/metrics", 20).status == 503
        assert fetch(f"{url}/other", 20).status == 404
        serving.shutdown()


@pytest.mark.skipif(not shutil.which("prometheus"), reason="needs prometheus (apt-get install prometheus)")
def test_a_real_prometheus_scrapes_it(exporter: str, tmp_path: Path) -> None:
    """Telemetry reads its pods as it reads dcgm-exporter's: the busy one, and two that share a device."""
    (tmp_path / "p.yml").write_text(
        f"scrape_configs: [{{job_name: gpus, scrape_interval: 1s, static_configs: [{{targets: ['{exporter}']}}]}}]"
    )
    url = f"127.0.0.1:{free_port()}"
    words = ["prometheus", "--config.file=p.yml", "--storage.tsdb.path=data", f"--web.listen-address={url}"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=tmp_path, stdout=log, stderr=log)
    try:
        api = PrometheusApi(f"http://{url}", {})
        until(lambda: _scraped(api))
        now = time.time()
        found = {one.pod: one for one in PrometheusTelemetry(api).read(now - 60, now, 60).series}
    finally:
        process.kill()
        process.wait()
    assert set(found) == {"web/chat-0", "lab/notebook-ann", "lab/notebook-bob"}
    assert (found["lab/notebook-ann"].part, found["web/chat-0"].part) == (True, False)
    assert found["web/chat-0"].activity[-1] in (0.87, 0.12)
    assert found["web/chat-0"].memory[-1] == 40_000


def _scraped(api: PrometheusApi) -> bool:
    try:
        return bool(list(api.vector("DCGM_FI_DEV_FB_USED", time.time())))
    except Unavailable:
        return False
