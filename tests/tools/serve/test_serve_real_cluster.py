"""``pilotlight serve`` at home in a cluster: every function on one port, over a real API server and no world."""

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_server import ApiServer, api_server
from manifests import objects

from fleet import free_port, until

PILOTLIGHT = Path(sys.executable).parent / "pilotlight"
ROOT = Path(__file__).resolve().parents[3]
TOKEN = "a-token-of-the-event-source"
SHOWN = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(params=["1", "2"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, ApiServer]]:
    """Where serve listens, as one process or as two workers, and the API server it looks at."""
    port = free_port()
    with api_server() as cluster:
        cluster.add_samples()
        (tmp_path / "kubeconfig").write_text(cluster.kubeconfig())
        settings = {"API": f"kubeconfig:{tmp_path / 'kubeconfig'}", "POOLS": "advisor", "CLUSTER": "ml"}
        settings |= {"HOME": str(tmp_path), "TOKENS": json.dumps({"events": {"token": TOKEN}})}
        environ = {f"PILOTLIGHT_{key}": value for key, value in settings.items()}
        words = ["serve", "--host", "0.0.0.0", "--port", str(port), "--workers", request.param]
        process = subprocess.Popen([PILOTLIGHT, *words], env={**os.environ, **environ}, stdout=subprocess.DEVNULL)
        try:
            until(lambda: _open(port))
            yield f"http://127.0.0.1:{port}", cluster
        finally:
            process.terminate()
            process.wait()


def _open(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


def _post(url: str, body: bytes) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, SHOWN)) as answer:
            return answer.status, dict(json.loads(answer.read()))
    except urllib.error.HTTPError as error:
        return error.code, dict(json.loads(error.read()))


def test_it_looks_at_the_cluster_and_has_no_world(home: tuple[str, ApiServer]) -> None:
    """A pending pod's event is answered from the API server; there is nowhere to create pods of a world."""
    url, cluster = home
    event = json.loads((ROOT / "events/samples/pilotlight/pod_pending.json").read_text())
    event["data"]["cluster"] = "ml"
    status, answer = _post(f"{url}/pod_pending", json.dumps(event).encode())
    assert (status, "why" in answer) == (200, True)
    assert cluster.lines("GET .*/pods")
    assert _post(f"{url}/world/pods", b"{}")[0] == 404


def test_the_heartbeat_of_the_manifests_is_answered(home: tuple[str, ApiServer]) -> None:
    """The script of the CronJob in infra/kubernetes/home ticks what serve serves."""
    jobs = objects(ROOT / "infra/kubernetes/home/cronjobs.yaml")
    (script,) = jobs[0]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "http://pilotlight/" in script
    words = [sys.executable, "-c", script.replace("http://pilotlight", home[0])]
    environ = {**os.environ, "PILOTLIGHT_TOKEN": TOKEN}
    run = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)
    assert "why" in json.loads(run.stdout)
