"""A life on a real API server: pods come, run and end for minutes, and what they stand on goes wrong meanwhile.

Pods are drawn from a trace and come one after another; each runs for 20 to 120 s once it is bound. Meanwhile some are
deleted and made anew, the API server restarts (--restart, a command) and its store stalls for seconds (--stall, a
process that is stopped and goes on). Pilotlight acts by its own account, by events and ticks; its cloud's nodes join
3 to 8 s after purchase. It prints a table, and a table of its calls by verb and kind. A node that was never used is
told with what became of the pods that waited when it was bought: one was deleted, or went where another had ended
since. It is surplus where neither is so. Exit code 1 where a pod was not bound or a node is surplus.

  KUBECONFIG=... python bench/scheduler/life_live.py ../shared/traces/openb_dev.csv.gz --minutes 10
  ... --restart 'systemctl restart kube-apiserver' --restarts 3 --stall $(pgrep etcd) --stalls 10

A cluster without other GPU nodes and waiting pods, please.
"""

import argparse
import heapq
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from math import inf
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from homes_live import draw
from live_cloud import ANY, LiveCloud, Machine, eventually, kubeconfig
from live_run import Figures, Live, Object, Site, admitted, counted, none_left, policy_of
from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, NOTHING, Missing
from pilotlight.errors import Conflict, PilotlightError, Retry
from pilotlight.tools.replay.traces.trace_file import read_trace

JOIN_S, RUN_S, STALL_S = (3.0, 8.0), (20.0, 120.0), (2.0, 6.0)
TOLD_S = 2.0
"""So late a bind may be seen."""
AT_MOST_AFTER_S = 300.0
"""So long after the last arrival every pod is bound."""


@dataclass
class Life(Live):
    """Arrivals, ends, deletions and faults, each at its second."""

    site: Site
    asked: argparse.Namespace
    pods: Sequence[Object]
    waited: list[float] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__(Figures("", "homes", True, self.asked.seed, len(self.pods)), self.site)
        self._rng, self._order = Random(f"life/{self.asked.seed}"), count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._came: dict[str, float] = {}
        self._ends: set[str] = set()
        self._arrived: dict[str, float] = {}
        self._over: dict[str, tuple[float, str]] = {}

    def begun(self) -> LiveCloud:
        """Pilotlight and its cloud, told by all pods which pools are homed; then the cluster is empty again."""
        self.make(self.pods)
        watched = KubernetesCluster(self.api, policy_of("homes"), SystemClock())
        app, cloud = self.begin(watched, JOIN_S)
        self.api.ask("DELETE", self.space, NOTHING)
        eventually(lambda: none_left(self.api, self.space))
        self.follow()
        self.serve(app, self.asked.tick)
        return cloud

    def go(self) -> None:
        """From the first arrival until every pod was bound, or too late for it."""
        over_s, began = 60.0 * self.asked.minutes, time.monotonic()
        for n, each in enumerate(self.pods):
            self._at(began + over_s * (n + self._rng.random()) / len(self.pods), lambda each=each: self._arrive(each))  # type: ignore[misc]
        for _ in range(self.asked.restarts if self.asked.restart else 0):
            self._at(began + self._rng.uniform(0.1, 0.9) * over_s, self._restart)
        for _ in range(self.asked.stalls if self.asked.stall else 0):
            self._at(began + self._rng.uniform(0, 1) * over_s, self._stall)
        for _ in range(self.asked.deletions):
            self._at(began + self._rng.uniform(0.05, 1) * over_s, self._delete)
        while time.monotonic() < began + over_s + AT_MOST_AFTER_S:
            while self._agenda and self._agenda[0][0] <= time.monotonic():
                at, _, do = heapq.heappop(self._agenda)
                self._tried(at, do)
            self._note_bound()
            if not self._came and time.monotonic() > began + over_s:
                return
            time.sleep(0.2)

    def _at(self, when: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (when, next(self._order), do))

    def _tried(self, at: float, do: Callable[[], None]) -> None:
        try:
            do()
        except Missing:
            return
        except Retry:  # The API server is away: as whoever makes pods does, again.
            self._at(time.monotonic() + 1.0, do)

    def _arrive(self, each: Object) -> None:
        name = each["metadata"]["name"]
        with suppress(Conflict):  # It was made by a request whose answer was lost.
            self.api.ask("POST", self.space, NOTHING, each, JSON)
        self._came[name] = self._arrived[name] = time.monotonic()
        self.done["arrived"] += 1

    def _note_bound(self) -> None:
        """Whoever was bound since: it ends after its time."""
        for name in [name for name in list(self.bound) if name not in self._ends]:
            self._ends.add(name)
            since = self._came.pop(name, None)
            if since is not None:
                self.waited.append(max(0.0, self.seen_s[name] - since))
            self._at(self.seen_s[name] + self._rng.uniform(*RUN_S), lambda name=name: self._end(name))  # type: ignore[misc]

    def _end(self, name: str) -> None:
        over = {"status": {"phase": "Succeeded"}}
        self.api.ask("PATCH", f"{self.space}/{name}/status", NOTHING, over, MERGE_PATCH)
        self._over[name] = time.monotonic(), "ended"
        self.done["ended"] += 1

    def _delete(self) -> None:
        """A pod that is there goes, as by a person, and its owner makes another."""
        there = [p for p in self.api.get(self.space, ANY)["items"] if p.get("status", {}).get("phase") != "Succeeded"]
        if not there:
            return
        chosen = self._rng.choice(there)
        name = chosen["metadata"]["name"]
        self.api.ask("DELETE", f"{self.space}/{name}", NOTHING, {"gracePeriodSeconds": 0}, JSON)
        self._came.pop(name, None)
        self._ends.add(name)
        self._over[name] = time.monotonic(), "was deleted"
        again = next(each for each in self.pods if each["metadata"]["name"] == name.partition("-")[0])
        renamed = {**again, "metadata": {"name": f"{name.partition('-')[0]}-{next(self._order)}"}}
        self._arrive(renamed)
        self.done["deleted and made anew"] += 1

    def _restart(self) -> None:
        subprocess.run(self.asked.restart, shell=True, check=False, capture_output=True)
        self.done["restarts of the API server"] += 1

    def _stall(self) -> None:
        os.kill(self.asked.stall, signal.SIGSTOP)
        # A restart holds this loop up for as long as the store stands still: a thread of its own ends the stall.
        threading.Timer(self._rng.uniform(*STALL_S), os.kill, (self.asked.stall, signal.SIGCONT)).start()
        self.done["stalls of the store"] += 1

    @property
    def left(self) -> list[str]:
        """Pods that came and were not bound."""
        return sorted(self._came)

    def why_unused(self, machine: Machine, told: set[str]) -> str:
        """What became of a pod that waited when a node was bought which was never used; empty where it is surplus.

        A pod stands for one node alone: ``told`` are those that do already.
        """
        at = time.monotonic() - (datetime.now(UTC) - machine.asked_at).total_seconds()
        waited = (name for name, came in self._arrived.items() if came <= at < self.seen_s.get(name, inf) + TOLD_S)
        for name in (name for name in waited if name not in told):
            over_at, how = self._over.get(name, (inf, ""))
            if how == "was deleted" and over_at > at and self.seen_s.get(name, inf) + TOLD_S > over_at:
                told.add(name)
                return f"{name} was deleted"
            node, bound_at = self.bound.get(name, ""), self.seen_s.get(name, inf)
            for other in (other for other, where in self.bound.items() if where == node and other != name):
                left_at, left = self._over.get(other, (inf, ""))
                if at - TOLD_S < left_at <= bound_at + TOLD_S:
                    told.add(name)
                    return f"{name} went to {node}, where {other} {left}"
        return ""

    def close(self, cloud: LiveCloud) -> None:
        """Take everything away."""
        if self.asked.stall:
            os.kill(self.asked.stall, signal.SIGCONT)
        self.end()
        with suppress(PilotlightError):
            self.api.ask("DELETE", self.space, NOTHING)
        cloud.close()
        self.api.ask("DELETE", f"/api/v1/namespaces/{self.mark}", NOTHING)


