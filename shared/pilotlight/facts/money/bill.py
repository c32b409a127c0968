"""Money spent: what the meter counted from node life, and what a cloud has billed. Sums are Decimal US dollars."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

import msgspec

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.money.budgets import Priced
from pilotlight.facts.money.money_policy import CostBasis
from pilotlight.facts.workload import Finding
from pilotlight.units import Seconds, Usd, UsdPerHour

LineKind = Literal["used", "idle", "shared", "commitment"]
"""``used`` is a team's; ``idle`` nobody's while the node could be used; ``shared`` what no team can help: boot, and
the minimum and increments of a cloud's billing. ``commitment`` is of a bill alone, never of the meter: commitments that
no node used, and their own price."""


class CostLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Dollars and GPU-hours of one owner on one node on one UTC day. Over all lines they are what the nodes cost.

    ``project`` is the pods' namespace. ``begin`` is where the line's part of the day begins: a day is cut at the
    midnights of the budgets' time zones, and where the node's price changes. ``node`` is empty where a day's lines by
    node would not fit one record.
    """

    kind: LineKind  # Whose the time was.
    pool: str  # The policy's pool.
    node: str  # Empty where a day's lines by node would not fit one record.
    instance_type: str  # Its cloud's name of the machine.
    capacity_type: str  # How it was paid for.
    gpu_model: str = ""  # Empty where it is not known.
    team: str = ""  # Empty for idle and shared time.
    project: str = ""  # The pods' namespace.
    workload_class: str = ""  # Empty for idle and shared time.
    begin: datetime | None = None  # Where the line's part of the day begins.
    gpu_hours: Decimal = Decimal(0)  # Hours of one GPU.
    usd: Usd = Decimal(0)  # Dollars.


class MeterDay(msgspec.Struct, frozen=True, kw_only=True):
    """The meter's count of one UTC day, as far as ``until``. Kept under ``meter/<cluster>/<yyyy-mm-dd>``.

    ``unpriced`` names nodes whose price is not known: their cost is in no line, and it is not $0. A day with more lines
    than one record holds has ``parts`` further records, under its key with ``stamp``.
    """

    day: date
    until: datetime
    lines: tuple[CostLine, ...] = ()
    unpriced: tuple[str, ...] = ()
    parts: int = 0
    stamp: str = ""


