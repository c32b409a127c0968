"""Ways for an owner's pods to share devices: by MIG where slices fit, else by MPS, else by time-slicing; or not at all.

Serving keeps its P99: it shares by slices of hardware, or by MPS or HAMi where what they do at once stays under half a
device; never by time-slicing or KAI, which have no isolation and promise no turn (rules of articles 001 and 003).
Shares of the device plugin are alike, and the scheduler puts any pods together: so many share that the largest of them
fit at once, and the work of the busiest in the mean: pods that work all the time would only take longer. KAI and HAMi
count a part of its own for each pod; they are told where they save, and taken where they are named, for they need a
scheduler of their own. Pods that one object makes ask alike: for the most that one of them does.

Sources, read 2026-11-28: KAI-Scheduler docs/gpu-sharing (annotation gpu-fraction; memory is not enforced); HAMi
docs/userguide/nvidia-device (nvidia.com/gpumem in MiB, nvidia.com/gpucores in percent; gpumem is enforced).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from math import ceil
from typing import Literal, NamedTuple

from pilotlight.decide.demand.classify import made_by
from pilotlight.decide.utilisation.gpu_waste import Slice, Waste
from pilotlight.tools.advice.mig_profiles import ROOM, Model, Profile, lie, smallest
from pilotlight.units import UsdPerHour

SharingWay = Literal["mig", "mps", "time-slicing", "kai", "hami", "none"]
SAFEST: tuple[SharingWay, ...] = ("mig", "mps", "time-slicing")
"""By NVIDIA's own operator; the first that saves is taken."""
WAYS: tuple[SharingWay, ...] = (*SAFEST, "kai", "hami")
MEMORY = 0.93
"""Of a device: shares leave some of it."""
MOST_PODS = 7
"""Pods on a device: MIG has seven slices at most, and more clients of one device get in each other's way."""
CALM = 0.5
"""Of a device: clients that do less at once hardly meet."""
RISKS: dict[SharingWay, str] = {
    "mig": "nodes are drained to be cut; a pod that outgrows its slice runs out of memory, alone",
    "mps": "a fault of one client ends all clients of the device; each may take an equal part of its memory",
    "time-slicing": "no isolation: memory is shared by trust, and no turn is promised",
    "kai": "needs KAI's scheduler; no isolation: memory is shared by trust, and no turn is promised",
    "hami": "needs HAMi's device plugin and scheduler; a pod that outgrows its part runs out of memory, alone",
    "none": "",
}


class SharingAdvice(NamedTuple):
    """Advice on an owner's pods: how they would share, on how many devices, and what is left to know."""

    kind: SharingWay
    owner: str
    pods: int
    devices: int
    layouts: tuple[tuple[tuple[str, ...], int], ...]
    """MIG: profiles of a device, and how many devices are cut so."""
    resources: tuple[tuple[Slice, str], ...]
    """Each pod, and what it would ask for instead of a whole GPU."""
    replicas: int
    """MPS and time-slicing: shares of a device."""
    why: str
    risk: str

    def saved_usd(self, price: UsdPerHour) -> UsdPerHour:
        """Dollars an hour of the devices that would be free, at a device's price."""
        return price * Decimal(self.pods - self.devices)


class Kept(NamedTuple):
    """Owner's advice, and all ways that reach anything."""

    advice: SharingAdvice
    ways: tuple[SharingAdvice, ...]


def advise(row: Waste, model: Model | None, capacity_mib: float, *, serving: bool, only: str = "") -> SharingAdvice:
    """The safest way that saves a device; ``only`` names the one way that may be taken."""
    ways = (only,) if only else SAFEST
    found = (one for one in saving_ways(row, model, capacity_mib, serving=serving) if one.kind in ways)
    why = "no layout of slices, and no shares, would save a device and keep what its class needs"
    if not capacity_mib:
        why = "the memory of its devices is not known: name it by --device-gib"
    none = SharingAdvice("none", row.owner, len(row.slices), len(row.slices), (), (), 1, why, RISKS["none"])
    return next(found, none)


def saving_ways(row: Waste, model: Model | None, capacity_mib: float, *, serving: bool) -> list[SharingAdvice]:
    """Each of ``WAYS`` that saves a device of so much memory; none where that is not known (0)."""
    row = row._replace(slices=_alike(row.slices))
    tried: dict[SharingWay, Callable[[], SharingAdvice | None]] = {
        "mig": lambda: _cut(row, model),
        "mps": lambda: _shares(row, "mps", capacity_mib, serving),
        "time-slicing": lambda: None if serving else _shares(row, "time-slicing", capacity_mib, serving),
        "kai": lambda: None if serving else _parts(row, "kai", capacity_mib, serving),
        "hami": lambda: _parts(row, "hami", capacity_mib, serving),
    }
    found = [tried[kind]() for kind in WAYS] if row.slices and capacity_mib else []
    return [one for one in found if one is not None and one.devices < one.pods]


