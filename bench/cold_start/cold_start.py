"""Cost of a cold start: from exec to the first 200, for each function and for one that does nothing, in turn.

``python bench/cold_start/cold_start.py`` prints medians of paired ratios: CPU time of all the server's processes, and
wall time. The cluster is a stand-in for the API server, the cloud one for Civo's API or AWS's, all in this process.
State is SQLite, or Firestore where ``FIRESTORE_EMULATOR_HOST`` names an emulator. Exits 1 where a ratio is over its
limit. Ours are the bundles that ``make package`` makes of the functions, as a cloud unpacks them: they are bytecode.
"""

import argparse
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "stand_ins"), str(ROOT / "tests" / "world"), str(ROOT / "scripts")]

from api_server import ApiServer, api_server  # noqa: E402
from aws_server import EKS, Aws  # noqa: E402
from aws_server import REGION as AWS_REGION  # noqa: E402
from aws_server import serving as aws_serving  # noqa: E402
from civo_server import CLUSTER, REGION, TOKEN, Civo, serving  # noqa: E402

from pilotlight.codec.catalog_file import read_catalog  # noqa: E402
from pilotlight.codec.policy_file import read_policy  # noqa: E402
from pilotlight.doorway import Function  # noqa: E402
from pilotlight.world.machines import WorldPool  # noqa: E402
from pilotlight.world.simulation import World  # noqa: E402

NEEDS_NOTHING, QUIET, BUYS = 1.2, 1.5, 1.7
"""The most CPU, as a multiple of the empty function's."""

EMPTY = """import functions_framework


@functions_framework.http
def empty(request):
    return b"{}", 200, {"Content-Type": "application/json"}
"""
POLICY = """
version: 1
pools:
  t4: {cloud: civo, cluster_pool: t4-pool-id, instance_type: t4.small, max: 20}
classes:
  batch: {gpu_models: any}
alerts:
  channels:
    people: {kind: console}
"""
CATALOG = """
name: small
as_of: 2026-11-01T00:00:00Z
instance_types:
  t4.small: {cloud: civo, gpu_model: T4, gpus: 1, cpu: "4", memory: 16Gi, boot_s: 60,
             prices: {on-demand: {usd_per_hour: 2, source: a bench, date: 2026-11-01}}}
"""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "ml",
        "uid": "u-a",
        "creationTimestamp": "2026-11-20T12:00:00Z",
        "labels": {"pilotlight.dev/workload-class": "batch"},
    },
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    "status": {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    },
}


class Case(NamedTuple):
    """One kind of start. ``before`` is an event that the state has seen; with none every start has a fresh state."""

    function: Function
    what: str
    limit: float
    event: dict[str, Any]
    before: dict[str, Any] | None
    aws: bool = False


class Cost(NamedTuple):
    """Of one start, in seconds."""

    cpu: float
    wall: float


def _message(kind: str, /, **data: Any) -> dict[str, Any]:
    head = {"specversion": "1.0", "id": "1", "source": "bench", "type": f"dev.pilotlight.{kind}.v1"}
    return {**head, "data": {"cluster": "prod", **data}}


def _pending(identity: str) -> dict[str, Any]:
    return _message("pod.pending", namespace="ml", name="a", uid="u-a", identity=identity)


