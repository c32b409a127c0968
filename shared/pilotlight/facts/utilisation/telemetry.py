"""Telemetry of GPUs: one series a pod and device, on one grid of time. What was not measured is nan, never 0."""

from collections.abc import Sequence

import msgspec

from pilotlight.units import HOUR, Seconds

PAST_S: Seconds = 7 * 24 * HOUR
"""How far back the past of a telemetry goes."""


class GpuSeries(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's use of one device: ``activity`` is 0 to 1, ``memory`` MiB used; nan where nothing was measured."""

    pod: str
    """``namespace/name``."""
    device: str = ""
    container: str = ""
    part: bool = False
    """The device is a slice (MIG) of one, or shared already: its name is the whole one's, a slash, and its own."""
    activity: Sequence[float]
    memory: Sequence[float]
    watts: Sequence[float] = ()
    """The whole device's draw, also where this is a part of it; empty where nobody asked for it."""

    @property
    def whole(self) -> str:
        """The device that it is, or is a part of; empty where it is not known."""
        return self.device.rpartition("/")[0] if self.part else self.device

    @property
    def measured_samples(self) -> int:
        """Samples of its activity."""
        return sum(value == value for value in self.activity)


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """Series on one grid: sample ``n`` is of ``start_s + n * step_s`` (Unix seconds). ``metric`` says what activity is.

    Without any series telemetry is absent: nothing is known, which is neither idle nor busy.
    """

    start_s: float
    step_s: Seconds
    metric: str = ""
    series: tuple[GpuSeries, ...] = ()
    past: "Telemetry | None" = None
    """Activity of the week up to the same end, also of pods that are gone, by a step of up to an hour with the most of
    each; None where nobody asked for it.
    """

    def sparse(self) -> bool:
        """True where a third or more of the samples inside the series are missing: the grid is too fine."""
        inside = missing = 0
        for one in self.series:
            known = [n for n, value in enumerate(one.activity) if value == value]
            inside += known[-1] - known[0] + 1 if known else 0
            missing += known[-1] - known[0] + 1 - len(known) if known else 0
        return 3 * missing >= max(1, inside)

    @property
    def samples(self) -> int:
        """The length of the grid."""
        return max((len(one.activity) for one in self.series), default=0)
