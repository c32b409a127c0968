"""A period's days in a basis: what a bill says of nodes in list, billed or effective dollars, in the meter's place.

The meter counts by the policy's prices, and knows whose the time was. A bill knows what a node cost, in whichever basis
it tells. So a node's dollars are the bill's, divided among its lines as the meter has them. What no bill tells in that
basis stays as it was metered.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from pilotlight.decide.money.metering import day_start
from pilotlight.decide.money.spend import apart, no_node
from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, MeterDay
from pilotlight.facts.money.money_policy import CostBasis
from pilotlight.units import Usd

T = TypeVar("T")
ZERO = Decimal(0)
DAY = timedelta(days=1)
FINEST = Decimal("1e-12")
COMMITMENTS = {"unused": "unused commitment", "fee": "price of commitments"}
"""Names of commitments' own lines."""


Covered = tuple[date, CostLine, Usd]
"""What of a line's dollars commitments paid."""


class PricedDays(NamedTuple):
    """Days in a basis: ``told`` of their dollars are a bill's, None where none tells any. ``covered`` are those of
    commitments used.

    What a commitment costs and no node used is a line of its own.
    """

    days: Sequence[MeterDay] = ()
    told: Usd | None = None
    covered: Sequence[Covered] = ()

    def __add__(self, other: object) -> "PricedDays":
        """The days of two clusters."""
        assert isinstance(other, PricedDays)
        told = [each for each in (self.told, other.told) if each is not None]
        return PricedDays((*self.days, *other.days), sum(told, ZERO) if told else None, (*self.covered, *other.covered))

    @property
    def committed(self) -> Mapping[str, Usd]:
        """Dollars of commitments used, by team."""
        found: dict[str, Usd] = defaultdict(Decimal)
        for _, line, usd in self.covered:
            if line.team:
                found[line.team] += usd
        return found


def price_days(metered: Iterable[MeterDay], billed: Mapping[date, Sequence[BillDay]], basis: CostBasis) -> PricedDays:
    """Days with the dollars that their bills tell in a basis. A bill in doubt tells too little: its day stays metered.

    Where a bill names no node, a pool's dollars are its own, if they are not far below the meter or a commitment's. A
    trifle of a node, as a metric's, or a refund alone is not what its time cost.
    """
    counted = {day.day: day for day in metered}
    found, told = list[MeterDay](), list[Usd]()
    covered = list[Covered]()
    for on in sorted(counted.keys() | billed.keys()):
        day, known = counted.get(on), _known(billed.get(on, ()), basis)
        mine, left = _of_nodes(day.lines if day else (), [x for x in known if x.commitment in ("", "used")], basis)
        covered += [(on, line, part) for part, line in mine if part]
        bill = [*_own(known, basis), *(line for _, line in mine)]
        told += [line.usd for line in bill]
        if day or bill:
            day = day or MeterDay(day=on, until=day_start(on + DAY))
            found.append(replace(day, lines=(*bill, *left)))
    return PricedDays(tuple(found), sum(told, ZERO) if told else None, tuple(covered))


def _known(bills: Sequence[BillDay], basis: CostBasis) -> list[BilledDay]:
    """Rows of a day that tell dollars in a basis, but those of a bill in doubt and of data that was moved."""
    if any(each.doubt for each in bills):
        return []
    return [row for bill in bills for row in bill.rows if row.amount(basis) is not None and not row.egress]


def _own(rows: Iterable[BilledDay], basis: CostBasis) -> list[CostLine]:
    """Lines of commitments that are no node's."""
    return [
        CostLine(
            kind="commitment",
            pool=row.pool,
            node="",
            instance_type=named,
            capacity_type="",
            usd=usd,
        )
        for row in rows
        if (named := COMMITMENTS.get(row.commitment)) and (usd := row.amount(basis))
    ]


def _of_nodes(
    lines: Sequence[CostLine], rows: Sequence[BilledDay], basis: CostBasis
) -> tuple[list[tuple[Usd, CostLine]], list[CostLine]]:
    """Lines that the rows tell, each with what of it is of commitments; and the others."""
    by_node = any(row.resource for row in rows) and all(line.node for line in lines)
    of: Callable[[CostLine], str] = (lambda line: line.node) if by_node else (lambda line: line.pool)
    groups = group_by(lines, of)
    named = group_by(rows, lambda row: row.resource if by_node else row.pool)
    told, left = list[tuple[Usd, CostLine]](), list[CostLine]()
    for name, own in groups.items():
        usd, mine = _sum(named[name], basis), sum((line.usd for line in own), ZERO)
        commitment = _sum([row for row in named[name] if row.commitment], basis)
        rows_of = named[name]
        if not name or not rows_of or (no_node(rows_of, mine) if by_node else not _believed(rows_of, usd, mine)):
            left += own
            continue
        told += [(line.usd * commitment / usd if usd else ZERO, line) for line in _divided(own, usd)]
    return told, left


def group_by(rows: Iterable[T], of: Callable[[T], str]) -> Mapping[str, list[T]]:
    """Rows by what they are of; none for a name that nothing is of."""
    found: dict[str, list[T]] = defaultdict(list)
    for row in rows:
        found[of(row)].append(row)
    return found


def _believed(rows: Sequence[BilledDay], usd: Usd, metered: Usd) -> bool:
    """A trifle with a pool's tag is not what its nodes cost; a commitment is of nodes."""
    return usd >= metered or not apart(usd, metered) or any(row.commitment for row in rows)


def _sum(rows: Iterable[BilledDay], basis: CostBasis) -> Usd:
    return sum((row.amount(basis) or ZERO for row in rows), ZERO)


def _divided(lines: Sequence[CostLine], usd: Usd) -> list[CostLine]:
    """Lines with dollars that are theirs together, by metered ones, else by GPU-hours. The last has the rest."""
    by_usd = sum((line.usd for line in lines), ZERO)
    whole = by_usd or sum((line.gpu_hours for line in lines), ZERO)
    out, left = list[CostLine](), usd
    for line in lines[:-1]:
        part = usd * (line.usd if by_usd else line.gpu_hours) / whole if whole else usd / len(lines)
        part = part.quantize(FINEST)  # So that parts and rest add up to the last digit.
        out.append(replace(line, usd=part))
        left -= part
    return [*out, replace(lines[-1], usd=left)]
