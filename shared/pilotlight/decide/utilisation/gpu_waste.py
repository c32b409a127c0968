"""GPUs that are held and not used, by owner, in dollars an hour, with the evidence.

A device that several pods hold costs once: each has an equal part of its price.

Kinds that add up, each of what the one before leaves: idle pods; devices of a working pod that do nothing (requests
beyond use); replicas beyond what a service was asked for; the rest. Beside them: what each pod of the last two that has
a device to itself needs of it, by which a person may let them share.

The fewest replicas of a service that would do are those for its demand lately, with room, a boot and a model's load
ahead. Demand is the activity of all its replicas together: 1 is one GPU at full work. At every moment only what was
measured until then is used. The advice is the most of the last hours with room for more; with little history there is
more room.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, isnan
from typing import NamedTuple

from pilotlight.decide.demand.classify import made_by
from pilotlight.decide.utilisation.idle_pods import IdlePod, idle_pods
from pilotlight.decide.utilisation.shared_devices import holders
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.units import HOUR, Seconds, UsdPerHour

ALIKE = 3
"""So many pods of an owner, at least, are taken for replicas of one service."""
WHOLE = 0.98
"""A pod that was measured in this share of the samples was there throughout."""

WINDOW_S: Seconds = 4 * HOUR
"""What was asked for within so long may be asked for again before a replica could come."""

FULL = 0.95
REPLICA_ROOM, ROOM_EARLY = 1.2, 1.6
"""Times the most that was seen; while less than the window is known, more."""

KNOWN_S: Seconds = HOUR / 2
"""With less history than this there is no advice: all that run stay."""


class Slice(NamedTuple):
    """Most memory that a pod took of its device, and its activity: the 99th percentile, and the mean."""

    pod: str
    peak_mib: float
    activity: float
    container: str = ""
    device: str = ""
    mean: float = 0.0


class Replicas(NamedTuple):
    """The advice for every sample, what ran, and how it would have gone."""

    advised: tuple[int, ...]
    running: tuple[int, ...]
    mean: float
    mean_running: float
    over: float
    """The share of samples with demand over 95 % of what the advice had running."""


class Waste(NamedTuple):
    """An owner's GPUs now, its mean activity, and what could go."""

    owner: str  # Its name, as made from its pods'.
    held: float
    """Devices; its part of those that it shares."""
    running: int
    """Its pods, once for each of their devices or parts of one."""
    activity: float  # The mean of its devices, from 0 to 1, each counted by the part that is held.
    usd_per_hour: UsdPerHour  # Dollars an hour of all that it holds.
    idle: tuple[IdlePod, ...]  # Pods that do nothing.
    idle_usd: UsdPerHour  # Dollars an hour of these.
    beyond: tuple[IdlePod, ...]
    """Devices that do nothing, of pods that work on others."""
    beyond_usd: UsdPerHour  # Dollars an hour of these.
    watts: float | None
    """The mean draw of a device of those two while it was silent; None where no sample of it is known."""
    replicas: Replicas | None  # Advice on how many would do; None for too few to tell.
    spare: int
    """Replicas that run now beyond the advice, idle ones apart."""
    spare_usd: UsdPerHour  # Dollars an hour of these.
    slices: tuple[Slice, ...]
    """Of its pods that were there throughout, each with one whole device to itself, and are not idle."""

    @property
    def rest_usd(self) -> UsdPerHour:
        """Dollars an hour of what is neither idle, beyond use nor spare."""
        return self.usd_per_hour - self.idle_usd - self.beyond_usd - self.spare_usd


def waste(
    telemetry: Telemetry, price: UsdPerHour, lead_s: Seconds, owner: Callable[[str], str] = made_by
) -> list[Waste]:
    """Each owner's, dearest first. ``price``: of a GPU's hour; ``lead_s``: boot and load of a model."""
    owners: dict[str, list[_Held]] = defaultdict(list)
    for one, counts in zip(telemetry.series, holders(telemetry), strict=True):
        owners[owner(one.pod)].append(_Held(one, counts))
    groups = {one.series.pod: name for name, members in owners.items() for one in members}
    groups |= {one.pod: owner(one.pod) for one in (telemetry.past or telemetry).series}
    idle: dict[str, list[IdlePod]] = defaultdict(list)
    for found in idle_pods(telemetry, groups):
        idle[groups[found.pod]].append(found)
    rows = [_row(telemetry, n, o, tuple(idle[n]), price, lead_s) for n, o in owners.items()]
    return sorted((row for row in rows if row.held), key=lambda row: (-row.usd_per_hour, row.owner))


class _Held(NamedTuple):
    """A pod on a device, and by how many that was held in each sample."""

    series: GpuSeries
    holders: Sequence[int]

    def part(self, n: int) -> Fraction:
        """Of the device; nothing where it was not measured."""
        return Fraction(1, self.holders[n]) if self.holders and self.holders[n] else Fraction(0)

    @property
    def key(self) -> tuple[str, str]:
        return self.series.pod, self.series.device


