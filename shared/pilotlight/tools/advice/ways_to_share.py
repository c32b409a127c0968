"""Ways for an owner's pods to share devices: by MIG where slices fit, else by MPS, else by time-slicing; or not at all.

Serving keeps its P99: it shares by slices of hardware, or by MPS where what they do at once stays under half a device;
never by time-slicing, which has no isolation and promises no turn (rules of articles 001 and 003). Shares of the device
plugin are alike, and the scheduler puts any pods together: so many share that the largest of them fit at once.
"""

from collections import Counter
from collections.abc import Sequence
from math import ceil
from typing import Literal, NamedTuple

from pilotlight.decide.utilisation.gpu_waste import Slice, Waste
from pilotlight.decide.utilisation.shared_devices import MEMORY, MOST_PODS
from pilotlight.tools.advice.mig_profiles import Model, Profile, lie, smallest

SharingWay = Literal["mig", "mps", "time-slicing", "none"]
KINDS: tuple[SharingWay, ...] = ("mig", "mps", "time-slicing")
CALM = 0.5
"""Of a device: clients of MPS that do less at once hardly meet."""
RISKS: dict[SharingWay, str] = {
    "mig": "nodes are drained to be cut; a pod that outgrows its slice runs out of memory, alone",
    "mps": "a fault of one client ends all clients of the device; each may take an equal part of its memory",
    "time-slicing": "no isolation: memory is shared by trust, and no turn is promised",
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


def advise(row: Waste, model: Model | None, capacity_mib: float, *, serving: bool, only: str = "") -> SharingAdvice:
    """The safest way that saves a device; ``only`` names the one way that may be taken."""
    tried = {
        "mig": lambda: _cut(row, model),
        "mps": lambda: _shares(row, "mps", capacity_mib, serving),
        "time-slicing": lambda: None if serving else _shares(row, "time-slicing", capacity_mib, serving),
    }
    for kind in KINDS:
        found = tried[kind]() if only in ("", kind) else None
        if found is not None and found.devices < found.pods:
            return found
    why = "no layout of slices, and no shares, would save a device and keep what its class needs"
    return SharingAdvice("none", row.owner, len(row.slices), len(row.slices), (), (), 1, why, RISKS["none"])


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
    if not row.slices:
        return None
    most = max(one.peak_mib for one in row.slices)
    fit = min(MOST_PODS, int(MEMORY * capacity_mib / most) if most else MOST_PODS)
    if serving:
        fit = min(fit, _calm(row.slices))
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


def _calm(slices: Sequence[Slice]) -> int:
    """So many of the busiest that their P99s together stay under ``CALM``."""
    busiest = sorted((one.activity for one in slices), reverse=True)
    count = next((n for n in range(len(busiest)) if sum(busiest[: n + 1]) > CALM), len(busiest))
    return max(1, count)