def main(words: Sequence[str] | None = None) -> int:
    """One life, and what it came to."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("trace", type=Path)
    options.add_argument("--pods", type=int, default=200, help="so many come")
    options.add_argument("--minutes", type=float, default=10.0, help="over so many minutes")
    options.add_argument("--seed", type=int, default=1, help="of pods, times and faults")
    options.add_argument("--tick", type=float, default=20.0, help="seconds between ticks")
    options.add_argument("--deletions", type=int, default=20, help="pods that are deleted and made anew")
    options.add_argument("--restart", default="", help="a command that restarts the API server")
    options.add_argument("--restarts", type=int, default=3)
    options.add_argument("--stall", type=int, default=0, help="the process of the API server's store")
    options.add_argument("--stalls", type=int, default=10)
    asked = options.parse_args(words)
    if not kubeconfig():
        print("life_live: KUBECONFIG names no API server", file=sys.stderr)
        return 2
    with admitted() as site:
        life = Life(site, asked, draw(read_trace(asked.trace), asked.pods, asked.seed))
        cloud = life.begun()
        try:
            with counted(site.api, reads=True) as calls:
                life.go()
        finally:
            life.close(cloud)
    return _told(life, cloud, calls)


def _told(life: Life, cloud: LiveCloud, calls: Counter[str]) -> int:
    unused = [machine for machine in cloud.ever if machine.name not in set(life.bound.values())]
    told: set[str] = set()
    whys = {machine.name: life.why_unused(machine, told) for machine in sorted(unused, key=lambda m: m.asked_at)}
    surplus = sorted(name for name, why in whys.items() if not why)
    waited = sorted(life.waited)
    rows = (
        *life.done.items(),
        ("bound", len(waited)),
        ("not bound", len(life.left)),
        ("wait for a node, mean s", f"{sum(waited) / max(1, len(waited)):.1f}"),
        ("wait for a node, most s", f"{waited[-1] if waited else 0:.1f}"),
        ("nodes bought", len(cloud.ever)),
        ("nodes given back", len(cloud.ever) - len(cloud.machines)),
        ("nodes never used", len(unused)),
        ("of these surplus", len(surplus)),
        ("looks and deliveries that failed", len(life.errors)),
    )
    print("| what | |\n|---|---|")
    for name, value in rows:
        print(f"| {name} | {value} |")
    print("\n| calls | |\n|---|---|")
    for name, value in sorted(calls.items()):
        print(f"| {name} | {value} |")
    for text, number in Counter(life.errors).most_common(5):
        print(f"  {number} times: {text[:200]}", file=sys.stderr)
    for name, why in sorted(whys.items()):
        print(f"  never used: {name}: {why or 'surplus'}", file=sys.stderr)
    print(f"  not bound: {life.left}; surplus: {surplus}", file=sys.stderr)
    return int(bool(life.left or surplus))


if __name__ == "__main__":
    sys.exit(main())