def _row(
    telemetry: Telemetry,
    owner: str,
    members: Sequence[_Held],
    idle: tuple[IdlePod, ...],
    price: UsdPerHour,
    lead_s: Seconds,
) -> Waste:
    known = [[v for one in members if not isnan(v := one.series.activity[n])] for n in range(telemetry.samples)]
    running, demand = [len(each) for each in known], [sum(each) for each in known]
    parts = {one.key: one.part(-1) for one in members}
    held = sum(parts.values(), Fraction(0))
    idle, beyond = _apart(members, idle)
    idle_part, beyond_part = (
        sum((parts[one.pod, one.device] for one in those), Fraction(0)) for those in (idle, beyond)
    )
    now = running[-1] if running else 0
    others = now - len(idle) - len(beyond)
    advice = replicas(demand, running, telemetry.step_s, lead_s) if now >= ALIKE else None
    spare = max(0, others - advice.advised[-1]) if advice else 0
    spare_part = (held - idle_part - beyond_part) * Fraction(spare, max(1, others))
    silent = {one.pod for one in idle}
    alone = (one for one in _alone(members, telemetry.samples) if one.pod not in silent)
    return Waste(
        owner=owner,
        held=float(held),
        running=now,
        activity=_activity(members),
        usd_per_hour=_usd(price, held),
        idle=idle,
        idle_usd=_usd(price, idle_part),
        beyond=beyond,
        beyond_usd=_usd(price, beyond_part),
        watts=_watts(members, (*idle, *beyond), telemetry.step_s),
        replicas=advice,
        spare=spare,
        spare_usd=_usd(price, spare_part),
        slices=tuple(Slice(one.pod, *peaks(one), one.container, one.device, _mean(one)) for one in alone),
    )


def _apart(members: Sequence[_Held], idle: Sequence[IdlePod]) -> tuple[tuple[IdlePod, ...], tuple[IdlePod, ...]]:
    """Idle pods; and idle devices of pods that work on others."""
    there = Counter(one.series.pod for one in members if one.series.activity and not isnan(one.series.activity[-1]))
    working = there - Counter(one.pod for one in idle)
    return tuple(one for one in idle if one.pod not in working), tuple(one for one in idle if one.pod in working)


def _usd(price: UsdPerHour, devices: Fraction) -> UsdPerHour:
    return price * devices.numerator / devices.denominator


def _activity(members: Sequence[_Held]) -> float:
    """The mean of the devices held, each once."""
    both = [
        (value, 1 / count)
        for one in members
        for value, count in zip(one.series.activity, one.holders, strict=True)
        if count
    ]
    weight = sum(part for _, part in both)
    return sum(value * part for value, part in both) / weight if weight else 0.0


def _watts(members: Sequence[_Held], silent: Sequence[IdlePod], step_s: Seconds) -> float | None:
    """A device tells its draw as a whole: it is a pod's where it holds all of it and nobody else any."""
    quiet = {(one.pod, one.device): round(one.silent_s / step_s) for one in silent}
    known = [
        watts
        for one in members
        if one.key in quiet and not one.series.part
        for watts, count in list(zip(one.series.watts, one.holders, strict=False))[-quiet[one.key] :]
        if count == 1 and watts > 0
    ]
    return sum(known) / len(known) if known else None


def _alone(members: Sequence[_Held], samples: int) -> list[GpuSeries]:
    """Pods that were there throughout, each with one whole device to itself."""
    each = Counter(one.series.pod for one in members)
    return [
        one.series
        for one in members
        if one.series.measured_samples >= WHOLE * samples
        and any(not isnan(value) for value in one.series.memory)
        and each[one.series.pod] == 1
        and not one.series.part
        and max(one.holders, default=0) == 1
    ]


def peaks(one: GpuSeries) -> tuple[float, float]:
    """The most memory, and the 99th percentile of activity, of what was measured."""
    known = sorted(value for value in one.activity if not isnan(value))
    return max(v for v in one.memory if not isnan(v)), known[min(len(known) - 1, int(0.99 * len(known)))]


def _mean(one: GpuSeries) -> float:
    known = [value for value in one.activity if not isnan(value)]
    return sum(known) / len(known)


def replicas(demand: Sequence[float], running: Sequence[int], step_s: Seconds, lead_s: Seconds) -> Replicas:
    """``lead_s``: boot and load of the model. Advice never exceeds what ran."""
    lead = ceil(lead_s / step_s)
    wanted = _wanted(demand, step_s)
    advised = []
    for at, now in enumerate(running):
        asked = wanted[at - lead] if at >= lead else None
        advised.append(now if asked is None else min(now, asked))
    over = sum(need > FULL * given for need, given in zip(demand, advised, strict=True))
    count = max(1, len(demand))
    return Replicas(tuple(advised), tuple(running), sum(advised) / count, sum(running) / count, over / count)


def _wanted(demand: Sequence[float], step_s: Seconds) -> list[int | None]:
    """Replicas for the most of the window that ends at each sample; None where too little is known."""
    window, known = max(1, int(WINDOW_S / step_s)), int(KNOWN_S / step_s)
    most: deque[int] = deque()
    found: list[int | None] = []
    for at, need in enumerate(demand):
        while most and demand[most[-1]] <= need:
            most.pop()
        most.append(at)
        if most[0] <= at - window:
            most.popleft()
        room = REPLICA_ROOM if at >= window else ROOM_EARLY
        found.append(max(1, ceil(room * demand[most[0]] / FULL)) if at >= known else None)
    return found
