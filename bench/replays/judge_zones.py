"""A stranger's reading of a log against recorded availability: what was launched where, and what was taken when.

It shares no code with the world. One offset for all zones, drawn from the seed as docs/replay.md says; every tick of
every file is looked at by itself.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from typing import Any

NOTICE_S, NEAR_S = 120.0, 1e-3


@dataclass(frozen=True)
class Zone:
    """One file: its values tick by tick."""

    name: str
    gap_s: float
    values: Sequence[int]
    limitless: bool

    @staticmethod
    def of(name: str, gap_s: float, runs: Iterable[tuple[int, int]], nodes: int) -> "Zone":
        """A zone as its file says it."""
        return Zone(name, gap_s, [value for value, ticks in runs for _ in range(ticks)], nodes <= 1)

    @staticmethod
    def read(path: Path) -> "Zone":
        """A file."""
        told = json.loads(path.read_text())
        return Zone.of(told["zone"], told["gap_s"], told["runs"], told.get("nodes", 1))

    @property
    def span_s(self) -> float:
        """Its length in seconds."""
        return float(self.gap_s * len(self.values))

    def room(self, at_s: float) -> float:
        """Number of nodes of a type that there is room for, at a second of the file's own time, wrapped."""
        value = self.values[int(at_s // self.gap_s) % len(self.values)]
        return float("inf") if value and self.limitless else float(value)


def offset_s(zones: Sequence[Zone], seed: int) -> float:
    """Offset that a run of this seed adds to its own time."""
    return Random(f"{seed}/spot-trace").uniform(0.0, max(zone.span_s for zone in zones))


def wrong(records: Iterable[Mapping[str, Any]], zones: Sequence[Zone], seed: int) -> list[str]:
    """Faults of a log: launches that its zones forbid, losses that they demand and it lacks, a line each."""
    records, offset, out = list(records), offset_s(zones, seed), []
    ready = {r["node"]: r["t"] for r in records if r["event"] == "ready"}
    ends = {r["node"]: (r["t"], r["reason"]) for r in records if r["event"] == "terminate"}
    last_s = records[-1]["t"] if records else 0.0
    for zone in zones:
        born: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for r in records:
            if r["event"] == "launch" and r["capacity_type"] == "spot" and r.get("zone") == zone.name:
                born[r["type"]].append(r)
        for alike in born.values():
            out += _crowded(alike, zone, offset, ends)
            out += _taken(alike, zone, offset, last_s, ready, ends)
    return out


def _crowded(
    alike: Sequence[Mapping[str, Any]], zone: Zone, offset: float, ends: Mapping[str, tuple[float, str]]
) -> list[str]:
    """Launches of one type in one zone, in their order, beyond the room there."""
    out, alive = [], list[float]()
    for r in alike:
        while alive and alive[0] <= r["t"] - NEAR_S:
            heappop(alive)
        if len(alive) + 1 > zone.room(offset + r["t"] + NEAR_S):
            out.append(f"{r['node']}: launched in {zone.name} at {r['t']:.0f} s, where there was no room")
        heappush(alive, ends[r["node"]][0])
    return out


def _taken(
    alike: Sequence[Mapping[str, Any]],
    zone: Zone,
    offset: float,
    last_s: float,
    ready: Mapping[str, float],
    ends: Mapping[str, tuple[float, str]],
) -> list[str]:
    """Nodes of one type in one zone, in the order of their launches, against every tick of the run."""
    out, due = [], {}
    born, here = deque(alike), list[Mapping[str, Any]]()
    tick_s = -(offset % zone.gap_s) + zone.gap_s
    while tick_s <= last_s + zone.gap_s:
        room = zone.room(offset + tick_s + NEAR_S)
        while born and born[0]["t"] < tick_s - NEAR_S:
            here.append(born.popleft())
        here = [r for r in here if ends[r["node"]][0] > tick_s - NEAR_S]
        stay = int(min(room, len(here)))
        for r in here[stay:]:
            due[r["node"]] = tick_s + (NOTICE_S if ready.get(r["node"], float("inf")) < tick_s + NEAR_S else 0.0)
        here = here[:stay]
        tick_s += zone.gap_s
    for r in alike:
        at_s, reason = ends[r["node"]]
        goes_s = due.get(r["node"])
        if reason == "reclaimed" and (goes_s is None or abs(at_s - goes_s) > NEAR_S):
            out.append(f"{r['node']}: taken from {zone.name} at {at_s:.0f} s; by the file at {goes_s}")
        if reason != "reclaimed" and goes_s is not None and at_s > goes_s + NEAR_S:
            out.append(f"{r['node']}: still there at {at_s:.0f} s; {zone.name} was to take it at {goes_s:.0f} s")
    return out


def judge_zones(log: Path, zones: Sequence[Zone], seed: int) -> list[str]:
    """Faults of a log file."""
    with log.open() as lines:
        return wrong(map(json.loads, lines), zones, seed)
