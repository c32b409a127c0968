"""A month's report from what was metered and billed: its lines add up to the whole, idle and shared time are their own.

Chargeback is by allocation: a team pays for what it held, used or not. What no team held is told beside it, and what
each team would pay with its share of that, so that the whole is recovered. Commitments that no node used are shared
only by a rule of the policy.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple, TypeVar, get_args

from msgspec.structs import replace

from pilotlight.decide.money.reconciliation import Correction
from pilotlight.facts.money.bill import Anomaly, BillDay, CostLine, LineKind, MeterDay
from pilotlight.facts.money.money_policy import CostBasis, UnusedRule
from pilotlight.tools.advice.money.priced_days import PricedDays
from pilotlight.units import CENT, Usd, round_usd, shorten_figure

K = TypeVar("K")
ZERO = Decimal(0)
NANO = Decimal("1e-9")
TOP = 5


class Amount(NamedTuple):
    """GPU-hours with what they cost."""

    gpu_hours: Decimal = ZERO
    usd: Usd = ZERO

    def __add__(self, other: object) -> "Amount":
        assert isinstance(other, Amount)
        return Amount(self.gpu_hours + other.gpu_hours, self.usd + other.usd)

    @property
    def rate(self) -> Decimal:
        """Dollars a GPU-hour; 0 without hours."""
        return self.usd / self.gpu_hours if self.gpu_hours else ZERO


class Team(NamedTuple):
    """A team's hours and dollars, and what it would pay with its share of what nobody held."""

    name: str
    held: Amount
    with_share: Usd


class Consumer(NamedTuple):
    """One project of a team on one kind of machine."""

    team: str
    project: str
    machine: str
    held: Amount


class Unused(NamedTuple):
    """Part of a pool that was paid for and ran nowhere; ``usd`` is its cost, None where that is not known:
    ``effective`` of it by a bill, the rest on demand.
    """

    pool: str
    gpu_hours: Decimal
    usd: Usd | None
    effective: Usd = ZERO


class Month(NamedTuple):
    """The report. ``machines`` are by instance type and capacity type; ``days`` by kind of line.

    ``units`` are what it is divided by, for a cost a unit: epochs, thousands of requests, experiments.
    ``billed`` covers ``billed_days`` whole days; ``metered`` is what the meter counted on those. ``unpriced`` nodes are
    in no line, nor is ``paid_idle``, whose dollars are spent already. ``egress`` is what of the bill is for moved data.
    What is learnt of pools and the hours that were odd are by cluster.
    Dollars are in ``basis`` where a bill tells them, which is ``told`` of them; the others are the meter's.
    """

    first: date  # First day, UTC.
    last: date  # Last day, UTC, inclusive.
    total: Amount  # All lines of the meter.
    used: Amount  # Held by teams.
    idle: Amount  # Lit and held by nobody.
    shared: Amount  # What no team can help, as boots.
    commitment: Amount  # Commitments that no node used, and their own price.
    spot: Amount  # The part of the total that was spot.
    machines: tuple[tuple[str, Amount], ...]  # By instance type and capacity type.
    pools: tuple[tuple[str, Amount], ...]  # By pool.
    teams: tuple[Team, ...]  # The dearest first.
    classes: tuple[tuple[str, Amount], ...]  # By workload class.
    top: tuple[Consumer, ...]  # The dearest projects.
    others: Amount  # All consumers below those.
    days: tuple[tuple[date, Usd, Usd, Usd, Usd], ...]  # Day, then dollars used, idle, shared and of commitments.
    billed: Usd | None  # Dollars of the bill for its whole days; None without a bill.
    metered: Usd  # Dollars metered on the days that are billed.
    billed_days: int  # Whole days that a bill covers.
    unpriced: tuple[str, ...]  # Nodes without a price, in no line.
    units: tuple[tuple[str, Decimal], ...] = ()  # Name and count of what the dollars are divided by.
    paid_idle: tuple[Unused, ...] = ()  # By pool; its dollars are in no line.
    egress: Usd = ZERO  # Dollars of the bill for moved data.
    learnt: tuple[tuple[str, Correction], ...] = ()  # Cluster and correction.
    anomalies: tuple[tuple[str, Anomaly], ...] = ()  # Cluster and odd hour.
    basis: CostBasis | None = None  # Of dollars that a bill tells; None: the meter's alone.
    told: Usd | None = None  # Dollars of the total that a bill tells; None where none does, and for one team.
    sharing: UnusedRule = "nobody"  # By what teams share the commitment.

    @property
    def split(self) -> tuple[Usd, Usd, Usd]:
        """Cents of teams, idle and shared: with those of commitments they add up to the total in cents."""
        used, idle, shared, _ = self._cents
        return used, idle, shared

    @property
    def commitment_cents(self) -> Usd:
        """What commitments cost that no node used, as the total in cents has it."""
        return self._cents[3]

    @property
    def _cents(self) -> list[Usd]:
        return cents([self.used.usd, self.idle.usd, self.shared.usd, self.commitment.usd], self.total.usd)

    def held_hours(self, step: Decimal) -> Decimal:
        """GPU-hours of teams in steps: with those of idle and shared GPUs they add up to the total in steps."""
        kinds = (self.used, self.idle, self.shared, self.commitment)
        return cents([kind.gpu_hours for kind in kinds], self.total.gpu_hours, step)[0]

    @property
    def unshared(self) -> bool:
        """Whether commitments that no node used are in no team's share."""
        return bool(self.commitment.usd) and sum((team.with_share for team in self.teams), ZERO) < self.total.usd

    @property
    def idle_share(self) -> Decimal:
        """Idle GPU-hours of all."""
        return _share(self.idle.gpu_hours, self.total.gpu_hours)

    @property
    def efficiency(self) -> Decimal:
        """GPU-hours that were not idle, of all."""
        return 1 - self.idle_share if self.total.gpu_hours else ZERO

    @property
    def spot_share(self) -> Decimal:
        """GPU-hours on spot, of all."""
        return _share(self.spot.gpu_hours, self.total.gpu_hours)

    @property
    def idle_at_blended(self) -> Usd:
        """The idle hours at the month's average rate, as some reports price them. ``idle.usd`` is at their own."""
        return self.idle.gpu_hours * self.total.rate

    @property
    def idle_hour(self) -> Usd:
        """Dollars for an hour in which a GPU idles, at its own nodes' rate."""
        return self.idle.rate

    @property
    def unrecovered(self) -> Usd:
        """Dollars that chargeback by allocation leaves: nobody held them."""
        return self.total.usd - self.used.usd


