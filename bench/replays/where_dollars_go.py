"""Where the dollars of a replay went, from its log: boots, GPUs in use, GPUs that a busy node left unused, idle nodes.

Usage: python bench/replays/where_dollars_go.py LOG...
Logs come of `bench/replays/pareto.py TRACE --logs FOLDER`, or of `pilotlight replay TRACE --log FILE`. Dollars are by
the second, of nodes that run; rounding up and disks of stopped nodes are left out.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from judge import read_types
from pilotlight.settings import default_file
from pilotlight.tools.cli.printing import console
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import HOUR

PARTS = ("boot", "in use", "unused beside work", "idle")
CATALOG = "data/catalogs/replay.yaml"


class Spent:
    """Dollars by part, and launches, of the records of one log."""

    def __init__(self, types: Mapping[str, Mapping[str, Any]]) -> None:
        self.types = types
        self.usd: dict[str, float] = defaultdict(float)
        self.launches = self.never_used = 0
        self._nodes: dict[str, dict[str, Any]] = {}
        self._placed: dict[str, list[Mapping[str, Any]]] = {}

    def read(self, records: Iterable[Mapping[str, Any]]) -> "Spent":
        """Every record, in order; a stopped node costs nothing here until it wakes."""
        for record in records:
            handle = getattr(self, "_" + record["event"], None)
            if handle is not None:
                handle(record)
        return self

    def _launch(self, r: Mapping[str, Any]) -> None:
        self.launches += 1
        price = float(self.types[r["type"]]["prices"][r["capacity_type"]]["usd_per_hour"])
        devices = 1000 * self.types[r["type"]]["gpus"]
        self._nodes[r["node"]] = {"t": r["t"], "price": price, "devices": devices, "used": 0, "is": "boot", "jobs": 0}

    def _ready(self, r: Mapping[str, Any]) -> None:
        self._count(r["node"], r["t"])["is"] = "idle"

    def _standby(self, r: Mapping[str, Any]) -> None:
        self._count(r["node"], r["t"])["is"] = ""

    def _wake(self, r: Mapping[str, Any]) -> None:
        self._count(r["node"], r["t"])["is"] = "boot"

    def _start(self, r: Mapping[str, Any]) -> None:
        self._placed[r["job"]] = r["placement"]
        for part in r["placement"]:
            node = self._count(part["node"], r["t"])
            node["used"] += part["gpus"] * part["share"]
            node["jobs"] += 1

    def _stop(self, r: Mapping[str, Any]) -> None:
        for part in self._placed.pop(r["job"]):
            self._count(part["node"], r["t"])["used"] -= part["gpus"] * part["share"]

    def _terminate(self, r: Mapping[str, Any]) -> None:
        self._count(r["node"], r["t"])
        self.never_used += self._nodes.pop(r["node"])["jobs"] == 0

    def _count(self, name: str, until: float) -> dict[str, Any]:
        node = self._nodes[name]
        usd, node["t"] = node["price"] * (until - node["t"]) / HOUR, until
        if node["is"] == "idle" and node["used"]:
            share = node["used"] / node["devices"]
            self.usd["in use"] += usd * share
            self.usd["unused beside work"] += usd * (1 - share)
        elif node["is"]:
            self.usd[node["is"]] += usd
        return node


def main(logs: Iterable[Path]) -> int:
    """One row a log."""
    types = read_types(default_file(CATALOG))
    shown = Sheet(Column("run", "name"), *(Column(part, "figure") for part in ("launches", "never used", *PARTS)))
    for log in logs:
        with log.open() as lines:
            spent = Spent(types).read(map(json.loads, lines))
        parts = (f"${spent.usd[part]:,.0f}" for part in PARTS)
        shown.add(log.stem, f"{spent.launches:,}", f"{spent.never_used:,}", *parts)
    console().print(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main([Path(word) for word in sys.argv[1:]]))
