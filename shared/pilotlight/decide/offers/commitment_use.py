"""What commitments paid for, by a bill: GPU-hours and effective dollars of each pool's machines on whole days.

One source for all that is said of capacity that is paid for: unused in a plan and a month, and what to pay ahead. Where
a node was billed in part by a commitment, its GPU-hours are divided as the list prices are.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from pilotlight.decide.money.counted_days import CountedDays
from pilotlight.facts.money.bill import BilledDay, CostLine
from pilotlight.units import Usd, UsdPerHour, shorten_figure

ZERO = Decimal(0)


class CommitmentUse(NamedTuple):
    """GPU-hours that commitments paid for, with their effective dollars."""

    gpu_hours: Decimal = ZERO
    usd: Usd = ZERO

    def __add__(self, other: object) -> "CommitmentUse":
        assert isinstance(other, CommitmentUse)
        return CommitmentUse(self.gpu_hours + other.gpu_hours, self.usd + other.usd)

    @property
    def rate(self) -> UsdPerHour:
        """Effective dollars of a GPU-hour; 0 without hours."""
        return shorten_figure(self.usd / self.gpu_hours, 9) if self.gpu_hours else ZERO


class Committed(NamedTuple):
    """What commitments paid for, by pool and by machine on demand, over so many billed ``days``."""

    pools: Mapping[str, CommitmentUse]
    machines: Mapping[str, CommitmentUse]
    days: Sequence[date]

    @property
    def rates(self) -> dict[str, UsdPerHour]:
        """Effective dollars of a GPU-hour, by pool."""
        return {pool: use.rate for pool, use in sorted(self.pools.items()) if use.gpu_hours}

    def nodes(self, machine: str, gpus: int) -> Decimal:
        """Nodes on demand of a machine that commitments paid for, on average over the days."""
        use = self.machines.get(machine, CommitmentUse())
        return use.gpu_hours / gpus / 24 / len(self.days) if self.days else ZERO


def commitment_use(known: CountedDays) -> Committed:
    """Commitments used on the days that are metered and billed, without those in doubt."""
    pools: dict[str, CommitmentUse] = defaultdict(CommitmentUse)
    machines: dict[str, CommitmentUse] = defaultdict(CommitmentUse)
    days = [
        day
        for day in sorted(known.metered.keys() & known.billed.keys())
        if not any(bill.doubt for bill in known.billed[day])
    ]
    for day in days:
        rows = [row for bill in known.billed[day] for row in bill.rows if not row.egress]
        for line, use in _of_day(known.metered[day].lines, rows):
            pools[line.pool] += use
            if line.capacity_type == "on-demand":
                machines[line.instance_type] += use
    return Committed(pools, machines, days)


def _of_day(lines: Sequence[CostLine], rows: Sequence[BilledDay]) -> Iterator[tuple[CostLine, CommitmentUse]]:
    """Lines of the meter that commitments paid for: by node where the bill names nodes, else by pool."""
    by_node = any(row.resource for row in rows) and all(line.node for line in lines)
    held: dict[str, list[CostLine]] = defaultdict(list)
    told: dict[str, list[BilledDay]] = defaultdict(list)
    for line in lines:
        held[line.node if by_node else line.pool].append(line)
    for row in rows:
        told[row.resource if by_node else row.pool].append(row)
    for name in held.keys() & told.keys() - {""}:
        yield from _divided(held[name], told[name])


def _divided(lines: Sequence[CostLine], rows: Sequence[BilledDay]) -> Iterator[tuple[CostLine, CommitmentUse]]:
    """Lines with what commitments paid of them, by their GPU-hours."""
    used = [row for row in rows if row.commitment == "used"]
    usd = sum((row.effective_usd for row in used if row.effective_usd is not None), ZERO)
    hours = sum((line.gpu_hours for line in lines), ZERO)
    if not usd or not hours:
        return
    share = _share(used, [row for row in rows if row.commitment in ("", "used")])
    for line in lines:
        yield line, CommitmentUse(line.gpu_hours * share, usd * line.gpu_hours / hours)


def _share(used: Iterable[BilledDay], rows: Iterable[BilledDay]) -> Decimal:
    """The part of a node's time that a commitment paid for, by list prices."""
    part, whole = (sum((row.list_usd or ZERO for row in some), ZERO) for some in (used, rows))
    return part / whole if part and whole else Decimal(1)
