"""Families of what nodes cost: the meter's, the bill's, and where budgets stand."""

from datetime import date

import msgspec

from pilotlight.codec.records import Format
from pilotlight.facts.bill import BillDay, Life, MeterDay, MeterPart
from pilotlight.facts.budget import Ladder
from pilotlight.state_schema.table import Table
from pilotlight.units import HOUR

DAY_S = 24 * HOUR


class CountFrom(msgspec.Struct, frozen=True, kw_only=True):
    """The earliest day in which there may be something left to count."""

    day: date


METERING = Table("metering", Format(MeterPart), 40 * DAY_S)
"""``<cluster>/<day>/<part>``: the nodes of a day as far as they are counted."""

METER = Table("meter", Format(MeterDay), 800 * DAY_S)
"""``<cluster>/<day>``: a day that is over."""

METERED = Table("metered", Format(CountFrom))
"""``<cluster>``: the day from which on counting goes on."""

LIFE = Table("life", Format(Life), 48 * HOUR)
"""``<cluster>/<instance>``: one that stopped. Kept for longer than its node object lives, and than the meter may stand
still."""

BILL = Table("bill", Format(BillDay), 800 * DAY_S)
"""``<cluster>/<day>/<source>``."""

LADDER = Table("ladder", Format(Ladder))
"""``<cluster>``: the steps of budgets that are in force."""
