"""A worker in a process of its own: the world over HTTP, the real store file, and a line to whoever looks on."""

import logging
import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from harness.faults.hazard_ports import Hazard, HazardChannel, HazardOutbox, HazardState, Sees
from harness.scene import CATALOG, CHANNEL, Skew
from harness.setting import HEADERS, SkewedClock, drawn
from pilotlight.adapters.clocks import ServedClock
from pilotlight.adapters.cluster.world import ServedCluster
from pilotlight.adapters.logs import LOGGER
from pilotlight.adapters.pools.world import ServedPools
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.adapters.world_client import WorldClient
from pilotlight.facts.messages import Alert, Outgoing
from pilotlight.settings import Settings
from pilotlight.units import Seconds
from pilotlight.wiring import App, app


class Hand(NamedTuple):
    """Which worker this is, in its so many-th life, and where its world and its store are."""

    seed: int
    deliveries: int
    worker: int
    life: int
    url: str
    file: Path


class Line(Sees):
    """The line to the process that looks on. Whatever is told is answered with the world's second."""

    def __init__(self, connection: "Connection[Any, Any]") -> None:
        self._connection = connection

    def at(self, call: str) -> Seconds:
        """Before a call."""
        return self._tell("at", call)

    def say(self, line: str) -> None:
        """A line of the log."""
        self._tell("say", line)

    def wrote(self, worker: str, key: str, value: bytes) -> None:
        self._tell("wrote", worker, key, value)

    def failed(self, key: str, value: bytes) -> None:
        self._tell("failed", key, value)

    def deleted(self, key: str) -> None:
        self._tell("deleted", key)

    def published(self, messages: Sequence[Outgoing]) -> None:
        self._tell("published", msgspec.json.encode(messages))

    def shown(self, worker: str, alert: Alert) -> None:
        self._tell("shown", worker, msgspec.json.encode(alert))

    def unsure(self, alert: Alert) -> None:
        self._tell("unsure", msgspec.json.encode(alert))

    def _tell(self, what: str, *rest: object) -> Seconds:
        self._connection.send((what, *rest))
        now_s: Seconds = self._connection.recv()
        return now_s


def work(hand: Hand, connection: "Connection[Any, Any]") -> None:
    """Answer deliveries until the line is cut."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger(LOGGER).setLevel(logging.CRITICAL + 1)
    mine = _app(hand, Line(connection))
    with suppress(EOFError, OSError):
        while True:
            function, body = connection.recv()
            answer = mine.receive(function, body, HEADERS)
            connection.send(("done", answer.status, str(answer.body.get("why") or answer.body)))


def _app(hand: Hand, line: Line) -> App:
    _, scene, luck = drawn(hand.seed, hand.deliveries)
    luck.begin(Random(f"{hand.seed}/{hand.worker}/{hand.life}"))
    world = WorldClient(hand.url)
    true = ServedClock(world)
    clock, store = SkewedClock(true, scene.skews[hand.worker]), SkewedClock(true, Skew(scene.store_s))
    hazard = Hazard(f"w{hand.worker}", luck, line.at, line.say)
    return app(
        Settings(mode="act"),
        cluster=ServedCluster(world),
        pools=ServedPools(world),
        state=HazardState(SqliteState(hand.file, store), hazard, line),
        outbox=HazardOutbox(hazard, line),
        channels={CHANNEL: HazardChannel(hazard, line)},
        clock=clock,
        policy=scene.policy,
        catalog=CATALOG,
    )
