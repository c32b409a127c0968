"""Cost of a cold start on Lambda: one that buys a node on AWS, beside an empty handler, in turn.

``python bench/cold_start/cold_start_lambda.py`` prints medians of paired starts: CPU time of the process and wall time,
from exec to the first answer. AWS's own client (awslambdaric) runs both against a local Runtime API, in a Python that
has what Lambda's has and no more: ours is the unzipped bundle with its bytecode, beside its layer. State lies in moto's
DynamoDB; cluster and cloud are the stand-ins of ``cold_start.py``, and the policy is a file.
"""

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import files
from pathlib import Path
from statistics import median
from typing import Any

import boto3

import cold_start
from cold_start import ROOT, Cost

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts"), str(ROOT / "bench" / "chaos")]

from aws_server import KEYS, REGION  # noqa: E402
from lambda_runtime import running  # noqa: E402

import bundle  # noqa: E402
import lambda_layers  # noqa: E402
from emulators import MOTO  # noqa: E402
from fleet import free_port  # noqa: E402
from pilotlight.tools.install.state_store import create_table  # noqa: E402

OF_LAMBDA = ("awslambdaric", "simplejson", "snapshot-restore-py")
"""Modules that Lambda's Python brings for its own client."""
EMPTY = "def empty(event, context):\n    return {}\n"


def main() -> None:
    """Measure, and print."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--times", type=int, default=15, help="pairs of starts")
    times = words.parse_args().times
    with tempfile.TemporaryDirectory() as folder, _moto() as dynamodb:
        (Path(folder) / "nothing.py").write_text(EMPTY)
        _lay(Path(folder, "app"), bundle.contents(ROOT / "functions" / "pod_pending"))
        _lay(Path(folder, "site"), _packages(OF_LAMBDA) | _packages(_layer()))
        pairs = [_pair(Path(folder), dynamodb, n) for n in range(times + 1)][1:]
    empty, ours = (median(pair[i].cpu for pair in pairs) * 1000 for i in (0, 1))
    ratio, wall = (median(getattr(b, name) / getattr(a, name) for a, b in pairs) for name in ("cpu", "wall"))
    print(f"empty handler {empty:.0f} ms CPU; one that buys {ours:.0f} ms: {ratio:.1f} times, {wall:.1f} by the wall")


def _lay(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _layer() -> list[str]:
    lines = lambda_layers.listed(lambda_layers.LAYERS["base"]).splitlines()
    return [line.partition("==")[0] for line in lines if "==" in line]


def _packages(names: Iterable[str]) -> dict[str, bytes]:
    """The files of packages that are installed here, with bytecode."""
    found = {str(file): file.read_binary() for name in names for file in files(name) or () if ".." not in file.parts}
    sources = {name: content for name, content in found.items() if "__pycache__" not in name}
    return sources | bundle.compiled(sources, ours=False)


def _pair(folder: Path, dynamodb: str, n: int) -> tuple[Cost, Cost]:
    empty = _start("nothing.empty", {}, folder, folder, {})
    with cold_start.stand_ins(folder / f"home-{n}", True) as environ:
        table = {"PILOTLIGHT_STATE": f"dynamodb:{_new_table(dynamodb, n)}", "AWS_ENDPOINT_URL_DYNAMODB": dynamodb}
        mine = {**environ, **table, "AWS_REGION": REGION}
        event = cold_start._pending("1")
        return empty, _start("pilotlight.on_lambda.pod_pending", mine, folder, folder / "app", event)


def _new_table(dynamodb: str, n: int) -> str:
    keys = {"aws_access_key_id": KEYS["AWS_ACCESS_KEY_ID"], "aws_secret_access_key": "x", "region_name": REGION}
    create_table(boto3.client("dynamodb", endpoint_url=dynamodb, **keys), f"bench-{n}")
    return f"bench-{n}"


def _start(handler: str, environ: Mapping[str, str], folder: Path, path: Path, event: dict[str, Any]) -> Cost:
    """One process and one event: what it cost until it answered."""
    began = time.perf_counter()
    python = [getattr(sys, "_base_executable", sys.executable), "-S"]
    with running(handler, environ, [path, folder / "site"], python) as function:
        said = function.invoke(event)
        wall = time.perf_counter() - began
        if environ and not said.get("did"):
            raise SystemExit(f"error: {handler} answered {said}")
        assert function.process is not None
        return Cost(cpu=cold_start._cpu_s(function.process.pid), wall=wall)


@contextmanager
def _moto() -> Iterator[str]:
    port = free_port()
    server = subprocess.Popen([sys.executable, "-c", MOTO, str(port)], stderr=subprocess.DEVNULL)
    try:
        while not _open(port):
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main()
