"""GPUs that are held and not used, by owner, in dollars an hour, with the evidence.

Kinds that add up, each of what the one before leaves: idle pods; devices of a working pod that do nothing (requests
beyond use); replicas beyond what a service was asked for; the rest. Beside them, instead of the last two: devices that
pods could share, and what of each device lies beyond the slice that a pod would need.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from math import ceil, isnan
from typing import NamedTuple

from pilotlight.decide.made_by import made_by
from pilotlight.decide.use.idle_pods import IdlePod, idle_pods
from pilotlight.decide.use.mig import ROOM
from pilotlight.decide.use.replicas import Replicas, replicas
from pilotlight.decide.use.sharing import Shared, shared
from pilotlight.facts.telemetry import GpuSeries, Telemetry
from pilotlight.units import Seconds, UsdPerHour

ALIKE = 3
"""So many pods of an owner, at least, are taken for replicas of one service."""
WHOLE = 0.98
"""A pod that was measured in this share of the samples was there throughout."""


EIGHTHS, SEVENTHS = 8, 7
"""Parts of a device's memory and of its work, as MIG cuts them."""


class Slice(NamedTuple):
    """What a pod would need of a device: its most memory x 1.2 in eighths, its P99 of activity in sevenths."""

    pod: str
    peak_mib: float
    activity: float
    part: float
    """Of the device, by the larger of the two."""
    container: str = ""


class Waste(NamedTuple):
    """An owner's GPUs now, its mean activity, and what could go."""

    owner: str
    held: int
    activity: float
    usd_per_hour: UsdPerHour
    idle: tuple[IdlePod, ...]
    idle_usd: UsdPerHour
    beyond: tuple[IdlePod, ...]
    """Devices that do nothing, of pods that work on others."""
    beyond_usd: UsdPerHour
    replicas: Replicas | None
    spare: int
    """Replicas that run now beyond the advice, idle ones apart."""
    spare_usd: UsdPerHour
    devices: tuple[Shared, ...]
    """Those that would hold the pods which were there throughout, each with one whole device."""
    shareable: int
    sharing_usd: UsdPerHour
    slices: tuple[Slice, ...]
    slices_usd: UsdPerHour

    @property
    def rest_usd(self) -> UsdPerHour:
        """What is neither idle, beyond use nor spare."""
        return self.usd_per_hour - self.idle_usd - self.beyond_usd - self.spare_usd


def waste(
    telemetry: Telemetry, price: UsdPerHour, device_mib: float, lead_s: Seconds, owner: Callable[[str], str] = made_by
) -> list[Waste]:
    """Each owner's, dearest first. ``price``: of a GPU's hour; ``lead_s``: boot and load of a model."""
    owners: dict[str, list[GpuSeries]] = defaultdict(list)
    for one in telemetry.series:
        owners[owner(one.pod)].append(one)
    groups = {one.pod: name for name, members in owners.items() for one in members}
    idle: dict[str, list[IdlePod]] = defaultdict(list)
    for found in idle_pods(telemetry, groups):
        idle[groups[found.pod]].append(found)
    rows = [_row(telemetry, n, o, tuple(idle[n]), price, device_mib, lead_s) for n, o in owners.items()]
    return sorted((row for row in rows if row.held), key=lambda row: (-row.usd_per_hour, row.owner))


def _row(
    telemetry: Telemetry,
    owner: str,
    series: Sequence[GpuSeries],
    idle: tuple[IdlePod, ...],
    price: UsdPerHour,
    device_mib: float,
    lead_s: Seconds,
) -> Waste:
    running = [sum(not isnan(one.activity[n]) for one in series) for n in range(telemetry.samples)]
    demand = [sum(v for one in series if not isnan(v := one.activity[n])) for n in range(telemetry.samples)]
    held, seen = running[-1], sum(running)
    by_pod = Counter(one.pod for one in series if one.activity and not isnan(one.activity[-1]))
    silent = Counter(one.pod for one in idle)
    working = {pod for pod, count in by_pod.items() if count > silent[pod]}
    beyond = tuple(one for one in idle if one.pod in working)
    idle = tuple(one for one in idle if one.pod not in working)
    advice = replicas(demand, running, telemetry.step_s, lead_s) if held >= ALIKE else None
    spare = max(0, held - len(idle) - len(beyond) - advice.advised[-1]) if advice else 0
    whole = [s for s in series if s.measured >= WHOLE * telemetry.samples and any(not isnan(v) for v in s.memory)]
    each = Counter(one.pod for one in series)
    alone = [one for one in whole if each[one.pod] == 1 and not one.part]
    devices = tuple(shared(alone, device_mib)) if len(alone) > 1 else ()
    saved = len(alone) - len(devices) if devices else 0
    slices = tuple(_slice(one, device_mib) for one in alone)
    return Waste(
        owner=owner,
        held=held,
        activity=sum(demand) / seen if seen else 0.0,
        usd_per_hour=price * held,
        idle=idle,
        idle_usd=price * len(idle),
        beyond=beyond,
        beyond_usd=price * len(beyond),
        replicas=advice,
        spare=spare,
        spare_usd=price * spare,
        devices=devices,
        shareable=saved,
        sharing_usd=price * saved,
        slices=slices,
        slices_usd=price * Decimal(repr(round(sum(1 - one.part for one in slices), 6))),
    )


def _slice(one: GpuSeries, device_mib: float) -> Slice:
    peak, most = peaks(one)
    memory = ceil(ROOM * peak / device_mib * EIGHTHS) / EIGHTHS
    return Slice(one.pod, peak, most, min(1.0, max(memory, ceil(most * SEVENTHS) / SEVENTHS)), one.container)


def peaks(one: GpuSeries) -> tuple[float, float]:
    """The most memory, and the 99th percentile of activity, of what was measured."""
    known = sorted(value for value in one.activity if not isnan(value))
    return max(v for v in one.memory if not isnan(v)), known[min(len(known) - 1, int(0.99 * len(known)))]
