"""A bill proved by node: what was metered, what was billed, and why they differ, in parts that add up to it exactly.

A bill's machine time is its hours at its list price, less discounts. Each step from the metered dollars there is one
cause: hours first (at the metered price), then the price, then what is taken off. A cause needs evidence in the bill;
what none explains is unexplained.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple

from pilotlight.decide.money.node_hours import MICROS_PER_HOUR
from pilotlight.units import Seconds, Usd, shorten_figure

Cause = Literal[
    "late start", "minimum", "rounding", "price", "discount", "commitment", "tax", "other charges", "unexplained"
]
CAUSES: tuple[Cause, ...] = (
    "late start", "minimum", "rounding", "price", "discount", "commitment", "tax", "other charges", "unexplained",
)  # fmt: skip

ZERO = Decimal(0)
HALF_CENT = Decimal("0.005")
STEPS_S = (3600, 60)
"""Steps that clouds bill time by; a bill has rounded up to one where its hours are whole steps."""
MINIMUMS_S = (60, 600, 3600)
SMALL_S = 2
"""So many seconds at each end of a life are a cloud's clock, not ours."""
NEAR_S = Decimal("0.05")
"""So near to a whole step a bill's hours are it: they are written with few digits."""


class FirstCharge(NamedTuple):
    """The period of a machine's first charge, and its hours in it."""

    begin: datetime
    end: datetime
    hours: Decimal


class NodeCharge(NamedTuple):
    """Charges of one machine that are alike, as one."""

    instance: str  # As the cloud names it.
    pool: str  # The policy's, by the pool's tag; or empty.
    category: str  # FOCUS's ChargeCategory.
    timed: bool  # They are for the machine's time.
    covered: bool  # A commitment pays for it.
    rows: int  # Rows of the bill.
    billed: Usd  # FOCUS's BilledCost.
    listed: Usd  # What it would cost without discounts.
    exact: Usd  # Its hours at the list price, before the bill rounded that.
    effective: Usd | None = None  # FOCUS's EffectiveCost; None where a row does not tell it.
    hours: Decimal | None = None  # Of its time; None where a row does not tell them.
    first: FirstCharge | None = None  # The first of its time.
    uncounted: int = 0  # Rows without an amount.


class NodeBill(NamedTuple):
    """Charges of machines on whole days up to ``until``; None where the bill has none of the period."""

    charges: tuple[NodeCharge, ...]
    until: datetime | None


class NodeLife(NamedTuple):
    """A life of an instance as the meter knows it; it is paid for up to ``paid_until`` once it has ``ended``."""

    instance: str
    since: datetime
    ended: datetime | None = None
    paid_until: datetime | None = None
    minimum_s: Seconds = 0


class NodeMeter(NamedTuple):
    """A node's dollars and hours of a period, as metered, and its lives in it."""

    node: str
    pool: str
    usd: Usd
    hours: Decimal
    lives: tuple[NodeLife, ...]


class NodeProof(NamedTuple):
    """A node's dollars, and the parts of the difference, which add up to it. ``effective``: None where it is untold."""

    node: str
    pool: str
    metered: Usd
    billed: Usd
    effective: Usd | None
    parts: Mapping[Cause, Usd]
    uncounted: int = 0

    @property
    def more(self) -> Usd:
        """Dollars billed above what was metered."""
        return self.billed - self.metered

    @property
    def unexplained(self) -> Usd:
        """Dollars that no cause explains."""
        return self.parts.get("unexplained", ZERO)


