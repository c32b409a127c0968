"""While the demo plays, `status`, `pools`, the live page and `/metrics` say the same of nodes, dollars and waits."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from pilotlight.settings import Settings
from pilotlight.tools.cli.main import build
from pilotlight.tools.cli.served import running_serve
from pilotlight.tools.serve.workers import CLI

pytestmark = pytest.mark.slow

MOMENTS, TRIES = 20, 12
"""At so many moments all four are asked; while something happens between two answers they are asked anew."""

APART_S = 2.0
"""Seconds between two moments: twenty of the world."""


class Said(NamedTuple):
    """One answer: nodes that are paid for, cents an hour, and pods that wait; None where it does not tell."""

    nodes: int
    cents: int
    waiting: int | None


def _command(home: Path, name: str) -> Any:
    environ = {"PILOTLIGHT_HOME": str(home), "COLUMNS": "200"}
    result = CliRunner().invoke(build([name]), [name, "--json"], env=environ)
    return json.loads(result.stdout)


def _status(home: Path) -> Said:
    [seen] = _command(home, "status")
    waiting = sum(group["pods"] for group in seen["waiting"])
    return Said(len(seen["nodes"]), round(100 * float(seen["usd_per_hour"])), waiting)


def _pools(home: Path) -> Said:
    rows = _command(home, "pools")["local"]
    return Said(sum(row["size"] or 0 for row in rows), round(100 * sum(float(row["paid"] or 0) for row in rows)), None)


def _page(port: int) -> Said:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/live")
    answer, event = connection.getresponse(), b""
    while not event.startswith(b"data: "):
        event = answer.readline()
    connection.close()
    seen = json.loads(event.removeprefix(b"data: "))
    waiting = sum(one["pods"] for one in seen["waiting"])
    return Said(len(seen["nodes"]), round(100 * seen["usd_per_hour"]), waiting)


def _metrics(port: int) -> Said:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    sums: dict[str, float] = {}
    for line in connection.getresponse().read().decode().splitlines():
        name, _, value = line.rpartition(" ")
        family = name.partition("{")[0]
        if family in ("pilotlight_nodes", "pilotlight_usd_per_hour", "pilotlight_pods_waiting"):
            sums[family] = sums.get(family, 0) + float(value)
    connection.close()
    hour, waiting = sums["pilotlight_usd_per_hour"], sums["pilotlight_pods_waiting"]
    return Said(round(sums.get("pilotlight_nodes", 0)), round(100 * hour), round(waiting))


def _all(home: Path, port: int) -> tuple[Said, Said, Said, Said]:
    return _status(home), _pools(home), _page(port), _metrics(port)


def _agree(answers: tuple[Said, ...]) -> bool:
    told = {answer.waiting for answer in answers if answer.waiting is not None}
    return len({(answer.nodes, answer.cents) for answer in answers}) == 1 and len(told) == 1


def _served(playing: "subprocess.Popen[bytes]", temporary: Path) -> tuple[Path, int]:
    """The demo's files and its port, as serve leaves its address beside its state."""
    while playing.poll() is None:
        for home in temporary.glob("pilotlight-demo-*"):
            found = running_serve(Settings.from_environ({"PILOTLIGHT_HOME": str(home)}))
            if found is not None:
                return home, urlsplit(found.url).port or 0
        time.sleep(0.1)
    raise AssertionError("the demo ended before its serve began")


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """The demo at work: its files, and the port of its serve."""
    # At 60 times the wall's speed four answers of a busy machine are minutes of the world apart.
    command = [sys.executable, "-c", CLI, "demo", "--json", "--speed", "10"]
    quiet = subprocess.DEVNULL
    playing = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=quiet, stderr=quiet)
    try:
        home, port = _served(playing, tmp_path)
        yield home, port
    finally:
        playing.terminate()
        playing.wait(60)


def test_status_pools_page_and_metrics_agree_at_twenty_moments(demo: tuple[Path, int]) -> None:
    """Nodes with those that boot, dollars an hour, and pods that wait; they were not always none."""
    home, port = demo
    agreed: list[tuple[Said, ...]] = []
    for _ in range(MOMENTS):
        for _ in range(TRIES):
            answers = _all(home, port)
            if _agree(answers):
                break
        assert _agree(answers), f"status, pools, page, metrics: {answers}"
        agreed.append(answers)
        time.sleep(APART_S)
    assert len({answers[0] for answers in agreed}) > 1, agreed
    assert max(answers[0].nodes for answers in agreed) >= 1
