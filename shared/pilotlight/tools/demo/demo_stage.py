"""The demo's stage: a served world, serve with its workers, and a web hook that takes the alerts."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, TypeVar

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.world_client import WorldClient
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.events import encode
from pilotlight.codec.policy_file import read_policy
from pilotlight.doorway import Function
from pilotlight.errors import Failed
from pilotlight.facts.messages import Alert, Message
from pilotlight.settings import Settings, default_file, environment
from pilotlight.tools.serve.workers import CLI
from pilotlight.tools.serve.world_server import WorldServer
from pilotlight.wiring import App
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import WallClock

Server = TypeVar("Server", bound=ThreadingHTTPServer)

HOST = "127.0.0.1"
POLICY, CATALOG = "examples/demo/policy.yaml", "examples/demo/catalog.yaml"
WORKERS = 2
START_S, STOP_S = 120.0, 20.0
"""Seconds of the wall's clock that serve may take to begin and to end."""
AGAIN_S, AGAIN_FOR_S = 0.2, 30.0
OK, BUSY = 200, 503


class Serve(NamedTuple):
    """Where serve listens, and its process."""

    port: int
    process: subprocess.Popen[bytes]


class Stage:
    """Everything started. ``log`` is the world's own, ``told`` the alerts that arrived, in their order.

    ``app`` reads what the functions wrote: it has their state and is none of them.
    """

    def __init__(self, world: str, serve: Serve, app: App, log: list[dict[str, Any]], told: list[Alert]) -> None:
        self.world, self.app, self.log, self.told = WorldClient(world), app, log, told
        self.speed = self.world.time().speed
        self._port, self._process = serve

    @property
    def page(self) -> str:
        """Where the live page is."""
        return f"http://{HOST}:{self._port}/"

    @property
    def over(self) -> bool:
        """True once serve has ended."""
        return self._process.poll() is not None

    def post(self, function: Function, message: Message, id: str) -> dict[str, Any]:
        """The answer of a function to one event, delivered again as a queue does while it answers 503.

        Raises ``Failed`` where there is none, or it is not 200.
        """
        until = time.monotonic() + AGAIN_FOR_S
        status, text = self._posted(function, message, id)
        while status == BUSY and time.monotonic() < until:
            time.sleep(AGAIN_S)
            status, text = self._posted(function, message, id)
        if status != OK:
            raise Failed(f"{function} answered {status}: {text.decode(errors='replace')}")
        found: dict[str, Any] = json.loads(text)
        return found

    def _posted(self, function: Function, message: Message, id: str) -> tuple[int, bytes]:
        connection = HTTPConnection(HOST, self._port, timeout=60)
        try:
            body = encode(message, id=id)
            connection.request("POST", f"/{function}", body, {"Content-Type": "application/cloudevents+json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise Failed(f"{function} does not answer: {error}") from None
        finally:
            connection.close()


@contextmanager
def stage(home: Path, speed: float) -> Iterator[Stage]:
    """A stage with its files in ``home``, while it is used. Raises ``Failed`` where serve does not begin."""
    log: list[dict[str, Any]] = []
    world = _world(speed, log)
    with _serving(WorldServer(world, 0)) as world_at, _serving(_Hook()) as hook:
        environ = _environ(home, world_at.url, f"http://{HOST}:{hook.server_address[1]}/")
        port = _free_port()
        try:
            with _serve(home, port, environ) as serve:
                yield Stage(world_at.url, serve, App(Settings.from_environ(environ)), log, hook.told)
        finally:
            lines = "".join(json.dumps(record) + "\n" for record in log)
            (home / "world.jsonl").write_text(lines, "utf-8")


def _world(speed: float, log: list[dict[str, Any]]) -> World:
    """The world begins when its prices held; nothing happens in it that the story does not do."""
    catalog = read_catalog(default_file(CATALOG).read_bytes(), CATALOG)
    policy = read_policy(default_file(POLICY).read_bytes(), POLICY)
    pools = WorldPool.every(policy, catalog)
    clock = WallClock(catalog.as_of, speed=speed)
    return World(catalog, pools, clock=clock, faults=Faults(reclaim=False), log=log.append)


def _environ(home: Path, world: str, hook: str) -> dict[str, str]:
    """This process's environment, with nothing of a deployment that it may be of."""
    plain = {name: value for name, value in environment().items() if not name.startswith("PILOTLIGHT_")}
    return {
        **plain,
        "PILOTLIGHT_HOME": str(home),
        "PILOTLIGHT_POLICY": str(default_file(POLICY)),
        "PILOTLIGHT_CATALOG": str(default_file(CATALOG)),
        "PILOTLIGHT_WORLD": world,
        "DEMO_HOOK": hook,
    }


@contextmanager
def _serve(home: Path, port: int, environ: dict[str, str]) -> Iterator[Serve]:
    """``pilotlight serve`` as ``make serve`` runs it, until it is left; its words go to ``serve.log``."""
    said = home / "serve.log"
    words = ["serve", "--while-stdin", "--workers", str(WORKERS), "--port", str(port)]
    with said.open("wb") as out:
        # In a group of its own, for Ctrl-C is this process's to answer.
        process = subprocess.Popen(
            [sys.executable, "-c", CLI, *words],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            process_group=0,
        )
    try:
        until = time.monotonic() + START_S
        while "/world/pods" not in said.read_text("utf-8", errors="replace"):
            if process.poll() is not None or time.monotonic() > until:
                raise Failed(f"serve did not begin; it said: {_last_line(said)}")
            time.sleep(0.05)
        yield Serve(port, process)
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _last_line(said: Path) -> str:
    lines = said.read_text("utf-8", errors="replace").splitlines()
    return lines[-1] if lines else "nothing"


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as free:
        port: int = free.getsockname()[1]
    return port


class _Hook(ThreadingHTTPServer):
    """Takes alerts as a receiver of CloudEvents does."""

    daemon_threads = True

    def __init__(self) -> None:
        self.told: list[Alert] = []
        super().__init__((HOST, 0), _Handler)


class _Event(msgspec.Struct, frozen=True):
    data: Alert


class _Handler(BaseHTTPRequestHandler):
    server: _Hook
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """An alert; anything else is refused for good."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            self.server.told.append(typed_json.decode(body, _Event).data)
            status = 204
        except msgspec.DecodeError:
            status = 400
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what arrives is printed by the story."""


@contextmanager
def _serving(server: Server) -> Iterator[Server]:
    with server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield server
        server.shutdown()
