"""A report card of targets that a guide to GPU scheduling sets: fleet use, pods' memory and idling, and waits.

What a meter cannot know is measured by telemetry; where there is none it is not known, which is neither met nor missed.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from pilotlight.facts.memory import BOUNDS, Durations, Phase, Tally
from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.units import Seconds, human

FLEET = (Decimal("0.65"), Decimal("0.85"))
POD_MEMORY = Decimal("0.80")
POD_IDLE = Decimal("0.20")
WAITS: Sequence[tuple[str, Seconds]] = (("research", 7200), ("production", 600))
"""Targets of article S1, a guide to GPU scheduling and cost."""
SILENT = 0.05
"""A GPU that does less than this idles, as that guide's alerts have it."""
ON_THE_WAY: Sequence[Phase] = ("detect", "decide", "boot", "bind")
FEWEST = 20
"""Of fewer waits no 95th of a hundred is told."""


class Graded(NamedTuple):
    """One target: what is wanted, what there is, if it is met (None: not known), and how it was measured."""

    name: str
    wanted: str
    value: str
    met: bool | None
    how: str


class PodsUse(NamedTuple):
    """Telemetry of pods' GPUs: mean activity, memory used, and time idled, as shares; None: not measured."""

    activity: Decimal | None = None
    memory: Decimal | None = None
    idle: Decimal | None = None


def pods_use(telemetry: Telemetry, device_mib: float) -> PodsUse:
    """The means over all samples of all pods' devices that were measured."""
    active = [value for one in telemetry.series for value in one.activity if value == value]
    held = [value for one in telemetry.series for value in one.memory if value == value]
    return PodsUse(
        activity=_mean(active),
        memory=_mean([min(1.0, value / device_mib) for value in held]),
        idle=_mean([float(value < SILENT) for value in active]),
    )


def _mean(values: Sequence[float]) -> Decimal | None:
    return Decimal(repr(round(sum(values) / len(values), 6))) if values else None


def card(held: Decimal | None, seen: PodsUse, tallies: Iterable[Tally]) -> tuple[Graded, ...]:
    """The card. ``held`` is the share of paid GPU-hours that pods held; None where nothing was paid."""
    wait = longest_of_95(list(tallies))
    return (
        _fleet(held, seen.activity),
        _of_pods("memory of pods' GPUs", f"over {POD_MEMORY:.0%}", seen.memory, above=POD_MEMORY),
        _of_pods("pods that idle", f"under {POD_IDLE:.0%}", seen.idle, below=POD_IDLE),
        *(_wait(name, limit, wait) for name, limit in WAITS),
    )


def _fleet(held: Decimal | None, activity: Decimal | None) -> Graded:
    wanted = f"{FLEET[0]:.0%} to {FLEET[1]:.0%}"
    if held is None:
        return Graded("fleet use", wanted, "-", None, "no node was paid for")
    if activity is None:
        over = held < FLEET[0]
        how = "GPU-hours that pods held of those paid: at most this; telemetry says how active they were"
        return Graded("fleet use", wanted, f"at most {held:.1%}", False if over else None, how)
    value = held * activity
    how = f"{held:.1%} held x {activity:.1%} active"
    return Graded("fleet use", wanted, f"{value:.1%}", FLEET[0] <= value <= FLEET[1], how)


def _of_pods(
    name: str, wanted: str, value: Decimal | None, *, above: Decimal | None = None, below: Decimal | None = None
) -> Graded:
    if value is None:
        return Graded(name, wanted, "-", None, "not measured: name a Prometheus with --prometheus")
    met = (above is None or value > above) and (below is None or value < below)
    return Graded(name, wanted, f"{value:.1%}", met, "mean over all samples of telemetry")


def _wait(name: str, limit: Seconds, wait: Seconds | None) -> Graded:
    what, wanted = f"P95 wait, {name}", f"under {human(limit)}"
    if wait is None:
        return Graded(what, wanted, "-", None, f"fewer than {FEWEST} pods have had a node bought")
    how = "95 of 100 pods that a node was bought for: seen, decided, booted and bound, each phase's own P95 added"
    if wait == float("inf"):
        over = f"over {human(BOUNDS[-1])}"
        return Graded(what, wanted, over, False if limit <= BOUNDS[-1] else None, how)
    return Graded(what, wanted, f"at most {human(wait)}", True if wait < limit else None, how)


def longest_of_95(tallies: Sequence[Tally]) -> Seconds | None:
    """Within how long 95 of 100 pods had a node, at most; infinite above the last bound, None where few are known."""
    seen = [[tally.durations.get(phase, Durations()) for tally in tallies] for phase in ON_THE_WAY]
    counts = [[sum(at) for at in zip(*(one.counts for one in phase), strict=True)] for phase in seen]
    if not tallies or max(sum(one) for one in counts) < FEWEST:
        return None
    return sum(_p95(one) for one in counts)


def waits_of_day(tally: Tally, day: date) -> tuple[int, Seconds | None]:
    """Pods that a node was bought for and that were bound on a day: how many, and the wait of the 95th of 100."""
    bound = tally.bound if tally.day == day else {}
    pods, so_far = sum(bound.values()), 0
    for seconds, count in sorted((float(text), count) for text, count in bound.items()):
        so_far += count
        if 20 * so_far >= 19 * pods:
            return pods, seconds
    return 0, None


def _p95(counts: Sequence[int]) -> Seconds:
    """The bound below which 95 of 100 lie."""
    whole, so_far = sum(counts), 0
    for bound, count in zip((*BOUNDS, float("inf")), counts, strict=True):
        so_far += count
        if 20 * so_far >= 19 * whole:
            return bound if whole else 0.0
    return float("inf")
