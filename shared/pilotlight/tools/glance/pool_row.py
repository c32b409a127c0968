"""A pool as people look it up: one row of ``pilotlight pools``."""

from datetime import datetime

import msgspec

from pilotlight.facts.capacity import CapacityType, Mode
from pilotlight.units import UsdPerHour


class PoolRow(msgspec.Struct, frozen=True, kw_only=True):
    """``size`` is None where its cloud has no such pool. ``on_the_way`` were asked for and are no ready nodes yet.

    ``usd_per_hour`` is one node's, the cheapest offering's; None where no price is known. ``priced_at``
    is the day that price is of; None for the policy's own, which have no age. ``paid`` is what the size
    costs by it. ``reserved`` nodes are paid for whether they run or not, ``unused`` of them run nowhere.
    ``last_error`` is the cloud's last refusal that still holds a purchase back.
    """

    pool: str
    size: int | None
    on_the_way: int
    standby: int
    reserved: int
    unused: int
    instance_type: str
    capacity_type: CapacityType
    usd_per_hour: UsdPerHour | None
    paid: UsdPerHour | None
    priced_at: datetime | None = None
    mode: Mode
    most: int
    owner: str
    last_error: str = ""