QUOTA = _message("quota.reserved", namespace="ml", name="job-a", uid="w-a", identity="e-a/1")
REFUSED = _message("capacity.failed", group="t4-pool-id", reason="no-capacity", message="none left", identity="r")
TOLD = _message("alert", kind="k", severity="info", fingerprint="f", what="w", why="y", at="2026-11-20T12:00:00Z")
TICK = _message("tick", identity="t")
METERED = _message("tick", what="billing", identity="t")
LOOKED = _message("tick", what="bills", identity="t")
TAKEN = _message("interruption.notice", instance="i-1", kind="state-change", cloud="aws", identity="i-1/state-change")
SPENT = _message(
    "budget.notice", budget="b", cost="80", limit="100", currency="USD", since="2026-11-01T07:00:00Z", threshold=0.8
)
CASES = (
    Case("pod_pending", "an event that was handled", NEEDS_NOTHING, _pending("1"), _pending("1")),
    Case("pod_pending", "a pod whose node boots", NEEDS_NOTHING, _pending("2"), _pending("1")),
    Case("kueue_admission", "an event that was handled", NEEDS_NOTHING, QUOTA, QUOTA),
    Case("capacity_reconcile", "a refusal that was handled", NEEDS_NOTHING, REFUSED, REFUSED),
    Case("alert_fanout", "an alert that was told", NEEDS_NOTHING, TOLD, TOLD),
    Case("spot_interruption", "a notice that was dealt with", NEEDS_NOTHING, TAKEN, TAKEN),
    Case("billing_tick", "a budget that was told", NEEDS_NOTHING, SPENT, SPENT),
    Case("billing_import", "a bill that was looked at lately", NEEDS_NOTHING, LOOKED, LOOKED),
    Case("capacity_reconcile", "a tick with nothing to do", QUIET, TICK, TICK),
    Case("billing_tick", "a tick with nothing to meter", QUIET, METERED, METERED),
    Case("pod_pending", "buys a node and publishes it", BUYS, _pending("1"), None),
    Case("pod_pending", "buys one on AWS", BUYS, _pending("1"), None, aws=True),
)