class InvoiceProof(NamedTuple):
    """All nodes. ``percent`` is what was metered of each hundred dollars billed; None where nothing is billed."""

    nodes: tuple[NodeProof, ...]

    @property
    def total(self) -> NodeProof:
        """All nodes as one."""
        told = [one.effective for one in self.nodes]
        return NodeProof(
            node="",
            pool="",
            metered=sum((one.metered for one in self.nodes), ZERO),
            billed=sum((one.billed for one in self.nodes), ZERO),
            effective=None if None in told else sum((one for one in told if one is not None), ZERO),
            parts=_told({cause: sum((one.parts.get(cause, ZERO) for one in self.nodes), ZERO) for cause in CAUSES}),
            uncounted=sum(one.uncounted for one in self.nodes),
        )

    @property
    def percent(self) -> Decimal | None:
        """Metered dollars of each hundred billed."""
        total = self.total
        return 100 * total.metered / total.billed if total.billed else None

    @property
    def unexplained(self) -> Usd:
        """Dollars that no cause explains, too much and too little alike: nodes do not make up for each other."""
        return sum((abs(one.unexplained) for one in self.nodes), ZERO)


def prove_invoice(
    meters: Iterable[NodeMeter], charges: Iterable[NodeCharge], start: datetime, end: datetime
) -> InvoiceProof:
    """Every node that is metered or billed in a period, the furthest apart first."""
    of: dict[str, list[NodeCharge]] = defaultdict(list)
    for charge in charges:
        of[charge.instance].append(charge)
    found = []
    for meter in meters:
        names = dict.fromkeys((*(life.instance for life in meter.lives), meter.node))
        found.append(_proved(meter, [charge for name in names for charge in of.pop(name, ())], start, end))
    for instance, rest in of.items():
        found.append(_proved(NodeMeter(instance, rest[0].pool, ZERO, ZERO, ()), rest, start, end))
    return InvoiceProof(tuple(sorted(found, key=lambda one: (-abs(one.unexplained), -abs(one.more), one.node))))


def _proved(meter: NodeMeter, charges: Sequence[NodeCharge], start: datetime, end: datetime) -> NodeProof:
    timed = [one for one in charges if one.category == "Usage" and one.timed]
    parts = _by_bill(charges, timed)
    for cause, usd in _of_time(meter, timed, start, end).items():
        parts[cause] += usd
    billed = sum((one.billed for one in charges), ZERO)
    parts["unexplained"] = billed - meter.usd - sum(parts.values(), ZERO)
    effective = [one.effective for one in charges]
    return NodeProof(
        node=meter.node,
        pool=meter.pool,
        metered=meter.usd,
        billed=billed,
        effective=None if None in effective else sum((one for one in effective if one is not None), ZERO),
        parts=_told(parts),
        uncounted=sum(one.uncounted for one in charges),
    )


def _told(parts: Mapping[Cause, Usd]) -> dict[Cause, Usd]:
    return {cause: parts[cause] for cause in CAUSES if parts.get(cause)}


def _by_bill(charges: Sequence[NodeCharge], timed: Sequence[NodeCharge]) -> defaultdict[Cause, Usd]:
    """Causes that the bill itself names: what it took off a list price, rounded, taxed, and charged beside time."""
    parts: defaultdict[Cause, Usd] = defaultdict(Decimal)
    for one in timed:
        parts["commitment" if one.covered else "discount"] += one.billed - one.listed
        rounded = one.listed - one.exact
        if abs(rounded) <= one.rows * HALF_CENT:
            parts["rounding"] += rounded
    for one in charges:
        if one.category == "Tax":
            parts["tax"] += one.billed
        elif one.category == "Credit":
            parts["discount"] += one.billed
        elif one not in timed:
            parts["other charges"] += one.billed
    return parts


def _of_time(meter: NodeMeter, timed: Sequence[NodeCharge], start: datetime, end: datetime) -> dict[Cause, Usd]:
    """Causes in a machine's time: hours that differ, at the metered price, and prices that differ."""
    told = [one.hours for one in timed if one.hours is not None]
    if not meter.hours or not timed or len(told) < len(timed):
        return {}
    hours, price = sum(told, ZERO), meter.usd / meter.hours
    causes = _of_hours(meter, timed, hours, start, end)
    parts = {cause: shorten_figure(more * price, 9) for cause, more in causes.items()}
    exact = sum((one.exact for one in timed), ZERO)
    return {**parts, "price": shorten_figure(exact - hours * price, 9)}


