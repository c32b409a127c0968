"""What GPUs did: one series a pod and device, sampled on one grid of time. What was not measured is nan, never 0."""

from collections.abc import Sequence

import msgspec

from pilotlight.units import Seconds


class GpuSeries(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's use of one device: ``activity`` is 0 to 1, ``memory`` MiB used; nan where nothing was measured."""

    pod: str
    """``namespace/name``."""
    device: str = ""
    activity: Sequence[float]
    memory: Sequence[float]

    @property
    def measured(self) -> int:
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

    @property
    def samples(self) -> int:
        """The length of the grid."""
        return max((len(one.activity) for one in self.series), default=0)