def month(
    metered: Sequence[MeterDay],
    billed: Sequence[BillDay],
    first: date,
    last: date,
    *,
    team: str | None = None,
    priced: PricedDays | None = None,
    sharing: UnusedRule = "nobody",
) -> Month:
    """The report of the days from ``first`` to ``last``; of one team's lines alone where it is named.

    Lines are those ``priced`` in a basis, where they are given.
    """
    counted = [_rounded(day) for day in metered if first <= day.day <= last]
    days = counted if priced is None else [_rounded(day) for day in priced.days if first <= day.day <= last]
    lines = [line for day in days for line in _lines(day, team)]
    held = [line for line in lines if line.kind == "used"]
    total, (used, idle, shared, commitment) = _sum(lines), _kinds(lines)
    teams = _by(lambda line: line.team, held)
    consumers = [Consumer(*key, its) for key, its in _by(lambda x: (x.team, x.project, _machine(x)), held)]
    bill = _bill([] if team is not None else [bill for bill in billed if first <= bill.day <= last], counted)
    committed = priced.committed if priced is not None else {}
    return Month(
        first=first,
        last=last,
        total=total,
        used=used,
        idle=idle,
        shared=shared,
        commitment=commitment,
        spot=dict(_by(lambda line: line.capacity_type, lines)).get("spot", Amount()),
        machines=tuple(_by(_machine, lines)),
        pools=tuple(_by(_pool, lines)),
        teams=tuple(_shared_out(teams, idle.usd + shared.usd, commitment.usd, _parts(teams, sharing, committed))),
        classes=tuple(_by(lambda line: line.workload_class, held)),
        top=tuple(consumers[:TOP]),
        others=sum((c.held for c in consumers[TOP:]), Amount()),
        days=tuple(_day(day, team) for day in sorted(days, key=lambda d: d.day)),
        billed=bill.usd,
        metered=bill.metered,
        billed_days=bill.days,
        egress=bill.egress,
        unpriced=tuple(sorted({name for day in days for name in day.unpriced})),
        told=priced.told if priced is not None and team is None else None,
        sharing=sharing,
    )


