"""Share of time in which a GPU's engine was busy: NVML's GPM metrics, which Hopper and later GPUs have.

NVML's utilisation is the last sample's, a fraction of a second: a job that works every other half second shows 0 or 95
by the moment of the scrape. GPM counts between two samples of the caller's own, from one look to the next.
"""

from threading import Lock
from time import monotonic, sleep
from typing import Any

from pilotlight.units import Seconds

GRAPHICS_UTIL = 1
"""NVML_GPM_METRIC_GRAPHICS_UTIL: percent of time in which any engine for compute or graphics was active."""
APART_S: Seconds = 0.1
"""NVML asks for at least so much between two samples."""


class EngineActivity:
    """Samples of this machine's GPUs, the last one of each."""

    def __init__(self, nvml: Any) -> None:
        self._nvml, self._lock = nvml, Lock()
        self._last: dict[str, tuple[Any, float]] = {}

    def since_last(self, handle: Any, uuid: str) -> float | None:
        """Ratio of the time since the last look, 0 to 1; None at a GPU's first look, and where it has no GPM."""
        with self._lock:
            before = self._last.get(uuid)
            if before and (early := before[1] + APART_S - monotonic()) > 0:
                sleep(early)
            now = self._sample(handle)
            if now is None:
                return None
            self._last[uuid] = (now, monotonic())
            if before is None:
                return None
            try:
                return self._between(before[0], now)
            finally:
                self._nvml.nvmlGpmSampleFree(before[0])

    def _sample(self, handle: Any) -> Any:
        try:
            if not self._nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
                return None
            taken = self._nvml.nvmlGpmSampleAlloc()
        except self._nvml.NVMLError:
            return None
        try:
            return self._nvml.nvmlGpmSampleGet(handle, taken)
        except self._nvml.NVMLError:
            self._nvml.nvmlGpmSampleFree(taken)
            return None

    def _between(self, before: Any, after: Any) -> float | None:
        asked = self._nvml.c_nvmlGpmMetricsGet_t()
        asked.version, asked.numMetrics = self._nvml.NVML_GPM_METRICS_GET_VERSION, 1
        asked.sample1, asked.sample2 = before, after
        asked.metrics[0].metricId = GRAPHICS_UTIL
        try:
            self._nvml.nvmlGpmMetricsGet(asked)
        except self._nvml.NVMLError:
            return None
        told = asked.metrics[0]
        return told.value / 100 if told.nvmlReturn == self._nvml.NVML_SUCCESS else None
