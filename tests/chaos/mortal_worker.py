"""A worker in a process of its own that is killed with kill -9 around one write of its store."""

import os
import signal
from pathlib import Path
from typing import Any, NamedTuple

from harness.scene import CATALOG
from harness.setting import HEADERS

from pilotlight.adapters.clocks import ServedClock
from pilotlight.adapters.cluster.world import ServedCluster
from pilotlight.adapters.outbox.local import LocalOutbox
from pilotlight.adapters.pools.world import ServedPools
from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.adapters.state.firestore import FirestoreState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.adapters.world_client import WorldClient
from pilotlight.facts.policy import Policy
from pilotlight.ports.state import Clock, Page, State
from pilotlight.settings import Settings
from pilotlight.units import Seconds
from pilotlight.wiring import App, app

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}
"""What boto3 wants of a process of its own."""


class Where(NamedTuple):
    """A served world, and its store: a file, a collection of Firestore's emulator, or a table of a DynamoDB (a URL)."""

    url: str
    folder: Path
    policy: Policy
    emulator: str = ""

    @property
    def name(self) -> str:
        """Of its collection or table."""
        return "".join(letter for letter in self.folder.name if letter.isalnum())

    def app(self, dies_at: int = -1, *, after: bool = False) -> App:
        """A worker's app; with ``dies_at`` it dies around its so-many-th write."""
        world = WorldClient(self.url)
        clock = ServedClock(world)
        return app(
            Settings(mode="act"),
            cluster=ServedCluster(world),
            pools=ServedPools(world),
            state=Mortal(self.store(clock), dies_at, after),
            outbox=LocalOutbox(self.folder / "outbox"),
            channels={},
            clock=clock,
            policy=self.policy,
            catalog=CATALOG,
        )

    def store(self, clock: Clock) -> State:
        """The store itself."""
        if not self.emulator:
            return SqliteState(self.folder / "state.db", clock)
        if self.emulator.startswith("http"):
            for key, value in KEYS.items():
                os.environ.setdefault(key, value)
            return DynamoDBState(self.name, clock, endpoint=self.emulator)
        return FirestoreState("demo", clock, database="(default)", collection=self.name, emulator=self.emulator)


class Mortal:
    """A store that ends its process before or after one write."""

    def __init__(self, state: State, dies_at: int, after: bool) -> None:
        self._state, self._left, self._after = state, dies_at, after
        self.now, self.get = state.now, state.get

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """Write, or die."""
        self._die(after=False)
        version = self._state.put(key, value, if_version=if_version, ttl_s=ttl_s)
        self._die(after=True)
        return version

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        """Delete, or die."""
        self._die(after=False)
        self._state.delete(key, if_version=if_version)
        self._die(after=True)

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        """A page, as it is."""
        return self._state.scan(prefix, after=after, limit=limit)

    def _die(self, *, after: bool) -> None:
        if after is self._after and self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= after


def work(where: Where, function: Any, body: bytes, dies_at: int, after: bool) -> None:
    """Answer one delivery, unless the process dies over it."""
    where.app(dies_at, after=after).receive(function, body, HEADERS)
