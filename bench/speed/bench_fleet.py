"""Many clusters with one deployment of a few workers: seconds from an event to its decision, and between two ticks.

``bench_fleet.py [--clusters 100] [--pods 1000] [--workers 4] [--per-hour 10000] [--seconds 120] [--hang 0]`` serves
that many worlds, each with its pods at work on nodes of eight GPUs, and ``pilotlight serve`` over all of them. Pods of
one GPU come at random moments to clusters at random, each with its event; a decision is dated by the Event that it
writes on the pod, or by the answer where no other event asked that delivery to look again. ``--hang`` clusters have a
world that takes connections and never answers. The worlds share the machine: their CPU is told apart. Exits 1 where
the 95th percentile of an event is over 2 s, a cluster that answers is not looked at for two minutes, or an event is
left without a decision.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from math import ceil
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).parents[1] / "chaos"))

from fleet import PILOTLIGHT, children, free_port, post, until
from pilotlight.adapters.world_client import WorldClient
from pilotlight.codec.events import encode
from pilotlight.facts.messages import PodPending
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.settings import Settings
from pilotlight.state_schema.marks import TICK
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import WallClock

GPUS, RUN_S = 8, 86_400.0
AT_WORK = "another delivery is at work"
LIMIT_S, LOOKED_S = 2.0, 120.0
AT_ONCE, SAMPLE_S = 64, 2.0

CATALOG = """
name: fleet
as_of: 2026-11-01T00:00:00Z
instance_types:
  eight:
    cloud: world
    gpu_model: A100
    gpus: 8
    boot_s: 20
    prices: {on-demand: {usd_per_hour: "10", source: bench, date: "2026-11-01"}}
throughput: {batch: {A100: 1.0}}
"""
POLICY = """
version: 1
value_of_wait: 10
pools: {eights: {instance_type: eight, max: 10000}}
classes: {batch: {gpu_models: any}}
budgets: [{name: month, usd: 100000000}]
alerts: {channels: {}}
prices: {max_age_days: 3650}
"""


def serve_worlds(count: int, pods: int, home: str, told: Connection) -> None:
    """So many worlds in this process, each full of pods; their addresses are told, and none waits for another."""
    from pilotlight.tools.serve.world_server import WorldServer

    wired = App(Settings(policy=f"{home}/policy.yaml", catalog=f"{home}/catalog.yaml"))
    pools = WorldPool.every(wired.policy, wired.catalog)
    urls = []
    for _ in range(count):
        world = World(wired.catalog, pools, clock=WallClock(datetime.now(UTC)))
        world.launch("eights", ceil(pods / GPUS))
        for n in range(pods):
            world.submit(_pod(f"old-{n}", world.clock.now()), RUN_S)
        server = WorldServer(world, 0)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        urls.append(server.url)
    told.send(urls)
    threading.Event().wait()


def _pod(name: str, at: datetime) -> PodDemand:
    made = shape(gpu=GpuRequest(count=1), workload_class="batch")
    return PodDemand(uid=name, namespace="ml", name=name, shape=made, created_at=at)


@contextmanager
def worlds(count: int, pods: int, home: Path) -> Iterator[tuple[list[str], int]]:
    """Addresses of so many worlds, and the process they are in."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve_worlds, args=(count, pods, str(home), theirs), daemon=True
    )
    process.start()
    try:
        yield ours.recv(), process.pid or 0
    finally:
        process.kill()


@contextmanager
def deaf() -> Iterator[str]:
    """The address of a world that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def served(home: Path, clusters: dict[str, str], workers: int) -> Iterator[tuple[int, int, dict[str, str]]]:
    """The port and process of a serve over these clusters, and its settings."""
    named = {name: {"world": url} for name, url in clusters.items()}
    (home / "clusters.json").write_text(json.dumps(named))
    settings = {
        "PILOTLIGHT_HOME": str(home),
        "PILOTLIGHT_CLUSTERS": str(home / "clusters.json"),
        "PILOTLIGHT_POLICY": str(home / "policy.yaml"),
        "PILOTLIGHT_CATALOG": str(home / "catalog.yaml"),
        "PILOTLIGHT_MODE": "act",
    }
    port = free_port()
    with (home / "log").open("wb") as log:
        words = [str(PILOTLIGHT), "serve", "--workers", str(workers), "--port", str(port)]
        process = subprocess.Popen(words, env={**os.environ, **settings}, stdout=log, stderr=log)
    try:
        until(lambda: "the live page" in (home / "log").read_text() or process.poll() is not None)
        if process.poll() is not None:
            raise SystemExit((home / "log").read_text())
        yield port, process.pid, settings
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


class Gaps:
    """The longest time that each cluster went without a tick, by the marks of a state."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._state = App(Settings.from_environ(settings)).state
        self._seen: dict[str, list[datetime]] = {}

    def sample(self) -> set[str]:
        """Note when each cluster ticked last; the ticks that are known."""
        for entry in TICK.scan(self._state):
            times = self._seen.setdefault(entry.name, [])
            if entry.value.at is not None and entry.value.at not in times[-1:]:
                times.append(entry.value.at)
        return set(self._seen)

    def longest_s(self, since: datetime, until_: datetime, clusters: list[str]) -> float:
        """Of the looks of these clusters, in a stretch."""
        longest = 0.0
        for name in clusters:
            inside = [at for at in self._seen.get(f"{name}/reconcile", []) if since <= at <= until_]
            ends = [since, *inside, until_]
            longest = max(longest, *((b - a).total_seconds() for a, b in itertools.pairwise(ends)))
        return longest


