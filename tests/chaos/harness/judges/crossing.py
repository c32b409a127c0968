"""Whether what a worker reads, writes and sends is of the cluster that it works for, and of no other."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from harness.judges.invariants import Invariants
from harness.scene import CHANNEL
from pilotlight.facts.messages import Alert, Outgoing
from pilotlight.ports.state import Page, State, Stored
from pilotlight.units import Seconds


class _Named(msgspec.Struct):
    cluster: str = ""


class _Message(msgspec.Struct):
    """What is read of a message; a dead letter of an alert has that as its body."""

    cluster: str = ""
    body: str = ""


class _Letter(msgspec.Struct):
    data: _Named


class Crossing:
    """Tells the judge of each cluster what is its own. ``at`` gives the cluster that a worker works for, or nothing:
    alerts of all clusters are told together.

    ``ids`` has the cluster of every message, by its id: whoever takes messages in drops what has an id that it knows.
    """

    def __init__(self, judges: Mapping[str, Invariants], at: Callable[[], str], ids: dict[str, str]) -> None:
        self._judges, self._at, self._ids = judges, at, ids

    def named(self, cluster: str, what: str) -> None:
        """Something that a worker does names a cluster."""
        if self._at() not in ("", cluster):
            self._broke(f"{what} is of cluster {cluster or 'none'}, done for {self._at()}")

    def wrote(self, worker: str, key: str, value: bytes) -> None:
        self._judge(cluster_in(key)).wrote(worker, key, value)

    def failed(self, key: str, value: bytes) -> None:
        self._judge(cluster_in(key)).failed(key, value)

    def deleted(self, key: str) -> None:
        self._judge(cluster_in(key)).deleted(key)

    def published(self, messages: Sequence[Outgoing]) -> None:
        for message in messages:
            cluster = _cluster_of(message)
            self.named(cluster or self._at(), f"message {message.id}")
            if (first := self._ids.setdefault(message.id, cluster)) != cluster:
                self._broke(f"message {message.id} of {cluster} has the id of one of {first}")
            self._judge(cluster).published((message,))

    def shown(self, worker: str, alert: Alert) -> None:
        self._judge(alert.cluster).shown(worker, alert)

    def unsure(self, alert: Alert) -> None:
        self._judge(alert.cluster).unsure(alert)

    def _judge(self, cluster: str) -> Invariants:
        return self._judges.get(cluster) or self._judges.get(self._at()) or next(iter(self._judges.values()))

    def _broke(self, text: str) -> None:
        self._judge(self._at()).broke("crossed_clusters", text)


ALERTS = "waiting/"
"""Alerts of all clusters are told together: any worker asks whether some wait."""


class OneCluster:
    """A store of many clusters, whose every key names the cluster that its worker works for."""

    def __init__(self, state: State, crossing: Crossing) -> None:
        self._state, self._crossing = state, crossing

    def now(self) -> datetime:
        return self._state.now()

    def get(self, key: str) -> Stored | None:
        self._crossing.named(cluster_in(key), f"get {key}")
        return self._state.get(key)

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        self._crossing.named(cluster_in(key), f"put {key}")
        return self._state.put(key, value, if_version=if_version, ttl_s=ttl_s)

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        self._crossing.named(cluster_in(key), f"delete {key}")
        self._state.delete(key, if_version=if_version)

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        if prefix != ALERTS:
            self._crossing.named(cluster_in(prefix), f"scan {prefix}")
        return self._state.scan(prefix, after=after, limit=limit)


def cluster_in(key: str) -> str:
    """The second part of a key is its cluster."""
    return [*key.split("/", 2), ""][1]


def _cluster_of(message: Outgoing) -> str:
    found = msgspec.json.decode(message.data, type=_Message)
    if message.key == CHANNEL and found.body:
        return msgspec.json.decode(found.body, type=_Letter).data.cluster
    return found.cluster