def cents(parts: Sequence[Decimal], whole: Decimal, step: Decimal = CENT) -> list[Decimal]:
    """The parts in cents, so that they add up to the whole in cents: what rounding leaves goes to the largest."""
    found = [round_usd(part, step) for part in parts]
    left = round_usd(whole, step) - sum(found, ZERO)
    if left and found:
        largest = max(range(len(parts)), key=lambda n: parts[n])
        found[largest] += left
    return found


def _rounded(day: MeterDay) -> MeterDay:
    """The day with every line to the billionth: rounded once here, sums of lines agree with each other as printed."""
    lines = tuple(
        replace(line, usd=shorten_figure(line.usd, 9), gpu_hours=shorten_figure(line.gpu_hours, 9))
        for line in day.lines
    )
    return replace(day, lines=lines)


def _parts(teams: Sequence[tuple[str, Amount]], sharing: UnusedRule, committed: Mapping[str, Usd]) -> list[Usd]:
    """Dollars by which teams share what commitments cost that no node used; none where nobody does."""
    match sharing:
        case "held":
            return [held.usd for _, held in teams]
        case "committed":
            return [committed.get(name, ZERO) for name, _ in teams]
    return []


def _shared_out(teams: Sequence[tuple[str, Amount]], rest: Usd, commitment: Usd, parts: Sequence[Usd]) -> list[Team]:
    """Each team's dollars with its part of what nobody held, by dollars held, and of commitments by ``parts``."""
    own = _divided(rest, [held.usd for _, held in teams])
    more = _divided(commitment, parts) if sum(parts, ZERO) else [ZERO] * len(teams)
    return [Team(name, held, held.usd + one + two) for (name, held), one, two in zip(teams, own, more, strict=True)]


def _divided(whole: Usd, by: Sequence[Usd]) -> list[Usd]:
    """Parts of a sum; the last takes what rounding left."""
    total, left = sum(by, ZERO), whole
    out: list[Usd] = []
    for number, each in enumerate(by, 1):
        part = left if number == len(by) else (whole * each / total).quantize(NANO) if total else ZERO
        out.append(part)
        left -= part
    return out


class _Billed(NamedTuple):
    """Dollars of a bill for its whole days, None without a bill; the part for moved data, and the meter's for those."""

    usd: Usd | None
    egress: Usd
    metered: Usd
    days: int


def _bill(bills: Sequence[BillDay], days: Sequence[MeterDay]) -> _Billed:
    whole = {bill.day for bill in bills}
    return _Billed(
        usd=sum((bill.usd for bill in bills), ZERO) if whole else None,
        egress=sum((row.usd for bill in bills for row in bill.rows if row.egress), ZERO),
        metered=sum((line.usd for day in days if day.day in whole for line in day.lines), ZERO),
        days=len(whole),
    )


def _lines(day: MeterDay, team: str | None) -> Sequence[CostLine]:
    """All lines of a day, or what one team held."""
    return day.lines if team is None else [line for line in day.lines if line.kind == "used" and line.team == team]


def _day(day: MeterDay, team: str | None) -> tuple[date, Usd, Usd, Usd, Usd]:
    used, idle, shared, commitment = _kinds(_lines(day, team))
    return day.day, used.usd, idle.usd, shared.usd, commitment.usd


def _kinds(lines: Sequence[CostLine]) -> tuple[Amount, Amount, Amount, Amount]:
    """Amounts that were used, idle and shared, and of commitments that no node used."""
    used, idle, shared, commitment = (_sum(line for line in lines if line.kind == kind) for kind in get_args(LineKind))
    return used, idle, shared, commitment


def _machine(line: CostLine) -> str:
    return f"{line.instance_type or line.pool} {line.capacity_type}".rstrip()


def _pool(line: CostLine) -> str:
    return line.instance_type if line.kind == "commitment" and not line.pool else line.pool


def _sum(lines: Iterable[CostLine]) -> Amount:
    return sum((Amount(line.gpu_hours, line.usd) for line in lines), Amount())


def _by(key: Callable[[CostLine], K], lines: Iterable[CostLine]) -> list[tuple[K, Amount]]:
    """Amounts by key, the dearest first."""
    sums: dict[K, Amount] = defaultdict(Amount)
    for line in lines:
        sums[key(line)] += Amount(line.gpu_hours, line.usd)
    return sorted(sums.items(), key=lambda item: (-item[1].usd, str(item[0])))


def _share(part: Decimal, whole: Decimal) -> Decimal:
    return part / whole if whole else ZERO
