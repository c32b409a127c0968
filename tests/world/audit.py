"""Recomputes a run from its log alone, as a stranger would, knowing only the catalogue and the jobs' run times."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from small_cloud import CATALOG

from pilotlight.units import per_hour


class Audit:
    """Reads records in order and fails on the first that cannot be.

    ``cost`` and ``starts`` (first start by job), ``done`` (end by job) are what the log says.
    """

    def __init__(self, records: Iterable[dict[str, Any]], run_s: Mapping[str, float], restore_s: float = 60.0) -> None:
        self.starts: dict[str, float] = {}
        self.done: dict[str, float] = {}
        self.lost_gpu_s = 0.0
        self._run_s, self._restore_s = run_s, restore_s
        self._nodes: dict[str, dict[str, Any]] = {}
        self._running: dict[str, dict[str, Any]] = {}
        self._saved: dict[str, float] = {}
        self._closed = Decimal(0)
        self._last_s = 0.0
        for record in records:
            assert record["t"] >= self._last_s, "the log is in time order"
            self._last_s = record["t"]
            getattr(self, f"_{record['event']}")(record)

    def cost(self, now_s: float) -> Decimal:
        """Dollars up to now."""
        return self._closed + sum((_paid(node, now_s) for node in self._nodes.values()), Decimal(0))

    def _launch(self, record: dict[str, Any]) -> None:
        assert record["node"] not in self._nodes, "a node's name is used once"
        self._nodes[record["node"]] = {**record, "ready": None, "used": defaultdict(int), "jobs": set()}

    def _ready(self, record: dict[str, Any]) -> None:
        node = self._nodes[record["node"]]
        assert record["t"] - node["t"] == CATALOG.instance_types[node["type"]].boot_s
        node["ready"] = record["t"]

    def _start(self, record: dict[str, Any]) -> None:
        job = record["job"]
        assert job not in self._running, "a running job is not started again"
        for part in record["placement"]:
            node = self._nodes[part["node"]]
            assert node["ready"] is not None, "work goes on ready nodes only"
            assert len(set(part["devices"])) == part["gpus"]
            for device in part["devices"]:
                assert 0 <= device < CATALOG.instance_types[node["type"]].gpus
                node["used"][device] += part["share"]
                assert node["used"][device] <= 1000, "no device is over-full"
            node["jobs"].add(job)
        self._running[job] = {**record, "restore": self._restore_s if job in self.starts else 0.0}
        self.starts.setdefault(job, record["t"])

    def _stop(self, record: dict[str, Any]) -> None:
        job = record["job"]
        run = self._running.pop(job)
        for part in run["placement"]:
            node = self._nodes[part["node"]]
            node["jobs"].discard(job)
            for device in part["devices"]:
                node["used"][device] -= part["share"]
        held = sum(part["gpus"] * part["share"] / 1000 for part in run["placement"])
        elapsed, saved = record["t"] - run["t"], self._saved.get(job, 0.0)
        if record["reason"] == "done":
            assert math.isclose(elapsed, run["restore"] + self._run_s[job] - saved, abs_tol=1e-6)
            self.done[job] = record["t"]
            self.lost_gpu_s += held * run["restore"]
        else:
            assert record["saved_s"] >= saved
            assert record["saved_s"] % 600 == 0
            self._saved[job] = record["saved_s"]
            self.lost_gpu_s += held * (elapsed - (record["saved_s"] - saved))

    def _terminate(self, record: dict[str, Any]) -> None:
        node = self._nodes.pop(record["node"])
        assert not node["jobs"], "jobs stop before their node ends"
        self._closed += _paid(node, record["t"])


def _paid(node: dict[str, Any], now_s: float) -> Decimal:
    price = CATALOG.instance_types[node["type"]].prices[node["capacity_type"]].usd_per_hour
    return per_hour(price, max(60, math.ceil(round(now_s - node["t"], 6))))
