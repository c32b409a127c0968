"""Which pods could share a device: their peaks of memory at once, and what they did together, never their means.

Pods fit on a device when their own peaks of memory, all at once, leave some of it: that two did not peak together in
the past says little of tomorrow, and memory that runs out ends them both. Activity may pass the device in hardly any
sample, for then they only wait for each other: there the joint past counts. Pods are taken by size, each to the device
that it fills most (best fit).
"""

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

from pilotlight.facts.utilisation.telemetry import GpuSeries

MEMORY, ACTIVITY = 0.93, 0.95
MOST_OVER = 0.0005
"""In so small a share of samples may joint activity pass ``ACTIVITY``."""
MOST_PODS = 7
"""Pods on a device: MIG has seven slices at most, and more clients of one device get in each other's way."""


class Shared(NamedTuple):
    """A device with its pods: their own peaks of memory together (MiB), and their joint activity (1 is the device)."""

    pods: tuple[str, ...]
    peaks_mib: float
    joint_peak_mib: float
    joint_activity: float
    over: float
    """The share of samples in which activity passed the whole device."""


class _Device(NamedTuple):
    pods: tuple[str, ...]
    peaks: float
    memory: list[float]
    activity: list[float]


def share_devices(series: Sequence[GpuSeries], capacity_mib: float) -> list[Shared]:
    """Devices of ``capacity_mib`` that hold all of ``series``, on one grid of time.

    What was not measured counts as nothing used: give only pods that were measured throughout.
    """
    devices: list[_Device] = []
    for one in sorted(series, key=lambda s: (-_peak(s.memory), s.pod)):
        fitting = [
            (device.peaks, n)
            for n, device in enumerate(devices)
            if device.peaks + _peak(one.memory) <= MEMORY * capacity_mib and len(device.pods) < MOST_PODS
        ]
        for _, n in sorted(fitting, reverse=True):
            both = _joined(devices[n], one)
            if _over(both.activity, ACTIVITY) <= MOST_OVER:
                devices[n] = both
                break
        else:
            devices.append(_joined(_Device((), 0.0, [], []), one))
    return [Shared(d.pods, d.peaks, _peak(d.memory), _peak(d.activity), _over(d.activity, 1.0)) for d in devices]


def _joined(device: _Device, one: GpuSeries) -> _Device:
    memory, activity = _sum(device.memory, one.memory), _sum(device.activity, one.activity)
    return _Device((*device.pods, one.pod), device.peaks + _peak(one.memory), memory, activity)


def _sum(so_far: Sequence[float], values: Sequence[float]) -> list[float]:
    known = [0.0 if isnan(value) else value for value in values]
    return [a + b for a, b in zip(so_far, known, strict=True)] if so_far else known


def _over(values: Sequence[float], most: float) -> float:
    return sum(value > most for value in values) / len(values) if values else 0.0


def _peak(values: Sequence[float]) -> float:
    return max((value for value in values if not isnan(value)), default=0.0)