def _alike(slices: Sequence[Slice]) -> tuple[Slice, ...]:
    """The same, each with the most that a pod of the same maker needs."""
    made: dict[str, list[Slice]] = defaultdict(list)
    for one in slices:
        made[made_by(one.pod)].append(one)
    most = {
        maker: {name: max(getattr(one, name) for one in of) for name in ("peak_mib", "activity", "mean")}
        for maker, of in made.items()
    }
    return tuple(one._replace(**most[made_by(one.pod)]) for one in slices)


def _cut(row: Waste, model: Model | None) -> SharingAdvice | None:
    """Devices cut into the slices that pods need, largest first, each on the first device where it still lies."""
    if model is None:
        return None
    needs = {one: smallest(model, one.peak_mib, one.activity) for one in row.slices}
    fitting = {one: profile for one, profile in needs.items() if profile is not None}
    devices: list[list[Profile]] = []
    for pod in sorted(fitting, key=lambda one: (-fitting[one].memory, -fitting[one].compute, one.pod)):
        room = next((d for d in devices if lie(model, [*d, fitting[pod]]) is not None), None)
        if room is None:
            devices.append([fitting[pod]])
        else:
            room.append(fitting[pod])
    whole = len(needs) - len(fitting)
    layouts = Counter(tuple(sorted(p.name for p in device)) for device in devices)
    return SharingAdvice(
        "mig",
        row.owner,
        len(needs),
        len(devices) + whole,
        tuple(sorted(layouts.items())),
        tuple((pod, f"nvidia.com/mig-{p.name}") for pod, p in sorted(fitting.items())),
        1,
        f"each pod's slice of {model.name} holds its most memory x 1.2 and its P99 of activity",
        RISKS["mig"],
    )


def _shares(row: Waste, kind: SharingWay, capacity_mib: float, serving: bool) -> SharingAdvice | None:
    """Equal shares, so many that any of the pods may meet on a device."""
    most = max(one.peak_mib for one in row.slices)
    fit = min(MOST_PODS, int(MEMORY * capacity_mib / most) if most else MOST_PODS)
    work = [one.activity if serving else one.mean for one in row.slices]
    fit = min(fit, _busiest(work, CALM if serving else 1))
    if fit < 2:
        return None
    pods = len(row.slices)
    return SharingAdvice(
        kind,
        row.owner,
        pods,
        ceil(pods / fit),
        (),
        tuple((one, "nvidia.com/gpu.shared") for one in row.slices),
        fit,
        f"any {fit} of its pods fit at once: the largest took {most / 1024:.1f} GiB",
        RISKS[kind],
    )


def _parts(row: Waste, kind: SharingWay, capacity_mib: float, serving: bool) -> SharingAdvice | None:
    """A part of its own for each pod, in percent; put together, largest first, where memory and work both fit."""
    asked: dict[Slice, tuple[int, int]] = {}
    for one in row.slices:
        work = max(ceil(100 * one.activity / (CALM if serving else 1)), ceil(100 / MOST_PODS))
        memory = ceil(100 * ROOM * one.peak_mib / capacity_mib)
        if max(memory, work) <= 100:  # Others keep a whole one.
            asked[one] = (memory, work) if kind == "hami" else (max(memory, work), 0)
    devices: list[tuple[int, int]] = []
    for memory, work in sorted(asked.values(), reverse=True):
        room = (n for n, had in enumerate(devices) if had[0] + memory <= 100 and had[1] + work <= 100)
        at = next(room, None)
        if at is None:
            devices.append((memory, work))
        else:
            devices[at] = devices[at][0] + memory, devices[at][1] + work
    if kind == "kai":
        resources = [(one, f"gpu-fraction={memory / 100:.2f}") for one, (memory, _) in asked.items()]
    else:
        mib = {one: ceil(ROOM * one.peak_mib) for one in asked}
        resources = [
            (one, f"nvidia.com/gpu=1,nvidia.com/gpumem={mib[one]},nvidia.com/gpucores={work}")
            for one, (_, work) in asked.items()
        ]
    why = "each pod's part holds its most memory x 1.2 and its P99 of activity"
    return SharingAdvice(
        kind,
        row.owner,
        len(row.slices),
        len(devices) + len(row.slices) - len(asked),
        (),
        tuple(resources),
        1,
        why + " x 2" * serving,
        RISKS[kind],
    )


def _busiest(work: Sequence[float], most: float) -> int:
    """So many of the busiest that their work together stays under so much of a device."""
    busiest = sorted(work, reverse=True)
    count = next((n for n in range(len(busiest)) if sum(busiest[: n + 1]) > most + 1e-9), len(busiest))
    return max(1, count)
