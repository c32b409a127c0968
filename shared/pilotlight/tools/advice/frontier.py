"""Dollars against waits: what a policy pays at each mean wait that its prices of waiting lead to."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from pilotlight.units import Seconds

TOLERANCE = 1.01
"""A peer beats a curve whose dollars are more than this many times its own at no longer a wait."""


class Run(NamedTuple):
    """One run's outcome: the mean wait of its jobs, and its dollars."""

    wait_s: Seconds
    usd: float


def efficient_runs(runs: Iterable[Run]) -> list[Run]:
    """The runs than which none is both as quick and as cheap, the quickest first: dollars fall as waits grow."""
    kept: list[Run] = []
    for run in sorted(set(runs)):
        if not kept or run.usd < kept[-1].usd:
            kept.append(run)
    return kept


def usd_at(curve: Sequence[Run], wait_s: Seconds) -> float:
    """Dollars of an undominated curve at a wait: linear between its runs, beyond the last one that one's."""
    if wait_s <= curve[0].wait_s:
        return curve[0].usd
    for a, b in pairwise(curve):
        if wait_s <= b.wait_s:
            return a.usd + (b.usd - a.usd) * (wait_s - a.wait_s) / (b.wait_s - a.wait_s)
    return curve[-1].usd


def ahead(curve: Sequence[Run], peer: Run) -> float:
    """A curve's dollars at a peer's wait as a multiple of the peer's: over ``TOLERANCE`` the peer beats it."""
    return usd_at(curve, peer.wait_s) / peer.usd if peer.usd else math.inf


def knee(curve: Sequence[Run]) -> Run:
    """Where a curve bends most: what lies furthest below the straight line between its ends, each axis to its span."""
    first, last = curve[0], curve[-1]
    if len(curve) < 3:
        return last

    def below(run: Run) -> float:
        across = (run.wait_s - first.wait_s) / (last.wait_s - first.wait_s)
        down = (first.usd - run.usd) / (first.usd - last.usd)
        return down - across

    return max(curve, key=below)


def cheapest_within(curve: Sequence[Run], wait_s: Seconds) -> Run | None:
    """The cheapest run whose mean wait is no longer than this."""
    return min((run for run in curve if run.wait_s <= wait_s), key=lambda run: run.usd, default=None)
