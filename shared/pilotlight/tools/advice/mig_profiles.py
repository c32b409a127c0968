"""MIG profiles of each model: what a device may be cut into, which profile a pod needs, and which lie on one together.

Source: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles" (docs.nvidia.com/datacenter/tesla/mig-user-guide)
and the table of SageMaker HyperPod for B200 and B300, read 2026-11-22. Profiles with media extensions are left out:
they are as large as those without.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

ROOM = 1.2
"""Times the most memory that was seen: the next batch may be larger."""
SOURCE = "NVIDIA MIG User Guide, Supported MIG Profiles"
READ = "2026-11-22"
NAMED = 0.95
"""Of the GB in a name, so much is counted on."""


class Profile(NamedTuple):
    """``compute`` slices of the model's, ``memory`` slices of its eight (A30: four), how many fit, where they begin."""

    name: str
    compute: int
    memory: int
    mib: int
    most: int
    starts: tuple[int, ...]


class Model(NamedTuple):
    """A model that can be cut, smallest profile first."""

    name: str
    compute: int
    memory: int
    profiles: tuple[Profile, ...]


def _sevenths(name: str, one: int, two: int, half: int, whole: int) -> Model:
    """A model of seven compute and eight memory slices, by the GB in its profiles' names."""
    shapes = (
        (f"1g.{one}gb", 1, 1, one, 7, tuple(range(7))),
        (f"1g.{two}gb", 1, 2, two, 4, (0, 2, 4, 6)),
        (f"2g.{two}gb", 2, 2, two, 3, (0, 2, 4)),
        (f"3g.{half}gb", 3, 4, half, 2, (0, 4)),
        (f"4g.{half}gb", 4, 4, half, 1, (0,)),
        (f"7g.{whole}gb", 7, 8, whole, 1, (0,)),
    )
    return Model(name, 7, 8, tuple(_profile(*shape) for shape in shapes))


def _profile(name: str, compute: int, memory: int, gb: int, most: int, starts: tuple[int, ...]) -> Profile:
    """A name rounds up what there is: a twentieth less is counted on."""
    return Profile(name, compute, memory, int(gb * 1024 * NAMED), most, starts)


MODELS = {
    model.name: model
    for model in (
        Model(
            "A30",
            4,
            4,
            (
                _profile("1g.6gb", 1, 1, 6, 4, (0, 1, 2, 3)),
                _profile("2g.12gb", 2, 2, 12, 2, (0, 2)),
                _profile("4g.24gb", 4, 4, 24, 1, (0,)),
            ),
        ),
        _sevenths("A100-40GB", 5, 10, 20, 40),
        _sevenths("A100-80GB", 10, 20, 40, 80),
        _sevenths("H100-80GB", 10, 20, 40, 80),
        _sevenths("H200-141GB", 18, 35, 71, 141),
        _sevenths("B200-180GB", 23, 45, 90, 180),
        _sevenths("B300-269GB", 34, 67, 135, 269),
    )
}


def model_of(name: str, mib: float) -> Model | None:
    """The model of a device that DCGM names ("NVIDIA A100-SXM4-80GB") and that has so much memory."""
    words = re.split(r"[\s-]+", name)
    near = {one: abs(mib / (one.profiles[-1].mib / NAMED) - 1) for one in MODELS.values()}
    alike = (one for one in MODELS.values() if one.name.partition("-")[0] in words and near[one] < 1 - NAMED + 0.05)
    return min(alike, key=lambda one: near[one], default=None)


def smallest(model: Model, peak_mib: float, activity: float) -> Profile | None:
    """The least profile with room for that memory, and for that share of the device's work; None where none has."""
    fits = (p for p in model.profiles if p.mib >= ROOM * peak_mib and p.compute / model.compute >= activity)
    return min(fits, key=lambda p: (p.memory, p.compute), default=None)


def lie(model: Model, wanted: Sequence[Profile]) -> tuple[int, ...] | None:
    """Where each begins so that none overlap, in the order of ``wanted``; None where there is no such layout."""
    if sum(p.compute for p in wanted) > model.compute or sum(p.memory for p in wanted) > model.memory:
        return None
    order = sorted(range(len(wanted)), key=lambda n: (-wanted[n].memory, -wanted[n].compute))
    starts: dict[int, int] = {}

    def place(at: int, taken: int) -> bool:
        if at == len(order):
            return True
        profile = wanted[order[at]]
        for start in reversed(profile.starts):
            bits = ((1 << profile.memory) - 1) << start
            if not taken & bits:
                starts[order[at]] = start
                if place(at + 1, taken | bits):
                    return True
        return False

    return tuple(starts[n] for n in range(len(wanted))) if place(0, 0) else None
