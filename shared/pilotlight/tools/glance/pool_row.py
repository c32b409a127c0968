"""A pool as people look it up: one row of ``pilotlight pools``."""

from datetime import datetime

import msgspec

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.modes import Mode
from pilotlight.tools.advice.image_worth import ImageWorth
from pilotlight.units import UsdPerHour


class PoolRow(msgspec.Struct, frozen=True, kw_only=True):
    """``size`` is None where its cloud has no such pool. ``on_the_way`` were asked for and are no ready nodes yet.

    ``usd_per_hour`` is one node's, the cheapest offering's; None where no price is known. ``priced_at``
    is the day that price is of; None for the policy's own, which have no age. ``paid`` is what the size
    costs by it, and what a bill's commitments pay for its reserved nodes. ``reserved`` nodes are paid for
    whether they run or not, ``unused`` of them run nowhere.
    ``last_error`` is the cloud's last refusal that still holds a purchase back.
    """

    pool: str  # Its name in the policy.
    size: int | None  # Nodes that its cloud is asked for; None: no such pool there.
    on_the_way: int  # Asked for, and no ready nodes yet.
    standby: int  # Stopped nodes that can be started.
    reserved: int  # Nodes paid for whether they run or not.
    unused: int  # Reserved nodes that run nowhere.
    instance_type: str  # The cloud's name of it.
    capacity_type: CapacityType  # On-demand, spot or reserved.
    usd_per_hour: UsdPerHour | None  # Of one node by the cheapest offering; None: no price known.
    paid: UsdPerHour | None  # Dollars an hour of the whole size, with its commitments.
    priced_at: datetime | None = None  # The price's day; None for the policy's own.
    mode: Mode  # The pool's.
    most: int  # Nodes that the policy allows.
    paused: str = ""  # Since when a person stopped its calls, and why.
    owner: str  # Who else sizes it, or ours.
    last_error: str = ""  # The cloud's last refusal that still holds a purchase back.
    images: tuple[ImageWorth, ...] = ()  # Those that its new nodes pull, and what having them sooner is worth.