def main() -> int:
    """Measure what is asked for; the exit code."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--times", type=int, default=15, help="pairs of starts a case")
    words.add_argument("--only", default="", help="cases whose function or text holds this")
    asked = words.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        return _table(asked, _unpacked(Path(folder), asked.only))


def _unpacked(folder: Path, only: str) -> Path:
    """Bundles of the functions that are measured, unpacked in a folder. The packages that they need are those here."""
    from bundle import contents

    for function in sorted({case.function for case in CASES if only in f"{case.function} {case.what}"}):
        for name, content in contents(ROOT / "functions" / function).items():
            file = folder / function / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    return folder


def _table(asked: argparse.Namespace, functions: Path) -> int:
    """Print a line a case; 1 where one is over its limit."""
    over = False
    print(f"state: {'firestore' if _firestore() else 'sqlite'}; medians of {asked.times} pairs")
    print(f"{'function':20}{'first event':32}{'empty CPU':>10}{'ours':>8}{'ratio':>7}{'wall':>7}  limit")
    for case in CASES:
        if asked.only in f"{case.function} {case.what}":
            pairs = _measure(case, asked.times, functions)
            ratio = median(ours.cpu / empty.cpu for empty, ours in pairs)
            over |= ratio > case.limit
            _show(case, pairs, ratio)
    return int(over)


def _show(case: Case, pairs: list[tuple[Cost, Cost]], ratio: float) -> None:
    empty, ours = (median(pair[i].cpu for pair in pairs) * 1000 for i in (0, 1))
    wall = median(ours.wall / empty.wall for empty, ours in pairs)
    ratios = f"{ratio:7.2f}{wall:7.2f}  {case.limit:.1f}"
    print(f"{case.function:20}{case.what:32}{empty:8.0f}ms{ours:6.0f}ms{ratios}", flush=True)


def _measure(case: Case, times: int, functions: Path) -> list[tuple[Cost, Cost]]:
    """Pairs of an empty start and one of ours, in turn; one of each goes before: files are warm and compiled."""
    pairs = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as kept:
        (Path(folder) / "empty.py").write_text(EMPTY)
        environ = kept.enter_context(stand_ins(Path(folder) / "home", case.aws)) if case.before else None
        if environ and case.before:
            _start(functions / case.function / "main.py", case.function, case.before, environ)
        for round_ in range(times + 1):
            empty = _start(Path(folder) / "empty.py", "empty", {}, dict(os.environ))
            with ExitStack() as fresh:
                mine = environ or fresh.enter_context(stand_ins(Path(folder) / f"home-{round_}", case.aws))
                ours = _start(functions / case.function / "main.py", case.function, case.event, mine)
            if round_:
                pairs.append((empty, ours))
    return pairs


def _firestore() -> str:
    return os.environ.get("FIRESTORE_EMULATOR_HOST", "")


@contextmanager
def stand_ins(home: Path, on_aws: bool = False) -> Iterator[dict[str, str]]:
    """A cluster with one pod that waits, and a cloud with one pool at zero: the environment that leads to them."""
    home.mkdir()
    policy, catalog = read_policy(POLICY.encode(), "policy"), read_catalog(CATALOG.encode(), "catalog")
    world = World(catalog, [WorldPool.from_policy(name, pool) for name, pool in policy.pools.items()])
    civo = Civo(world)
    civo.marks = {"t4": {"labels": {}, "taints": []}}
    aws = Aws(world)
    with api_server(ApiServer()) as api, serving(civo) as civo_url, aws_serving(aws) as aws_environ:
        api.add(POD)
        (home / "kubeconfig").write_text(api.kubeconfig())
        (home / "policy.yaml").write_text(POLICY.replace("t4-pool-id", "t4-nodes") if on_aws else POLICY)
        (home / "catalog.yaml").write_text(CATALOG)
        yield {
            **os.environ,
            "PILOTLIGHT_HOME": str(home),
            "PILOTLIGHT_POLICY": str(home / "policy.yaml"),
            "PILOTLIGHT_CATALOG": str(home / "catalog.yaml"),
            "PILOTLIGHT_CLUSTER": "prod",
            "PILOTLIGHT_API": f"kubeconfig:{home / 'kubeconfig'}",
            "PILOTLIGHT_POOLS": f"asg:{AWS_REGION}/{EKS}" if on_aws else f"civo:{REGION}/{CLUSTER}",
            "PILOTLIGHT_MODE": "act",
            "CIVO_API_URL": civo_url,
            "CIVO_TOKEN": TOKEN,
            **aws_environ,
            **({"PILOTLIGHT_STATE": f"firestore:bench/(default)/s{time.time_ns()}"} if _firestore() else {}),
        }


def _start(source: Path, target: str, event: dict[str, Any], environ: dict[str, str]) -> Cost:
    """Start a server under functions-framework, as a cloud does, and post one event to it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).parent / "functions-framework"), "--source", str(source), "--target", target]
    began = time.perf_counter()
    server = subprocess.Popen(
        [*command, "--port", str(port), "--host", "127.0.0.1"],
        env=environ | {"PYTHONPATH": str(source.parent)} if (source.parent / "pilotlight").is_dir() else environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        status, body = _post(port, json.dumps(event).encode())
        wall = time.perf_counter() - began
        if status != 200 or b"rejected" in body:
            raise SystemExit(f"error: {target} answered {status}: {body.decode()}")
        return Cost(cpu=sum(map(_cpu_s, _family(server.pid))), wall=wall)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _post(port: int, body: bytes) -> tuple[int, bytes]:
    """The first answer: tried until somebody listens."""
    for _ in range(6000):
        with suppress(ConnectionRefusedError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("POST", "/", body, {"Content-Type": "application/cloudevents+json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        time.sleep(0.005)
    raise SystemExit("error: the server did not start")


def _family(pid: int) -> list[int]:
    """A process and those it started."""
    children = [int(c) for task in Path(f"/proc/{pid}/task").iterdir() for c in (task / "children").read_text().split()]
    return [pid, *(one for child in children for one in _family(child))]


def _cpu_s(pid: int) -> float:
    """CPU time of all threads of a process, as clock_getcpuclockid(3) finds it: to the nanosecond, unlike /proc."""
    return time.clock_gettime((~pid << 3) | 2)


if __name__ == "__main__":
    sys.exit(main())