def _of_hours(
    meter: NodeMeter, timed: Sequence[NodeCharge], hours: Decimal, start: datetime, end: datetime
) -> dict[Cause, Decimal]:
    """Hours billed above those metered, by cause, as far as there is evidence of one."""
    firsts = {life.instance: life for life in sorted(meter.lives, key=lambda life: life.since, reverse=True)}
    late = sum((_late_start(life, timed) for life in firsts.values() if life.since >= start), ZERO)
    rest = hours - meter.hours - late
    over = [life for life in meter.lives if life.ended is not None and life.ended < end]
    ends = sum(life.since >= start for life in meter.lives) + len(over)
    if abs(rest) <= Decimal(SMALL_S * max(1, ends)) / 3600:
        return {"late start": late, "rounding": rest}
    if rest < 0:
        return {"late start": late, **_less(over, rest, start, end)}
    cause = _more(meter.lives, over, hours * 3600, start, end)
    return {"late start": late, **({cause: rest} if cause else {})}


def _less(over: Sequence[NodeLife], rest: Decimal, start: datetime, end: datetime) -> dict[Cause, Decimal]:
    """Hours metered beyond a life's end that are not billed; of a minimum, where a life was shorter than it."""
    beyond = [(life, _hours_beyond(life, start, end)) for life in over]
    short = any(more and _lived(life) < life.minimum_s for life, more in beyond)
    return {"minimum" if short else "rounding": max(rest, -sum((more for _, more in beyond), ZERO))}


def _more(
    lives: Sequence[NodeLife], over: Sequence[NodeLife], seconds: Decimal, start: datetime, end: datetime
) -> Cause | None:
    """Why so many seconds are billed, more than lives had: one minimum, or whole steps that they had a part of."""
    one = over[0] if len(over) == len(lives) == 1 and over[0].since >= start else None
    if one and any(_lived(one) < least and _near(seconds, least) for least in MINIMUMS_S):
        return "minimum"
    step = next((step for step in STEPS_S if _near(seconds % step, step) or _near(seconds % step, 0)), None)
    return "rounding" if step and seconds <= _touched(lives, step, start, end) + NEAR_S else None


def _near(seconds: Decimal, others: Seconds) -> bool:
    return abs(seconds - Decimal(others)) <= NEAR_S


def _touched(lives: Iterable[NodeLife], step: int, start: datetime, end: datetime) -> Decimal:
    """Seconds of all steps of the clock that lives have a part of."""
    spans = [(max(life.since, start) - start, min(life.ended or end, end) - start) for life in lives]
    size = timedelta(seconds=step)
    return Decimal(step * sum(-(-until // size) - first // size for first, until in spans if until > first))


def _late_start(life: NodeLife, timed: Sequence[NodeCharge]) -> Decimal:
    """Hours by which the bill begins before the meter; less than none where it begins after it.

    A charge of less than its period began as much later, where the machine lived on; one of its whole period has no
    moment of its own.
    """
    firsts = [one.first for one in timed if one.first and one.instance == life.instance]
    begin = min((one.begin for one in firsts), default=None)
    if begin is None:
        return ZERO
    same = [one for one in firsts if one.begin == begin]
    until, used = max(one.end for one in same), sum((one.hours for one in same), ZERO)
    latest = max(begin, until - timedelta(microseconds=int(used * MICROS_PER_HOUR)))
    if latest == begin and begin <= life.since < until:
        return ZERO
    goes_on = life.ended is None or life.ended >= until
    return _as_hours(life.since - (latest if goes_on else min(max(life.since, begin), latest)))


def _hours_beyond(life: NodeLife, start: datetime, end: datetime) -> Decimal:
    """Hours that a life was metered for after it ended: of a minimum, or of an increment that it did not use up."""
    if life.ended is None or life.paid_until is None:
        return ZERO
    return max(ZERO, _as_hours(min(life.paid_until, end) - max(life.ended, start)))


def _as_hours(span: timedelta) -> Decimal:
    return Decimal(span // timedelta(microseconds=1)) / MICROS_PER_HOUR


def _lived(life: NodeLife) -> Seconds:
    return (life.ended - life.since).total_seconds() if life.ended else 0
