"""Run lengths of pods, learned from what ran: a mean for who has not begun, a median for budgets, quantiles for advice.

One record of a cluster's runs, ``Memory.ran``, has what was seen of them by kind: class, team and number of GPUs. All
three statistics read it. The mean is all the time that pods of a kind have run, over how many of them have ended: what
still runs counts for as long as it has run, so that long runs are not missed because they are not over. What few pods
tell leans on their class. Medians (by class, for budgets with ``hard: false``) and quantiles (by kind or class, for
people) are of the last runs that have ended.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from pilotlight.decide.money.economics import TYPICAL_RUN_S
from pilotlight.facts.capacity import Node, run_kind
from pilotlight.facts.memory import Memory, Ran
from pilotlight.facts.workload import PodShape
from pilotlight.units import Seconds, clock_seconds

REMEMBERED = 200
"""When so many have ended, all that those of a kind ran counts half from then on."""
LEANS = 3
"""What a kind tells counts as much as its class's when so many of it have ended."""
MOST = 128
"""No more kinds are remembered: those of which the least is known are forgotten."""
WATCHED = 64
"""So many running pods of a kind are watched at once: others wait for one of them to end."""
MOST_LENGTHS = 32
"""Of so many ended runs of a kind, the last ones, each length is kept."""
LEAST = 5
"""A class has a median from so many runs on."""
ENOUGH = 10
"""Ended runs from which on quantiles are told."""
QUANTILES = (0.5, 0.9)
ALL = "all"
"""The group of every run."""
UNSEEN = Ran()


class Foretold(NamedTuple):
    """Seconds from the start at each of ``QUANTILES``, by which group, of how many ended runs."""

    lengths_s: tuple[Seconds, ...]
    group: str
    runs: int


def with_runs(memory: Memory, nodes: Iterable[Node], now: datetime) -> Memory:
    """The memory after a look at the pods that run. Nothing changes where none began or ended."""
    here: dict[str, list[int]] = defaultdict(list)
    for node in nodes:
        for kind, began in node.runs:
            here[kind].append(began)
    ran, now_s = memory.ran, round(clock_seconds(now))
    looked = {kind: _after(ran.get(kind, UNSEEN), here.get(kind, ()), now_s) for kind in ran.keys() | here.keys()}
    changed = {kind: after for kind, after in looked.items() if after is not ran.get(kind)}
    if not changed:
        return memory
    ran = {**ran, **changed}
    if len(ran) > MOST:
        ran = dict(sorted(ran.items(), key=lambda item: (-len(item[1].began), -item[1].ended, item[0]))[:MOST])
    return msgspec.structs.replace(memory, ran=ran)


def _after(was: Ran, here: Sequence[int], now_s: int) -> Ran:
    """The runs of a kind after a look at those ``here``. Pods are told apart by when they began: which is which of
    those that began at once makes no difference. Of new ones those that began last are watched first.
    """
    if not (was.began or here) or tuple(sorted(here)) == was.began:
        return was
    left = Counter(here)
    left.subtract(was.began)
    over = sorted((-left).elements())
    still = list((Counter(was.began) - Counter(over)).elements())
    fresh = sorted((+left).elements(), reverse=True)[: WATCHED - len(still)]
    if not (over or fresh):
        return was
    lengths = tuple(max(0, now_s - began) for began in over)
    ended = was.ended + len(lengths)
    share = 0.5 if ended >= REMEMBERED else 1.0
    return Ran(
        began=tuple(sorted(still + fresh)),
        ended=ended * share,
        ended_s=(was.ended_s + sum(lengths)) * share,
        lengths=(*was.lengths, *lengths)[-MOST_LENGTHS:],
    )


def expected_run_s(memory: Memory, shape: PodShape, now: datetime) -> Seconds:
    """Seconds that a pod of a shape is expected to run: no less than is typical, nor more than it may.

    A few short runs say nothing of the rare long ones, which cost most on the wrong node.
    """
    now_s, own = clock_seconds(now), run_kind(shape.workload_class, shape.team, shape.gpu.count)
    class_s, class_ended = TYPICAL_RUN_S, 1.0
    for ran in _of_class(memory.ran, shape.workload_class):
        class_s += _run_s(ran, now_s)
        class_ended += ran.ended
    known = memory.ran.get(own, UNSEEN)
    mean_s = (_run_s(known, now_s) + LEANS * class_s / class_ended) / (known.ended + LEANS)
    return min(max(mean_s, TYPICAL_RUN_S), shape.max_run_s or math.inf)


def median_run_s(memory: Memory) -> dict[str, Seconds]:
    """The median run of each class of which enough runs have ended."""
    lengths: dict[str, list[int]] = defaultdict(list)
    for kind, ran in memory.ran.items():
        lengths[kind.partition("/")[0]] += ran.lengths
    if not any(len(known) >= LEAST for known in lengths.values()):
        return {}
    from statistics import median

    return {name: median(known) for name, known in lengths.items() if len(known) >= LEAST}


def run_quantiles(memory: Memory, shape: PodShape, ran_s: Seconds = 0.0) -> Foretold | None:
    """Forecast of a pod's run by those of its kind, else of its class, that ended after more than ``ran_s``; None
    where too few did.
    """
    own = memory.ran.get(run_kind(shape.workload_class, shape.team, shape.gpu.count), UNSEEN)
    alike = [length for ran in _of_class(memory.ran, shape.workload_class) for length in ran.lengths]
    name, count = f"class {shape.workload_class}", shape.gpu.count
    groups = {f"{name}, team {shape.team or 'none'}, {count} GPU{'s' * (count != 1)}": own.lengths, name: alike}
    for group, lengths in groups.items():
        longer = sorted(length for length in lengths if length > ran_s)
        if (found := quantiles_s(longer)) is not None:
            return Foretold(found, group, len(longer))
    return None


def quantiles_s(ended_s: Sequence[Seconds]) -> tuple[Seconds, ...] | None:
    """Lengths at each of ``QUANTILES`` of runs in order, the shortest first; None where too few have ended."""
    if len(ended_s) < ENOUGH:
        return None
    return tuple(ended_s[min(len(ended_s) - 1, int(share * len(ended_s)))] for share in QUANTILES)


def _of_class(ran: Mapping[str, Ran], workload_class: str) -> list[Ran]:
    return [known for kind, known in ran.items() if kind.startswith(f"{workload_class}/")]


def _run_s(ran: Ran, now_s: Seconds) -> Seconds:
    """Seconds that all of a kind have run by now, as far as is known."""
    return ran.ended_s + len(ran.began) * now_s - sum(ran.began)