class Holder(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A holder of parts of a node's GPUs, and how many: whole devices, slices and shares alike."""

    team: str
    project: str
    workload_class: str
    parts: int


class Stretch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Microseconds of a node's time that are one owner's, at the price of ``begin`` (see ``CostLine``)."""

    kind: LineKind
    team: str
    project: str
    workload_class: str
    begin: datetime
    micros: int


class MeteredNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node on one day: what it is, since when it is paid for, and whose its time was up to ``until``.

    ``holders`` hold their share of ``parts`` from ``until`` on; what is left is idle, or shared while the node is not
    ``ready``. ``owners``: the team and class that each of its pods (by uid) had when it was first seen there, whatever
    its labels become. ``gone_at`` is when it stopped; it is paid up to the end of its minimum or increment.
    ``earlier`` are the day's prices before ``usd_per_hour``, the oldest first; ``held``: they are its hold's, whatever
    offerings say.
    """

    name: str  # As the cluster had it.
    pool: str  # The policy's pool.
    instance_type: str  # Its cloud's name of the machine.
    capacity_type: CapacityType  # How it is paid for.
    gpu_model: str = ""  # Empty where it is not known.
    gpus: int = 0  # Devices.
    usd_per_hour: UsdPerHour | None = None  # None where its price is not known.
    minimum_s: Seconds = 0  # Seconds that are billed at least.
    increment_s: Seconds = 1  # Seconds by which it is billed then.
    since: datetime  # When it began to be paid for.
    until: datetime  # Up to here its time is counted.
    gone_at: datetime | None = None  # When it stopped; it is paid up to the end of its minimum or increment.
    ready: bool = False  # While it is not, its time is shared.
    parts: int = 1  # Parts of its GPUs that can be held.
    holders: tuple[Holder, ...] = ()  # Who holds how many of them from ``until`` on.
    owners: dict[str, tuple[str, str]] = {}  # Team and class that each pod (by uid) had when it was first seen there.
    stretches: tuple[Stretch, ...] = ()  # Time counted so far, by owner.
    earlier: tuple[Priced, ...] = ()  # The day's prices before ``usd_per_hour``, the oldest first.
    held: bool = False  # The prices are its hold's, whatever offerings say.


class MeterPart(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of one UTC day, or a part of them, by instance.

    ``seen`` is the last look that brought something new of them: what was the same at later looks goes on from each
    node's ``until``. A part that is ``full`` takes no further node.
    """

    day: date
    seen: datetime
    nodes: dict[str, MeteredNode] = {}
    full: bool = False


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that is known to have stopped, from when it was paid for until it stopped.

    ``seen_at`` is when it was last seen there: it may have ended from then on where the meter missed it before the end
    that its release tells, as a worker that stands still gives back what has gone meanwhile.
    """

    instance: str
    node: str
    pool: str
    since: datetime
    ended_at: datetime
    seen_at: datetime | None = None


class NodeCost(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of one life of a node, once it is over: in the audit chain, a link of kind ``cost``.

    ``decision`` bought it; empty where none of ours did, or its record is gone by then. Paid up to ``paid_until``, by
    the price of each day: ``usd`` is metered. ``billed_usd`` and its ``source`` are of a bill that names the instance.
    """

    decision: str  # The one that bought it; empty where none of ours did, or its record is gone.
    instance: str  # The cloud's id.
    node: str  # Its name.
    pool: str  # The policy's pool.
    instance_type: str  # Its cloud's name of the machine.
    capacity_type: CapacityType  # How it was paid for.
    since: datetime  # When it began to be paid for.
    ended_at: datetime  # When it stopped.
    paid_until: datetime  # The end of its minimum or increment.
    usd: Usd  # Metered dollars, by the price of each day.
    billed_usd: Usd | None = None  # Of a bill that names the instance; None where none does.
    source: str = ""  # That bill's.


Commitment = Literal["", "used", "unused", "fee"]
"""What a row is of a commitment discount: usage that it covers, what nothing used of it, or its own price. Or none."""


class BilledDay(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A row of a cloud's bill of one UTC day: ``resource`` is its id of a node, disk or pool, or empty.

    ``usd`` is billed. Beside it stand FOCUS's ListCost and EffectiveCost, in which commitments are spread over what
    they cover; None where the bill does not tell them.
    ``egress`` is for data that was moved: out of a region, a zone or the cloud.
    """

    day: date  # UTC.
    usd: Usd  # BilledCost.
    list_usd: Usd | None = None  # ListCost.
    effective_usd: Usd | None = None  # EffectiveCost.
    commitment: Commitment = ""  # What it is of a commitment discount.
    pool: str = ""  # The policy's pool, where a tag or a name tells it.
    team: str = ""  # By its tag.
    resource: str = ""  # The cloud's id.
    service: str = ""  # ServiceName.
    egress: bool = False  # Data that was moved.
    gpu_hours: Decimal = Decimal(0)  # That it tells of.

    def amount(self, basis: CostBasis) -> Usd | None:
        """Dollars in a basis; None where the bill does not tell it."""
        return {"list": self.list_usd, "billed": self.usd, "effective": self.effective_usd}[basis]


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """A bill of a period. ``horizon`` is how far the export reaches: usage after it is not in it yet.

    ``findings`` are lines that could not be counted, each with its reason: never $0; ``doubtful`` are the days that may
    have cost more than is counted, by those. ``notes`` say what was left out by rule. Reading the same export again, or
    one with late corrections, gives days that replace those of before.
    """

    source: str
    days: tuple[BilledDay, ...] = ()
    horizon: datetime | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    doubtful: tuple[date, ...] = ()


class BillDay(msgspec.Struct, frozen=True, kw_only=True):
    """One source's bill of a whole UTC day: that there is one says the day is billed, at $0 where it has no rows.

    Kept under ``bill/<cluster>/<yyyy-mm-dd>/<source>`` and replaced as a whole. ``resource`` is the name of a node
    that the meter knows; all others are summed. ``parts``
    and ``stamp`` are as a ``MeterDay``'s. In ``doubt`` it may have cost more: something of it could not be counted.
    """

    day: date
    source: str
    rows: tuple[BilledDay, ...] = ()
    doubt: bool = False
    parts: int = 0
    stamp: str = ""

    @property
    def usd(self) -> Usd:
        """All of it."""
        return sum((row.usd for row in self.rows), Decimal(0))


class ClosedPart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Metered sums of a scope on a part of a closed day: ``begin`` is a ``CostLine``'s."""

    begin: datetime | None
    usd: Usd
    gpu_hours: Decimal


class ClosedBilled(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A scope's dollars of a closed day that is billed: by the bill, by the meter beside it, and sunk of the bill's."""

    billed: Usd
    metered: Usd
    sunk: Usd


class ClosedDays(msgspec.Struct, frozen=True, kw_only=True):
    """All that budgets ask of days from the ``first`` to before ``end``, which the meter has closed: kept, so that a
    tick asks once for them.

    ``parts`` are by scope ("team red"), ``bills`` by basis and scope ("billed team red"), then by day. ``compared`` has
    the fields of ``reconciliation.Compared``. Without a day it says nothing.
    """

    first: date = date.min
    end: date = date.min
    metered: tuple[date, ...] = ()
    billed: tuple[date, ...] = ()
    sources: tuple[str, ...] = ()
    parts: dict[str, dict[date, tuple[ClosedPart, ...]]] = {}
    bills: dict[str, dict[date, ClosedBilled]] = {}
    compared: tuple[tuple[date, str, Usd, Usd, bool, Usd | None], ...] = ()


class KeptScope(msgspec.Struct, frozen=True, array_like=True):
    """One of the ``parts`` of closed days, or one of their ``bills``."""

    name: str
    parts: dict[date, tuple[ClosedPart, ...]] | None = None
    bills: dict[date, ClosedBilled] | None = None


class KeptDays(msgspec.Struct, frozen=True, kw_only=True):
    """Closed days as they are kept: ``rows`` are their ``parts`` and ``bills``, ``days`` is all else. ``parts`` and
    ``stamp`` are as a ``MeterDay``'s.
    """

    days: ClosedDays = ClosedDays()
    rows: tuple[KeptScope, ...] = ()
    parts: int = 0
    stamp: str = ""


class HourSums(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars by pool and by team, and GPU-hours by machine: instance type and capacity type.

    Idle and shared time is under the names ``(idle)`` and ``(shared)``.
    """

    pools: dict[str, Usd] = {}
    teams: dict[str, Usd] = {}
    machines: dict[str, Decimal] = {}


class HourMark(msgspec.Struct, frozen=True, kw_only=True):
    """The meter's count of a day at ``at``, when its last hour was told."""

    at: datetime
    day: date
    usd: HourSums


class HourCost(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of an hour, up to ``at``; its rates are of as long as the meter was not looked at: ``hours``."""

    at: datetime
    hours: Decimal
    rates: HourSums


class Anomaly(msgspec.Struct, frozen=True, kw_only=True):
    """An hour, ended at ``at``, that cost far more than is usual then, with the pool and the team that rose most.

    Dollars are an hour's. ``usual`` and ``spread`` are the median and the median distance from it of so many ``hours``
    of the same ``weekday``, or of every day's where it is None. ``decision`` is the last purchase of that pool.
    """

    at: datetime  # The end of the hour.
    usd: Usd  # Dollars of the hour.
    usual: Usd  # The median of such hours, in dollars.
    spread: Usd  # The median distance from it, in dollars.
    hours: int  # Hours that the median is of.
    weekday: int | None  # 0 is Monday; None: hours of every day.
    pool: str  # The one that rose most.
    pool_usd: Usd  # Its dollars of the hour.
    pool_usual: Usd  # Its median.
    team: str  # The one that rose most.
    team_usd: Usd  # Its dollars of the hour.
    team_usual: Usd  # Its median.
    decision: str = ""  # The last purchase of that pool.

    @property
    def more(self) -> Usd:
        """Dollars above what is usual."""
        return self.usd - self.usual
