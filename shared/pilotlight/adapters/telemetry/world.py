"""Telemetry of a served world's GPUs."""

from math import nan
from typing import Any

import msgspec

from pilotlight.adapters.world_client import WorldClient
from pilotlight.facts.utilisation.telemetry import PAST_S, GpuSeries, Telemetry
from pilotlight.units import HOUR, Seconds

PAST_STEP_S: Seconds = HOUR / 6


class ServedTelemetry:
    """The GpuTelemetry port over a world's HTTP."""

    def __init__(self, client: WorldClient) -> None:
        self._client = client

    def read(self, start_s: float, end_s: float, step_s: Seconds) -> Telemetry:
        found = msgspec.json.decode(self._client.call("cluster/telemetry", start_s=start_s, end_s=end_s, step_s=step_s))
        return Telemetry(
            start_s=start_s, step_s=step_s, metric=found["metric"], series=tuple(map(_series, found.get("series", ())))
        )

    def past(self, end_s: float) -> Telemetry:
        return self.read(end_s - PAST_S, end_s, PAST_STEP_S)


def _series(one: dict[str, Any]) -> GpuSeries:
    """JSON has no nan: it travels as null."""
    activity, memory = ([nan if v is None else float(v) for v in one[name]] for name in ("activity", "memory"))
    return GpuSeries(pod=one["pod"], device=one["device"], activity=activity, memory=memory)
