"""GPUs that are held and not used, by owner, in dollars an hour, with the evidence.

Three kinds, which overlap and are told apart: idle pods; replicas beyond what a service was asked for; devices that
pods could share. What goes first is an idle pod, then a replica; sharing is what the rest could save instead.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import isnan
from typing import NamedTuple

from pilotlight.decide.made_by import made_by
from pilotlight.decide.use.idle_pods import IdlePod, idle_pods
from pilotlight.decide.use.replicas import Replicas, replicas
from pilotlight.decide.use.sharing import Shared, shared
from pilotlight.facts.telemetry import GpuSeries, Telemetry
from pilotlight.units import Seconds, UsdPerHour

ALIKE = 3
"""So many pods of an owner, at least, are taken for replicas of one service."""
WHOLE = 0.98
"""A pod that was measured in this share of the samples was there throughout."""


class Waste(NamedTuple):
    """An owner's GPUs now, its mean activity, and what could go."""

    owner: str
    held: int
    activity: float
    usd_per_hour: UsdPerHour
    idle: tuple[IdlePod, ...]
    idle_usd: UsdPerHour
    replicas: Replicas | None
    spare: int
    """Replicas that run now beyond the advice, idle ones apart."""
    spare_usd: UsdPerHour
    devices: tuple[Shared, ...]
    """Those that would hold the pods which were there throughout."""
    shareable: int
    sharing_usd: UsdPerHour


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
    advice = replicas(demand, running, telemetry.step_s, lead_s) if held >= ALIKE else None
    spare = max(0, held - len(idle) - advice.advised[-1]) if advice else 0
    whole = [s for s in series if s.measured >= WHOLE * telemetry.samples and any(not isnan(v) for v in s.memory)]
    devices = tuple(shared(whole, device_mib)) if len(whole) > 1 else ()
    saved = len(whole) - len(devices) if devices else 0
    return Waste(
        owner=owner,
        held=held,
        activity=sum(demand) / seen if seen else 0.0,
        usd_per_hour=price * held,
        idle=idle,
        idle_usd=price * len(idle),
        replicas=advice,
        spare=spare,
        spare_usd=price * spare,
        devices=devices,
        shareable=saved,
        sharing_usd=price * saved,
    )