def cpu_s(pid: int) -> float:
    """User and system seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid: int) -> float:
    """The most memory that a process held."""
    line = next(row for row in Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main() -> int:
    """Measure, and print; 1 where a limit is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (
        ("clusters", 100), ("pods", 1000), ("workers", 4), ("per-hour", 10_000), ("seconds", 120), ("hang", 0)
    ):  # fmt: skip
        options.add_argument(f"--{name}", type=int, default=default)
    asked = options.parse_args()
    with TemporaryDirectory() as folder, deaf() as silent:
        home = Path(folder)
        (home / "policy.yaml").write_text(POLICY)
        (home / "catalog.yaml").write_text(CATALOG)
        with worlds(asked.clusters, asked.pods, home) as (urls, worlds_pid):
            live = {f"c{n:03}": url for n, url in enumerate(urls)}
            every = {**live, **{f"hangs{n:03}": silent for n in range(asked.hang)}}
            with served(home, every, asked.workers) as (port, serve_pid, settings):
                return _measure(asked, live, port, serve_pid, worlds_pid, Gaps(settings))


def _measure(asked: Any, live: dict[str, str], port: int, serve: int, worlds_: int, gaps: Gaps) -> int:
    clients, dice = {name: WorldClient(url) for name, url in live.items()}, Random(1)
    looked = {f"{name}/reconcile" for name in live}
    until(lambda: looked <= gaps.sample())
    print(
        f"{len(live)} clusters of {asked.pods} pods have been looked at; events come for {asked.seconds} s", flush=True
    )
    pids = children(serve)
    before = {pid: cpu_s(pid) for pid in (*pids, worlds_)}
    begun = datetime.now(UTC)
    sent: dict[tuple[str, str], datetime] = {}
    answered: dict[tuple[str, str], float] = {}
    asked_again: list[tuple[str, datetime]] = []
    codes: list[int] = []

    def one(n: int) -> None:
        name = dice.choice(sorted(live))
        pod = _pod(f"new-{n}", datetime.now(UTC))
        clients[name].create([pod], 30.0)
        event = PodPending(cluster=name, namespace=pod.namespace, name=pod.name, uid=pod.uid)
        key, at = (name, f"{pod.namespace}/{pod.name}"), datetime.now(UTC)
        sent[key] = at
        status, body = post(port, "/pod_pending", encode(event, id=pod.uid))
        codes.append(status)
        if status == 200 and AT_WORK in json.dumps(body):
            asked_again.append((name, at))
        elif status == 200:
            answered[key] = (datetime.now(UTC) - at).total_seconds()

    with ThreadPoolExecutor(AT_ONCE) as threads:
        ends, n, sampled = time.monotonic() + asked.seconds, 0, 0.0
        while (now := time.monotonic()) < ends:
            threads.submit(one, n)
            n += 1
            if now - sampled > SAMPLE_S:
                gaps.sample()
                sampled = now
            time.sleep(dice.expovariate(asked.per_hour / 3600))
    ended = datetime.now(UTC)
    time.sleep(LIMIT_S * 5)
    gaps.sample()
    used = {pid: cpu_s(pid) - was for pid, was in before.items()}
    decided = _decided(clients)
    later = {key: (decided[key] - at).total_seconds() for key, at in sent.items() if key in decided}
    went_on = {
        key
        for key, took in answered.items()
        if any(name == key[0] and 0 < (at - sent[key]).total_seconds() < took for name, at in asked_again)
    }
    dated = {key: took for key, took in answered.items() if key not in went_on}
    waits = sorted({**dated, **later}.values())
    left = len(_waiting(clients) & (sent.keys() - later.keys() - answered.keys()))
    gap = gaps.longest_s(begun, ended, list(live))
    p95 = quantiles(waits, n=20)[-1] if len(waits) > 1 else float("inf")
    workers = sum(used[pid] for pid in pids)
    print(f"events {len(sent)}, answered 200: {codes.count(200)}, without a decision: {left}")
    print(f"deliveries that answered at once: {len(dated)}, that went on for others: {len(went_on)}")
    print(f"decisions that have a date: {len(waits)}, by their Events: {len(later)}")
    print(f"event to decision: median {waits[len(waits) // 2]:.2f} s, P95 {p95:.2f} s (limit {LIMIT_S:g})")
    print(f"longest time without a look: {gap:.0f} s (limit {LOOKED_S:.0f})")
    print(f"CPU: workers {workers:.1f} s, worlds {used[worlds_]:.1f} s, of {asked.seconds} s x {os.cpu_count()}")
    print(f"memory of a worker at most: {max(map(peak_mb, pids)):.0f} MB")
    return 1 if p95 > LIMIT_S or gap > LOOKED_S or left else 0


def _waiting(clients: dict[str, WorldClient]) -> set[tuple[str, str]]:
    """The pods that wait: one that its scheduler has bound needs no decision."""
    return {
        (name, f"ml/{pod.name}") for name, client in clients.items() for pod in client.pods() if pod.state == "pending"
    }


def _decided(clients: dict[str, WorldClient]) -> dict[tuple[str, str], datetime]:
    """When the first Event was written on each pod, by its cluster and name."""
    found: dict[tuple[str, str], datetime] = {}
    for name, client in clients.items():
        with urlopen(f"{client.url}/told") as answer:
            for told in json.load(answer):
                found.setdefault((name, told["pod"]), datetime.fromisoformat(told["at"]))
    return found


if __name__ == "__main__":
    sys.exit(main())
