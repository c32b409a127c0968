"""What is counted of decisions for their figures: sums that only rise, kept in the memory that is written anyway."""

from bisect import bisect_left
from typing import Literal

import msgspec

from pilotlight.units import Seconds

BOUNDS: tuple[Seconds, ...] = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 180, 300, 600, 1800, 3600)
"""Upper bounds of what durations are sorted into; what is longer has a place of its own."""

Phase = Literal["detect", "decide", "boot", "bind", "cycle"]
"""Of a pod that a node was bought for: from its creation to the look that buys (``detect``), from that look to the
call (``decide``), from the look to the node that is ready (``boot``), and from then to the pod on it (``bind``).
``cycle`` is a whole look that made calls."""


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    """How many were seen up to each of ``BOUNDS`` and above the last (each counted once), and their seconds in all."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    total_s: Seconds = 0.0


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Durations by phase; ``calls`` by "grow/done" and the like, ``refusals`` by the kind of error; ``again`` are
    looks that were taken again for deliveries that had found the lease held."""

    durations: dict[Phase, Durations] = {}
    calls: dict[str, int] = {}
    refusals: dict[str, int] = {}
    again: int = 0

    def took(self, phase: Phase, seconds: Seconds) -> "Tally":
        """With one more. Two clocks are read: what would be below zero is zero."""
        was, took = self.durations.get(phase, Durations()), max(0.0, seconds)
        place = bisect_left(BOUNDS, took)
        counts = tuple(count + (n == place) for n, count in enumerate(was.counts))
        one = Durations(counts=counts, total_s=round(was.total_s + took, 3))
        return msgspec.structs.replace(self, durations={**self.durations, phase: one})

    def called(self, call: str, outcome: str) -> "Tally":
        """With one more call that ended so."""
        name = f"{call}/{outcome}"
        return msgspec.structs.replace(self, calls={**self.calls, name: self.calls.get(name, 0) + 1})

    def refused(self, kind: str) -> "Tally":
        """With one more purchase that was refused."""
        return msgspec.structs.replace(self, refusals={**self.refusals, kind: self.refusals.get(kind, 0) + 1})
