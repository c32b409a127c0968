"""A stranger's books of a replay: dollars, waits and over-full devices from its log, the trace and the catalogue.

It shares no code with what wrote the log, and reads the three files by itself.
"""

import csv
import gzip
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

RESTORE_S = 60.0


def read_jobs(path: Path) -> dict[str, dict[str, Any]]:
    """The rows of a trace by job id."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    return {row["job_id"]: row for row in csv.DictReader(text.splitlines())}


def read_types(path: Path) -> dict[str, dict[str, Any]]:
    """The instance types of a catalogue by name."""
    types: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text())["instance_types"]
    return types


@dataclass
class Books:
    """Sums of a log. ``wrong`` says what a rule of the replay forbids, a line each."""

    jobs: Mapping[str, Mapping[str, Any]]
    types: Mapping[str, Mapping[str, Any]]
    standby_usd_per_hour: float = 0.011
    usd: float = 0.0
    standby_usd: float = 0.0
    launches: int = 0
    wakes: int = 0
    wrong: list[str] = field(default_factory=list)
    waits: dict[str, float] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def read(self, records: Iterable[Mapping[str, Any]]) -> "Books":
        """Every record, in order."""
        self._nodes: dict[str, dict[str, Any]] = {}
        self._running: dict[str, Mapping[str, Any]] = {}
        self._saved: dict[str, float] = defaultdict(float)
        at = 0.0
        for record in records:
            self._expect(record["t"] >= at, f"{record}: out of order")
            at = record["t"]
            getattr(self, "_" + record["event"])(record)
        for name in self._nodes:
            self.wrong.append(f"{name}: lit at the end")
        for name in self.jobs.keys() - self.ended:
            self.wrong.append(f"{name}: never done")
        return self

    @property
    def mean_wait_s(self) -> float:
        """Over the jobs that started."""
        return sum(self.waits.values()) / len(self.waits) if self.waits else 0.0

    def _expect(self, holds: bool, else_: str) -> None:
        if not holds:
            self.wrong.append(else_)

    def _launch(self, r: Mapping[str, Any]) -> None:
        self._expect(r["node"] not in self._nodes, f"{r}: launched twice")
        self.launches += 1
        free = [1000] * self.types[r["type"]]["gpus"]
        self._nodes[r["node"]] = {**r, "paid_from": r["t"], "stopped_at": None, "ready": False, "free": free, "jobs": 0}

    def _ready(self, r: Mapping[str, Any]) -> None:
        self._nodes[r["node"]]["ready"] = True

    def _standby(self, r: Mapping[str, Any]) -> None:
        node = self._nodes[r["node"]]
        self._expect(node["jobs"] == 0, f"{r}: stopped under a job")
        self._expect(node["capacity_type"] == "on-demand", f"{r}: only on-demand nodes stand by")
        self._pay(node, r["t"])
        node.update(ready=False, stopped_at=r["t"], paid_from=None)

    def _wake(self, r: Mapping[str, Any]) -> None:
        node = self._nodes[r["node"]]
        self.wakes += 1
        self._disk(node, r["t"])
        node.update(stopped_at=None, paid_from=r["t"])

    def _start(self, r: Mapping[str, Any]) -> None:
        job = self.jobs[r["job"]]
        gpus = int(job["gpus"])
        self._expect(r["job"] not in self._running, f"{r}: runs already")
        self._expect(r["t"] >= float(job["submit_s"]), f"{r}: before its submit")
        self._expect(len(r["placement"]) == max(1, -(-gpus // 8)), f"{r}: a gang holds whole nodes, all at once")
        for part in r["placement"]:
            self._put(r, job, part)
        self._running[r["job"]] = r
        self.waits.setdefault(r["job"], r["t"] - float(job["submit_s"]))

    def _put(self, r: Mapping[str, Any], job: Mapping[str, Any], part: Mapping[str, Any]) -> None:
        node = self._nodes[part["node"]]
        models = [model for model in job["gpu_spec"].split("|") if model]
        self._expect(node["ready"], f"{r}: its node is not ready")
        self._expect(not models or self.types[node["type"]]["gpu_model"] in models, f"{r}: a model it may not use")
        share = int(job["gpu_milli"])
        self._expect((part["gpus"], part["share"]) == (min(int(job["gpus"]), 8), share), f"{r}: not what it asked for")
        self._expect(len(set(part["devices"])) == part["gpus"], f"{r}: a device twice")
        for device in part["devices"]:
            node["free"][device] -= share
            self._expect(node["free"][device] >= 0, f"{r}: device {device} of {part['node']} is over-full")
        node["jobs"] += 1

    def _stop(self, r: Mapping[str, Any]) -> None:
        started = self._running.pop(r["job"])
        for part in started["placement"]:
            node = self._nodes[part["node"]]
            node["jobs"] -= 1
            for device in part["devices"]:
                node["free"][device] += part["share"]
        if r["reason"] != "done":
            self._saved[r["job"]] = r["saved_s"]
            return
        restored = RESTORE_S if r["job"] in self._saved else 0.0
        run_s = float(self.jobs[r["job"]]["duration_s"]) - self._saved[r["job"]] + restored
        self._expect(math.isclose(r["t"] - started["t"], run_s, abs_tol=1e-6), f"{r}: ran {r['t'] - started['t']} s")
        self.ended.add(r["job"])

    def _terminate(self, r: Mapping[str, Any]) -> None:
        node = self._nodes.pop(r["node"])
        self._expect(node["jobs"] == 0, f"{r}: ended under a job")
        if node["paid_from"] is None:
            self._disk(node, r["t"])
        else:
            self._pay(node, r["t"])

    def _pay(self, node: Mapping[str, Any], until: float) -> None:
        price = Decimal(str(self.types[node["type"]]["prices"][node["capacity_type"]]["usd_per_hour"]))
        paid_s = max(60, math.ceil(round(until - node["paid_from"], 6)))
        self.usd += float(price) * paid_s / 3600

    def _disk(self, node: Mapping[str, Any], until: float) -> None:
        cost = self.standby_usd_per_hour * (until - node["stopped_at"]) / 3600
        self.usd += cost
        self.standby_usd += cost


def judge(log: Path, jobs: Mapping[str, Mapping[str, Any]], types: Mapping[str, Mapping[str, Any]]) -> Books:
    """The books of a log file."""
    with log.open() as lines:
        return Books(jobs, types).read(map(json.loads, lines))
