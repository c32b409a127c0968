"""Workers by queue demand against a fleet that is always on, on a recorded rate of requests; KEDA's own rule beside.

Usage: python bench/replays/queue_workers.py QPS.csv[.gz] [--service 2.4] [--always-on 57] [--boot 180] [--load 60]
[--json]

QPS.csv has the columns t (seconds), kind, qps; kinds are added up, a gap lasts until the next sample of its kind or ten
minutes. Requests come as a Poisson process of that rate (seeded), wait in one queue, and take ``--service`` seconds of
one worker, exponentially distributed. A worker works a boot and a load after it was asked for; what is not asked for
any more goes once it is free. Every fleet meets the same requests. KEDA's rule: ceil(waiting and in hand / per worker),
asked every 30 s, at most the highest of the last 300 s (its cooldown and the HPA's window).
"""

import argparse
import csv
import gzip
import heapq
import json
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil
from pathlib import Path
from statistics import mean, quantiles
from typing import Any, NamedTuple

from pilotlight.decide.demand.queue_demand import REACTION_S, remember_reading, workers_in
from pilotlight.facts.demand.worker_queues import QueueHistory, QueueReading, QueueRules
from pilotlight.tools.cli.printing import console
from pilotlight.tools.report.tables.sheet import Column, Sheet

GAP_S = 600.0
KEDA_S, WINDOW_S = 30.0, 300.0
START = datetime(2026, 1, 1, tzinfo=UTC)

Asks = Callable[[float, int], int | None]
"""Workers wanted at a time with so many messages waiting and in hand; None leaves it as it is."""


class Went(NamedTuple):
    """Cost of a fleet, and the waits of its requests."""

    fleet: str
    gpu_hours: float
    mean_s: float
    p95_s: float
    p99_s: float
    most: int


def arrivals(path: Path, seed: int) -> list[float]:
    """The times of the requests."""
    rates: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for row in csv.DictReader(file):
            rates[row["kind"]].append((float(row["t"]), float(row["qps"])))
    dice, found = random.Random(seed), list[float]()
    for samples in rates.values():
        samples.sort()
        for (at, rate), (until, _) in pairwise([*samples, (samples[-1][0] + 60, 0.0)]):
            end = min(until, at + GAP_S)
            while rate > 0 and (at := at + dice.expovariate(rate)) < end:
                found.append(at)
    return sorted(found)


def ran(fleet: str, asks: Asks, every_s: float, at: list[float], work: list[float], ready_s: float) -> Went:
    """One fleet, by events: requests, workers that become ready or free, and looks."""
    queue: deque[int] = deque()
    waits: list[float] = []
    asked_at: dict[int, float] = {}
    idle: list[int] = []
    end = at[-1] + 3600
    coming = busy = doomed = names = most = 0
    gpu_s = 0.0
    events: list[tuple[float, int, str, int]] = [(t, n, "request", n) for n, t in enumerate(at)]
    events += [(t * every_s, -1, "look", 0) for t in range(int(end / every_s) + 1)]
    heapq.heapify(events)

    def serve(now: float) -> None:
        nonlocal busy
        while queue and idle:
            one, request = idle.pop(), queue.popleft()
            busy += 1
            waits.append(now - at[request])
            heapq.heappush(events, (now + work[request], one, "free", one))

    def part(one: int, now: float) -> None:
        nonlocal gpu_s
        gpu_s += now - asked_at.pop(one)

    while events:
        now, _, what, n = heapq.heappop(events)
        if what == "request":
            queue.append(n)
        elif what == "ready":
            coming -= 1
            idle.append(n)
        elif what == "free":
            busy -= 1
            if doomed:
                doomed -= 1
                part(n, now)
            else:
                idle.append(n)
        elif (wanted := asks(now, len(queue) + busy)) is not None:
            have = coming + busy - doomed + len(idle)
            for _ in range(wanted - have):
                if doomed:
                    doomed -= 1
                    continue
                names, coming = names + 1, coming + 1
                asked_at[names] = now
                heapq.heappush(events, (now + ready_s, names, "ready", names))
            for _ in range(have - wanted):
                if idle:
                    part(idle.pop(0), now)
                elif doomed < busy:
                    doomed += 1
            most = max(most, len(asked_at))
        serve(now)
    gpu_s += sum(end - began for began in asked_at.values())
    cuts = quantiles(waits, n=100)
    return Went(fleet, gpu_s / 3600, mean(waits), cuts[94], cuts[98], most)


def keda(rules: QueueRules) -> Asks:
    """KEDA's rule with the HPA's window."""
    past: deque[tuple[float, int]] = deque()

    def asks(now: float, length: int) -> int:
        past.append((now, max(rules.min, min(rules.max, ceil(length / rules.per_worker)))))
        while past[0][0] < now - WINDOW_S:
            past.popleft()
        return max(count for _, count in past)

    return asks


def ours(rules: QueueRules, ready_s: float) -> Asks:
    """``pilotlight``'s workers by queue demand, looked at each minute."""
    history = QueueHistory()

    def asks(now: float, length: int) -> int:
        nonlocal history
        moment = START + timedelta(seconds=now)
        history = remember_reading(history, QueueReading(at=moment, length=length), rules.keep)
        wanted = workers_in(rules, history, moment, REACTION_S + ready_s)
        return wanted.count if wanted else rules.min

    return asks


def fleets(args: argparse.Namespace) -> Iterator[Went]:
    """Each fleet over the same requests."""
    at = arrivals(args.file, args.seed)
    dice = random.Random(args.seed + 1)
    work = [dice.expovariate(1 / args.service) for _ in at]
    ready_s = args.boot + args.load
    rules = QueueRules(source="", per_worker=args.per_worker, min=args.least, max=args.always_on, keep=args.keep)
    yield ran("always on", lambda *_: args.always_on, 60.0, at, work, 0.0)
    yield ran("KEDA's rule, nodes by pending pods", keda(rules), KEDA_S, at, work, ready_s)
    yield ran("by queue demand, nodes ahead", ours(rules, ready_s), 60.0, at, work, ready_s)


def _arguments() -> argparse.Namespace:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("file", type=Path)
    given.add_argument("--service", type=float, default=2.4, help="seconds of a worker a request takes")
    given.add_argument("--always-on", type=int, default=57)
    given.add_argument("--per-worker", type=int, default=1)
    given.add_argument("--keep", type=float, default=900.0)
    given.add_argument("--least", type=int, default=1)
    given.add_argument("--boot", type=float, default=180.0)
    given.add_argument("--load", type=float, default=60.0)
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--json", action="store_true")
    return given.parse_args()


def main() -> None:
    """Run every fleet and print what it cost."""
    args = _arguments()
    found: list[Any] = list(fleets(args))
    if args.json:
        print(json.dumps([one._asdict() for one in found]))
        return
    table = Sheet(
        Column("fleet", "name"), *(Column(name, "figure") for name in ("GPU-hours", "mean", "P95", "P99", "most"))
    )
    for one in found:
        waits = (f"{wait:.1f} s" for wait in (one.mean_s, one.p95_s, one.p99_s))
        table.add(one.fleet, f"{one.gpu_hours:,.1f}", *waits, str(one.most))
    console().print(table)


if __name__ == "__main__":
    main()
