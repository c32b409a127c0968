"""What requests did whose worker stood still between its last check and the first byte: no check can stop those.

What came late is found: a node is used, or given back, and then told; one that was taken late is told.
"""

from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

from harness.scene import START
from pilotlight.facts.decisions import Record
from pilotlight.facts.messages import Alert
from pilotlight.units import Seconds

CLOCKS_S: Seconds = 5.0
"""The store's clock, by which an alert is dated, is wrong by less."""


class LateCalls:
    """Told of what came late, of every start and end of the world's log; asked at the end."""

    def __init__(self) -> None:
        self._came: dict[str, Seconds] = {}
        self._taken: dict[str, Seconds] = {}
        self._used: set[str] = set()
        self._ended: dict[str, str] = {}
        self.claims: dict[str, str] = {}
        """Nodes' claims, by which people are told of some."""
        self.given_up: set[str] = set()
        """Nodes that never joined and that their cloud gave up by itself: each is a refusal, late or not."""

    def came(self, nodes: Iterable[str], now_s: Seconds) -> None:
        """A purchase landed late."""
        self._came.update(dict.fromkeys(nodes, now_s))

    def taken(self, instance: str, now_s: Seconds) -> None:
        """A release landed late."""
        self._taken[instance] = now_s

    def log(self, record: dict[str, Any]) -> None:
        """A record of the world's log."""
        if record["event"] == "start":
            self._used.update(placed["node"] for placed in record["placement"])
        elif record["event"] == "terminate":
            self._ended[record["node"]] = record["reason"]

    def untold(self, records: Iterable[Record], sent: set[str], alerts: Iterable[Alert]) -> Iterator[str]:
        """What nobody was told of, by a message (``sent``, by id) of the step that gave it back or an alert since."""
        told: dict[str, Seconds] = {}
        for record in records:
            for step in record.steps:
                if step.state == "done" and f"{record.id}.{step.n}" in sent:
                    told[step.target] = told[step.instance] = inf
        for alert in alerts:
            at_s = (alert.at - START).total_seconds() if alert.at else 0.0
            for name in alert.subject.split():
                told[name] = max(at_s, told.get(name, 0.0))
        for node, claim in self.claims.items():
            told[node] = max(told.get(node, 0.0), told.get(claim, 0.0))
        for node, at_s in self._came.items():
            if (
                node not in self._used | self.given_up
                and self._ended.get(node) == "released"
                and told.get(node, 0.0) < at_s - CLOCKS_S
            ):
                yield f"{node} came late at {at_s:.1f} s and went back unused, and nobody was told"
        for node, at_s in self._taken.items():
            if told.get(node, 0.0) < at_s - CLOCKS_S:
                yield f"{node} was taken by a release that landed late at {at_s:.1f} s, and nobody was told since"
