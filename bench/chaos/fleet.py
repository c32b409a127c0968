"""A world and serve's workers as processes, for benches and tests that post to them and kill them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random, SystemRandom
from threading import Event, Thread
from typing import Any, NamedTuple

from pilotlight.adapters.world_client import WorldClient
from pilotlight.codec.events import encode
from pilotlight.facts.messages import PodPending
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.ports.state import State
from pilotlight.settings import Settings
from pilotlight.wiring import App

PILOTLIGHT = Path(sys.executable).parent / "pilotlight"

POLICY = """
version: 1
value_of_wait: 10
pools:
  t4: {instance_type: g4dn.xlarge, max: 60}
classes:
  batch: {gpu_models: any}
caps: {gpus: 4}
alerts: {channels: {console: {kind: console}}}
prices: {max_age_days: 3650}
"""
"""One pool of one-GPU nodes, and a cap of 4 GPUs."""


class Fleet(NamedTuple):
    """A world, the workers' state, serve's port and process, the folder of its log, and how many workers it has."""

    world: WorldClient
    state: State
    port: int
    serve: subprocess.Popen[bytes]
    home: Path
    size: int

    def create(self, count: int, run_s: float, name: str = "p") -> list[PodDemand]:
        """Pods of one GPU in the world."""
        made = shape(gpu=GpuRequest(count=1))
        now = self.world.time().now
        pods = [
            PodDemand(uid=f"{name}{n}", namespace="default", name=f"{name}{n}", shape=made, created_at=now)
            for n in range(count)
        ]
        self.world.create(pods, run_s)
        return pods

    def deliver(self, pod: PodDemand, tries: int = 1) -> tuple[int, float]:
        """Post one pod-pending event, again where a worker died over it; the last status, and the seconds it took."""
        body = encode(
            PodPending(cluster="local", namespace=pod.namespace, name=pod.name, uid=pod.uid), id=f"e-{pod.uid}"
        )
        began = time.perf_counter()
        for left in reversed(range(tries)):
            try:
                status = post(self.port, "/pod_pending", body)[0]
            except (OSError, HTTPException):
                status = 0
            if status == 200 or not left:
                break
            time.sleep(0.05)
        return status, time.perf_counter() - began

    def deliver_all(self, pods: Sequence[PodDemand], at_once: int, tries: int = 1) -> list[tuple[int, float]]:
        """Post one event a pod, so many at once."""
        with ThreadPoolExecutor(at_once) as threads:
            return list(threads.map(lambda pod: self.deliver(pod, tries), pods))

    @contextmanager
    def load(self, pods: Sequence[PodDemand]) -> Iterator[None]:
        """Deliveries of these pods over and over, while it lasts."""
        stop = Event()

        def run() -> None:
            while not stop.is_set():
                self.deliver_all(pods, at_once=6, tries=3)

        thread = Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def kill_one(self, dice: Random) -> None:
        """kill -9 a worker at some moment of the next 0.2 s, and wait first until there are all of them."""
        until(lambda: len(self.workers()) == self.size)
        time.sleep(dice.uniform(0, 0.2))
        os.kill(dice.choice(self.workers()), signal.SIGKILL)

    def freeze_one(self, dice: Random, seconds: float) -> None:
        """SIGSTOP a worker at some moment of the next 0.2 s, and let it go on after so long."""
        until(lambda: len(self.workers()) == self.size)
        time.sleep(dice.uniform(0, 0.2))
        worker = dice.choice(self.workers())
        os.kill(worker, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(worker, signal.SIGCONT)

    def workers(self) -> list[int]:
        """The process ids of serve's workers."""
        return children(self.serve.pid)

    @property
    def log(self) -> str:
        """Text that serve has written."""
        return (self.home / "log").read_text()


def free_port() -> int:
    """A port that nobody listens on, and that no system gives to whoever asks for any: those begin at 32,768."""
    while True:
        port = SystemRandom().randrange(20_000, 32_768)
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


def children(process: int) -> list[int]:
    """The process ids of a process's children."""
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def post(port: int, path: str, body: bytes) -> tuple[int, Any]:
    """Post a body; the status and the answer."""
    connection = HTTPConnection("127.0.0.1", port)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/cloudevents+json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


@contextmanager
def fleet(
    home: Path, *, workers: int, clock: str, policy: str = POLICY, environ: Mapping[str, str] | None = None
) -> Iterator[Fleet]:
    """A world and so many workers, ticked once a minute of its clock, while they are used."""
    file = home / "policy.yaml"
    file.write_text(policy)
    words = ["world", "--port", "0", "--clock", clock, "--policy", str(file)]
    world = subprocess.Popen([PILOTLIGHT, *words], stdout=subprocess.PIPE, text=True)
    assert world.stdout is not None
    url = world.stdout.readline().split()[1]
    try:
        with crew(home, url, workers=workers, policy=policy, environ=environ) as here:
            yield here
    finally:
        world.send_signal(signal.SIGTERM)
        world.wait()


@contextmanager
def crew(
    home: Path,
    world: str,
    *,
    workers: int,
    tick_s: int = 60,
    policy: str = POLICY,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Fleet]:
    """So many workers on a world that is served already, while they are used."""
    file, port = home / "policy.yaml", free_port()
    file.write_text(policy)
    settings = {"PILOTLIGHT_HOME": str(home), "PILOTLIGHT_POLICY": str(file), "PILOTLIGHT_WORLD": world}
    environment = {**os.environ, **settings, **(environ or {})}
    with (home / "log").open("wb") as log:
        words = ["serve", "--workers", str(workers), "--port", str(port), "--tick", str(tick_s)]
        serve = subprocess.Popen([PILOTLIGHT, *words], env=environment, stdout=log, stderr=log)
    here = Fleet(WorldClient(world), App(Settings.from_environ(environment)).state, port, serve, home, workers)
    try:
        until(lambda: "/world/pods" in here.log or serve.poll() is not None)
        assert serve.poll() is None, here.log
        yield here
    finally:
        serve.send_signal(signal.SIGTERM)
        serve.wait()


def until(true: Callable[[], Any]) -> None:
    """Wait for something that happens by itself, however slow the machine is; after ten minutes it never will."""
    for _ in range(6000):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen")
