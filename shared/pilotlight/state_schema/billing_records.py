"""Families of what nodes cost: the meter's, the bill's, where budgets stand, and what they hold and have spent."""

from datetime import date, datetime

import msgspec

from pilotlight.facts.money.bill import (
    Anomaly,
    BillDay,
    HourCost,
    HourMark,
    KeptDays,
    Life,
    MeterDay,
    MeterPart,
    NodeCost,
)
from pilotlight.facts.money.bill_files import BillFile
from pilotlight.facts.money.budgets import Account, Charged, HeldPrice, Hold, Ladder, Refusals
from pilotlight.facts.offers.catalog import LivePrices
from pilotlight.facts.offers.paid_capacity import UnusedMonth
from pilotlight.facts.utilisation.pool_use import PoolUse
from pilotlight.state_schema.parted import Parted
from pilotlight.state_schema.rows import Rows
from pilotlight.state_schema.table import Format, Packed, Part, Table
from pilotlight.units import HOUR as HOUR_S

DAY_S = 24 * HOUR_S


class CountFrom(msgspec.Struct, frozen=True, kw_only=True):
    """The earliest day in which there may be something left to count.

    ``seen`` is the last look: what its parts do not say otherwise was the same up to then. ``zones`` are those of the
    budgets, at whose midnights a day is cut. Lives of nodes that ended are counted from ``lives_from`` on: it is the
    last look that counted all of them.
    """

    day: date
    seen: datetime | None = None
    zones: tuple[str, ...] = ()
    lives_from: datetime | None = None


class CostFrom(msgspec.Struct, frozen=True, kw_only=True):
    """The earliest day of which the cost of a node that ended may not be filed yet."""

    day: date


class SeenBill(msgspec.Struct, frozen=True, kw_only=True):
    """A word for what lay where a bill is when it was read, from which day on, when, and how far its usage reaches."""

    version: str
    since: date
    at: datetime
    reach: datetime | None = None


class TriedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a bill that was begun last, of which listing, and how often it was."""

    word: str
    name: str
    times: int


class LifePart(Part[Life], frozen=True, kw_only=True):
    """Lives of instances that stopped, by instance."""


class PricePart(Part[HeldPrice], frozen=True, kw_only=True):
    """Prices that nodes are held at, by instance."""


class HoldPart(Part[Hold], frozen=True, kw_only=True):
    """Holds by id."""


METERING = Table("metering", Format(MeterPart, squeezed=True), 40 * DAY_S)
"""``<cluster>/<day>/<part>``: the nodes of a day as far as they are counted. A node that is new on a day is in the
first part on its way that is not full: ``07``, ``07a``, ``07a3``, ..."""

METER = Rows(Table("meter", Format(MeterDay, squeezed=True), 800 * DAY_S), "lines")
"""``<cluster>/<day>``: a day that is over."""

METERED = Table("metered", Format(CountFrom))
"""``<cluster>``: the day from which on counting goes on."""

LIVES = Parted(Table("life", Format(LifePart, 2), 48 * HOUR_S), LifePart)
"""``<cluster>/<hour>/<part>``: instances that are known to have stopped, by the hour in which that became known. Kept
for longer than a node object outlives its instance, and than the meter may stand still."""

HELD_PRICE = Parted(Table("held-price", Format(PricePart), 40 * DAY_S), PricePart)
"""``<cluster>/<hour>/<part>``: prices of nodes' holds, by the hour in which the meter is told of them: where they
changed, or are not their pool's any more. Kept as long as what is metered by node."""

COST = Table("cost", Format(NodeCost), 30 * DAY_S)
"""``<cluster>/<day of the end>/<instance>/<since>``: what a node came to, kept as long as decisions are. A bill's
word on it is a record of its own below that name."""

COST_FROM = Table("cost-from", Format(CostFrom))
"""``<cluster>``."""

BILL = Rows(Table("bill", Format(BillDay, squeezed=True), 800 * DAY_S), "rows")
"""``<cluster>/<day>/<source>``."""

CLOSED = Rows(Table("closed", Format(KeptDays, squeezed=True), HOUR_S), "rows")
"""``<cluster>/x``: what budgets ask of days that are over, for the ticks of an hour. A bill that is read voids it."""

BILL_SEEN = Table("bill-seen", Format(SeenBill), 2 * DAY_S)
"""``<cluster>``: its bill as it was read last: the same is not read again."""

BILL_FILE = Rows(Table("bill-file", Format(BillFile, squeezed=True), 8 * DAY_S), "lines")
"""``<cluster>/<number>``: what the files of a bill come to that are read, until all of them are."""

BILL_TRIED = Table("bill-tried", Format(TriedFile), 2 * DAY_S)
"""``<cluster>``: the file of its bill that is being read."""

PAID_IDLE = Table("paid-idle", Format(UnusedMonth), 800 * DAY_S)
"""``<cluster>/<yyyy-mm>``: what was paid for and ran nowhere."""

HOUR_MARK = Table("hour-mark", Format(HourMark))
"""``<cluster>``: up to where hours are told."""

HOUR = Table("hour", Format(HourCost), 70 * DAY_S)
"""``<cluster>/<hh>/<yyyy-mm-dd>``: what an hour of a day cost. One scan reads the same hour of all days."""

ANOMALY = Table("anomaly", Format(Anomaly), 800 * DAY_S)
"""``<cluster>/<yyyy-mm-ddThh>``: an hour that cost far more than is usual then."""

PRICES = Table("prices", Format(LivePrices), 60 * DAY_S)
"""``<cluster>``: what its cloud said of prices when it was last asked."""

LADDER = Table("ladder", Format(Ladder))
"""``<cluster>``: the steps of budgets that are in force."""

POOL_USE = Table("pool-use", Format(PoolUse), 600.0)
"""``<cluster>``: what the GPUs of its pools did lately."""


CAP = Table("cap", Format(Account, squeezed=True), 400 * DAY_S)
"""``<cluster>/<end>/<budget>/<measure>/<start>``: an account of a window; ``.../<number>`` is a further part of it."""

HOLD = Packed(Table("hold", Format(HoldPart, 3, squeezed=True)), HoldPart)
"""``<cluster>/<place>``: what is held for each node, by ``<decision>.<call>.<node>``."""

CHARGED = Table("charged", Format(Charged), 48 * HOUR_S)
"""``<cluster>/<instance>``: until when an instance was charged whose hold is closed."""

REFUSED = Table("refused", Format(Refusals), 40 * DAY_S)
"""``<cluster>/<namespace>.<Workload>``: when Kueue was told that there is no money for it, and for what. Longer than a
budget's period: by then it is asked for again."""
