"""Which MIG profile a pod needs, and whether profiles lie on one device together."""

from collections.abc import Sequence

from pilotlight.facts.fit.mig_layouts import Model, Profile

ROOM = 1.2
"""Times the most memory that was seen: the next batch may be larger."""


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
