"""Gangs: all of their pods get room, or none does.

A gang goes to the single offering, one type in one zone, that can hold all of it and adds the fewest dollars an hour;
only where no single one can is it spread over several of one zone. Where some of it is on its way, the rest finds its
room first.
"""

from collections.abc import Sequence
from decimal import Decimal

from pilotlight.decide.place.provision import Provisioner
from pilotlight.decide.place.purchase import Group
from pilotlight.facts.capacity import Offering


def place_gang(run: Provisioner, gang: str, groups: list[Group], running: int, flown: Sequence[str]) -> None:
    """Plan for a gang. ``running`` pods of it run, and for as many as ``flown`` has offerings one is on its way."""
    size = groups[0].shape.gang.size if groups[0].shape.gang else 0
    here = sum(len(g.pods) for g in groups) + running + len(flown)
    if here < size:
        why = f"gang {gang}: {here} of its {size} pods exist; none is bought for yet"
        for group in groups:
            run.tell("waiting", group, "", why, code="gang")
        return
    alone = (_placed(run, groups, only) for only in _cheapest_first(run, groups))
    if not _joins(run, groups, flown) and not any(alone) and not _mixed(run, groups):
        _refuse(run, gang, size, groups)
    run.only, run.zone = None, ""


def _mixed(run: Provisioner, groups: list[Group]) -> bool:
    """Place it on any mix of offerings that are in one zone."""
    for zone in sorted({offering.zone for offering in run.offerings if offering.zone}) or [""]:
        run.zone = zone
        if _placed(run, groups, None):
            return True
    run.zone = ""
    return False


def _joins(run: Provisioner, groups: list[Group], flown: Sequence[str]) -> bool:
    """Place the rest of a gang whose other pods were asked for into room that there is: beside those, or anywhere."""
    beside = [offering for offering in run.offerings if offering.name in flown]
    return bool(flown) and any(_placed(run, groups, only, buy=False) for only in (*beside, None))


def _cheapest_first(run: Provisioner, groups: list[Group]) -> list[Offering]:
    """The single offerings that can hold the whole gang: where it belongs first, then by the dollars they add."""
    shape = groups[0].shape
    able, homes = run.able(run.offerings, shape), run.homes_of(shape)
    added: list[tuple[bool, Decimal, str, Offering]] = []
    for candidate in able.candidates:
        undo, before = Savepoint(run), run.headroom.usd_per_hour
        if _placed(run, groups, candidate.offering):
            offering = candidate.offering
            away = homes is not None and offering.pool not in homes
            added.append((away, run.headroom.usd_per_hour - before, offering.name, offering))
            undo.restore(run)
    return [offering for *_, offering in sorted(added, key=lambda a: a[:3])]


def _placed(run: Provisioner, groups: list[Group], only: Offering | None, *, buy: bool = True) -> bool:
    """Place the whole gang, or leave the run as it was."""
    undo = Savepoint(run)
    run.only = only
    if all(run.place(group, buy=buy) == len(group.pods) for group in groups):
        return True
    undo.restore(run)
    return False


def _refuse(run: Provisioner, gang: str, size: int, groups: list[Group]) -> None:
    """Say why the gang was not placed, from what its pods were told in a last attempt that is taken back."""
    undo = Savepoint(run)
    run.only = None
    for group in groups:
        run.place(group)
    told = run.outcomes[undo.outcomes :]
    kept = [o for o in told if o.verdict in ("refused", "waiting", "finding")]
    rejected = {r.offering: r for o in (*told, *kept) for r in o.rejected}
    findings = run.findings[undo.findings :]
    undo.restore(run)
    run.findings += findings
    why = f"gang {gang}: all {size} pods or none; {kept[0].why if kept else 'not all can be held'}"
    code = kept[0].code if kept else "gang"
    for group in groups:
        waits = code == "deadline" and not findings  # For spot: it is in time.
        run.tell(
            "finding" if findings else "waiting" if waits else "refused",
            group,
            "",
            why,
            tuple(rejected.values()),
            code=code,
        )


class Savepoint:
    """State that a gang's placement may have to give back: it is all restored, or kept."""

    def __init__(self, run: Provisioner) -> None:
        self.outcomes = len(run.outcomes)
        self._demands, self._housed = len(run.demands), len(run.housed)
        self.findings = len(run.findings)
        self._headroom = run.headroom.copy()
        self._neighbours = run.allowed.neighbours.copy_counts()
        self._bins = [
            (
                b,
                list(b.devices),
                dict(b.slices),
                b.cpu_milli,
                b.memory,
                b.ephemeral,
                b.pods,
                dict(b.other),
                len(b.taken),
                b.full,
                b.ports,
            )
            for b in (*run.ready, *run.booting, *run.bought_bins())
        ]
        self._bought = {
            n: (list(p.bins), list(p.terms), list(p.demands), set(p.shapes), set(p.gangs))
            for n, p in run.purchases.items()
        }

    def restore(self, run: Provisioner) -> None:
        """Put everything back as it was."""
        del run.outcomes[self.outcomes :]
        del run.demands[self._demands :]
        del run.housed[self._housed :]
        del run.findings[self.findings :]
        run.headroom = self._headroom
        run.allowed.neighbours.restore(self._neighbours)
        for b, devices, slices, cpu, memory, ephemeral, pods, other, taken, full, ports in self._bins:
            b.devices, b.slices, b.cpu_milli, b.memory = devices, slices, cpu, memory
            b.ephemeral, b.pods, b.other, b.full, b.ports = ephemeral, pods, other, full, ports
            del b.taken[taken:]
        for name in [n for n in run.purchases if n not in self._bought]:
            del run.purchases[name]
        for name, (bins, terms, demands, shapes, gangs) in self._bought.items():
            p = run.purchases[name]
            p.bins, p.terms, p.demands, p.shapes, p.gangs = bins, terms, demands, shapes, gangs
