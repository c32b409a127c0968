"""A burst of 1,000 pod-pending deliveries to serve's workers, beside an empty functions-framework function.

CPU is that of the workers alone, read from /proc before and after; both have the same workers, threads and client.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "chaos"))

from fleet import Fleet, children, fleet, free_port, post, until
from pilotlight.facts.workload import PodDemand
from pilotlight.tools.serve.http_server import THREADS

DELIVERIES, AT_ONCE, WORKERS, WARM_UP, ROUNDS = 1000, 32, 2, 100, 5
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")

EMPTY = """
import functions_framework

@functions_framework.http
def empty(request):
    request.get_data()
    return "{}"
"""


class Burst(NamedTuple):
    """Time that a burst took: seconds in all, seconds of each delivery, CPU seconds of the workers."""

    wall_s: float
    each_s: Sequence[float]
    cpu_s: float


def main() -> None:
    """Print deliveries a second, CPU per delivery and P99 of both in their rounds of median CPU, and their ratio.

    The ratio is the median over rounds: both bursts of a round meet the same load of the machine.
    """
    rounds = [_round() for _ in range(ROUNDS)]
    empty, ours = (sorted(bursts, key=lambda burst: burst.cpu_s)[ROUNDS // 2] for bursts in zip(*rounds, strict=True))
    ratios = sorted(ours.cpu_s / empty.cpu_s for empty, ours in rounds)
    _show("an empty functions-framework function", empty)
    _show("pod_pending of pilotlight serve", ours)
    print(
        f"CPU per delivery: {ratios[ROUNDS // 2]:.2f} times the empty function's, median of {ROUNDS} rounds "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
    )


def _round() -> tuple[Burst, Burst]:
    """A burst to the empty function, then one to a fresh fleet."""
    with tempfile.TemporaryDirectory() as home:
        with _empty(Path(home)) as (port, parent):
            body = b'{"what": "a burst"}'
            empty = _burst(parent, [lambda: post(port, "/", body)[0]] * DELIVERIES)
        with fleet(Path(home), workers=WORKERS, clock="wall") as here:
            pods = here.create(DELIVERIES, run_s=3600)
            ours = _burst(here.serve.pid, [partial(_status, here, pod) for pod in pods])
            report = here.world.report()
            print(f"resizes {report.resizes}, nodes {report.launches}, bought twice {report.surplus}, {report.pods}")
            return empty, ours


def _status(here: Fleet, pod: PodDemand) -> int:
    return here.deliver(pod)[0]


def _burst(parent: int, deliveries: Sequence[Callable[[], int]]) -> Burst:
    """Warm the workers, then deliver all. Raises where one is not acknowledged."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(_timed, deliveries[:WARM_UP]))
        cpu_s, began = _cpu_s(parent), time.perf_counter()
        each_s = list(threads.map(_timed, deliveries))
        return Burst(time.perf_counter() - began, sorted(each_s), _cpu_s(parent) - cpu_s)


def _timed(deliver: Callable[[], int]) -> float:
    began = time.perf_counter()
    if (status := deliver()) != 200:
        raise SystemExit(f"a delivery was answered {status}")
    return time.perf_counter() - began


def _cpu_s(parent: int) -> float:
    """CPU seconds of a process's children, which are its workers."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split() for pid in children(parent)]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) / TICKS_A_SECOND


def _show(what: str, burst: Burst) -> None:
    p99 = burst.each_s[int(0.99 * len(burst.each_s))]
    per = burst.cpu_s / DELIVERIES
    print(f"{what:40} {DELIVERIES / burst.wall_s:6.0f}/s  CPU {per * 1e3:5.2f} ms  P99 {p99 * 1e3:6.1f} ms")


@contextmanager
def _empty(home: Path) -> Iterator[tuple[int, int]]:
    """The empty function under functions-framework's own server; its port and process."""
    (home / "main.py").write_text(EMPTY)
    port = free_port()
    words = ["--target", "empty", "--source", str(home / "main.py"), "--port", str(port), "--host", "127.0.0.1"]
    process = subprocess.Popen(
        [Path(sys.executable).parent / "functions-framework", *words],
        env={**os.environ, "WORKERS": str(WORKERS), "THREADS": str(THREADS)},
    )
    try:
        until(lambda: len(children(process.pid)) == WORKERS and _answers(port))
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _answers(port: int) -> bool:
    try:
        return post(port, "/", b"{}")[0] == 200
    except OSError:
        return False


if __name__ == "__main__":
    main()
