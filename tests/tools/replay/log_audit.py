"""A stranger's books: every figure of a replay recomputed from its log, the trace and the catalogue alone."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pilotlight.facts.offers.catalog import Catalog
from pilotlight.tools.replay.traces.trace_job import Job

CHECKPOINT_S, RESTORE_S = 600, 60
"""What REPLAY's rules say of jobs on spot."""


@dataclass
class Books:
    """What a log comes to; made by reading it, which fails on the first record that cannot be."""

    catalog: Catalog
    jobs: Sequence[Job]
    boot_s: float = 180.0
    cost: Decimal = Decimal(0)
    gpu_seconds_paid: float = 0.0
    launches: int = 0
    interruptions: int = 0
    lost_gpu_s: float = 0.0
    starts: dict[str, float] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)

    def read(self, records: Iterable[dict[str, Any]]) -> "Books":
        """Every record, in order."""
        self._by_id = {job.job_id: job for job in self.jobs}
        self._nodes: dict[str, dict[str, Any]] = {}
        self._running: dict[str, dict[str, Any]] = {}
        self._saved: dict[str, float] = defaultdict(float)
        at_s = 0.0
        for record in records:
            assert record["t"] >= at_s, "the log is in time order"
            at_s = record["t"]
            getattr(self, "_" + record["event"])(record)
        assert not self._running, "every job that starts stops"
        assert not self._nodes, "every node that is launched is terminated"
        return self

    @property
    def waits(self) -> dict[str, float]:
        """Seconds from submit to the first start, by job."""
        return {name: at_s - self._by_id[name].submit_s for name, at_s in self.starts.items()}

    def _launch(self, r: dict[str, Any]) -> None:
        assert r["node"] not in self._nodes
        self.launches += 1
        gpus = self.catalog.instance_types[r["type"]].gpus
        self._nodes[r["node"]] = {**r, "ready": None, "free": [1000] * gpus, "jobs": set()}

    def _ready(self, r: dict[str, Any]) -> None:
        node = self._nodes[r["node"]]
        assert r["t"] == node["t"] + self.boot_s, "a node takes work its boot after the request"
        node["ready"] = r["t"]

    def _start(self, r: dict[str, Any]) -> None:
        job = self._by_id[r["job"]]
        assert r["job"] not in self._running
        assert r["t"] >= job.submit_s
        assert len(r["placement"]) == max(1, -(-job.gpus // 8)), "a gang holds whole nodes, all at once"
        for part in r["placement"]:
            node = self._nodes[part["node"]]
            kind = self.catalog.instance_types[node["type"]]
            assert node["ready"] is not None
            assert not job.models or kind.gpu_model in job.models
            assert (part["gpus"], part["share"]) == (min(job.gpus, 8), job.gpu_milli)
            assert len(set(part["devices"])) == part["gpus"]
            for device in part["devices"]:
                node["free"][device] -= part["share"]
                assert node["free"][device] >= 0, "no device is over-full"
            node["jobs"].add(r["job"])
        restore_s = RESTORE_S if r["job"] in self.starts else 0
        self._running[r["job"]] = {**r, "restore_s": restore_s}
        self.starts.setdefault(r["job"], r["t"])

    def _stop(self, r: dict[str, Any]) -> None:
        job, run = self._by_id[r["job"]], self._running.pop(r["job"])
        for part in run["placement"]:
            node = self._nodes[part["node"]]
            node["jobs"].discard(r["job"])
            for device in part["devices"]:
                node["free"][device] += part["share"]
        lasted_s, had_s = r["t"] - run["t"], self._saved[r["job"]]
        if r["reason"] == "done":
            assert math.isclose(lasted_s, run["restore_s"] + job.duration_s - had_s, abs_tol=1e-6)
            self.ends[r["job"]] = r["t"]
            self.lost_gpu_s += run["restore_s"] * job.gpus * job.gpu_milli / 1000
        else:
            self.interruptions += 1
            assert r["saved_s"] % CHECKPOINT_S == 0
            self._saved[r["job"]] = r["saved_s"]
            self.lost_gpu_s += (lasted_s - (r["saved_s"] - had_s)) * job.gpus * job.gpu_milli / 1000

    def _terminate(self, r: dict[str, Any]) -> None:
        node = self._nodes.pop(r["node"])
        assert not node["jobs"], "no node ends under a running job"
        kind = self.catalog.instance_types[node["type"]]
        paid_s = max(60, math.ceil(round(r["t"] - node["t"], 6)))
        self.cost += kind.prices[node["capacity_type"]].usd_per_hour * paid_s / 3600
        self.gpu_seconds_paid += paid_s * kind.gpus
