"""Run lengths of pods, learned from what ran: a mean for who has not begun, a median for budgets, quantiles for advice.

The mean, by class, team and number of GPUs, is all the time that such pods have run, over how many of them have ended:
what still runs counts for as long as it has run, so that long runs are not missed because they are not over. What few
pods tell leans on their class. Medians (by class, for budgets with ``hard: false``) and quantiles (of any group, for
people) are of runs that have ended.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from pilotlight.decide.money.economics import TYPICAL_RUN_S
from pilotlight.facts.capacity import Node, run_kind
from pilotlight.facts.memory import Memory, Ran
from pilotlight.facts.money.budgets import Runs
from pilotlight.facts.workload import PodShape
from pilotlight.units import Seconds, clock_seconds, moment

REMEMBERED = 200
"""When so many have ended, all that was counted of a kind counts half from then on."""
LEANS = 3
"""What a kind tells counts as much as its class's when so many of it have ended."""
MOST = 128
"""No more kinds are remembered: those of which the least is known are forgotten."""
LEAST, MOST_LENGTHS = 5, 99
"""A class has a median from so many runs on; no more than the last so many are kept of it."""
ENOUGH = 10
"""Ended runs from which on quantiles are told."""
QUANTILES = (0.5, 0.9)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def with_runs(memory: Memory, nodes: Iterable[Node], now: datetime) -> Memory:
    """The memory after a look at the pods that run. Nothing changes where none began or ended."""
    now_s = clock_seconds(now)
    running, began, begun_s = _seen(nodes, memory.ran, now_s)
    changed = {
        kind: _after(memory.ran.get(kind) or Ran(at=now_s), running[kind], began[kind], begun_s[kind], now_s)
        for kind in memory.ran.keys() | running.keys()
        if began[kind] or running[kind] != (memory.ran[kind].running if kind in memory.ran else 0)
    }
    if not changed:
        return memory
    ran = {**memory.ran, **changed}
    if len(ran) > MOST:
        ran = dict(sorted(ran.items(), key=lambda item: (-item[1].running, -item[1].ended, item[0]))[:MOST])
    return msgspec.structs.replace(memory, ran=ran)


def expected_run_s(memory: Memory, shape: PodShape, now: datetime) -> Seconds:
    """Seconds that a pod of a shape is expected to run: no less than is typical, nor more than it may.

    A few short runs say nothing of the rare long ones, which cost most on the wrong node.
    """
    now_s, own = clock_seconds(now), run_kind(shape.workload_class, shape.team, shape.gpu.count)
    class_s, class_ended = TYPICAL_RUN_S, 1.0
    for kind, ran in memory.ran.items():
        if kind.startswith(f"{shape.workload_class}/"):
            class_s += _run_s(ran, now_s)
            class_ended += ran.ended
    known = memory.ran.get(own) or Ran(at=now_s)
    mean_s = (_run_s(known, now_s) + LEANS * class_s / class_ended) / (known.ended + LEANS)
    return min(max(mean_s, TYPICAL_RUN_S), shape.max_run_s or math.inf)


def _run_s(ran: Ran, now_s: Seconds) -> Seconds:
    """Seconds that all of a kind have run by now, as far as is known."""
    return ran.run_s + ran.running * (now_s - ran.at)


def _seen(
    nodes: Iterable[Node], known: Mapping[str, Ran], now_s: Seconds
) -> tuple[Counter[str], Counter[str], Mapping[str, Seconds]]:
    """By kind: how many pods run, how many of them began since it was last counted, and what those have run."""
    runs = [run for node in nodes for run in node.runs]
    running = Counter([kind for kind, _ in runs])
    began: Counter[str] = Counter()
    begun_s: dict[str, Seconds] = defaultdict(float)
    counted = {kind: moment(ran.at) for kind, ran in known.items()}
    for kind, started_at in runs:
        if started_at is not None and started_at > counted.get(kind, NEVER):
            began[kind] += 1
            begun_s[kind] += now_s - clock_seconds(started_at)
    return running, began, begun_s


def _after(old: Ran, running: int, began: int, begun_s: Seconds, now_s: Seconds) -> Ran:
    ended = old.ended + max(0, old.running + began - running)
    share = 0.5 if ended >= REMEMBERED else 1.0
    return Ran(at=now_s, running=running, ended=ended * share, run_s=(_run_s(old, now_s) + begun_s) * share)


def learn_run_times(runs: Runs, nodes: Iterable[Node], now: datetime) -> Runs:
    """The runs after another look. One lasts from the look that first saw the pod to the first that did not."""
    here = {pod.uid: pod.workload_class for node in nodes for pod in node.gpu_pods}
    lengths = dict(runs.lengths)
    for uid, (name, since) in runs.begun.items():
        if uid not in here:
            lengths[name] = (*lengths.get(name, ()), (now - since).total_seconds())[-MOST_LENGTHS:]
    begun = {uid: runs.begun.get(uid, (name, now)) for uid, name in here.items()}
    return Runs(begun=begun, lengths=lengths)


def typical(runs: Runs) -> dict[str, Seconds]:
    """The median run of each class that was seen often enough."""
    if not runs.lengths:
        return {}
    from statistics import median

    return {name: median(known) for name, known in runs.lengths.items() if len(known) >= LEAST}


def quantiles_s(ended_s: Sequence[Seconds]) -> tuple[Seconds, ...] | None:
    """Lengths at each of ``QUANTILES`` of runs in order, the shortest first; None where too few have ended."""
    if len(ended_s) < ENOUGH:
        return None
    return tuple(ended_s[min(len(ended_s) - 1, int(share * len(ended_s)))] for share in QUANTILES)
