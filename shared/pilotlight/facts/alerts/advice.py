"""Advice and what became of it: what would have been done in a pool that is advised on, beside what others did."""

from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.units import Seconds, UsdPerHour

End = Literal["", "gone", "used", "bound", "left"]
"""``gone``: the node that would have been given back went later, by another hand. ``used``: work came back to it.
``bound``: the pods that a node would have been bought for run. ``left``: they went without having run. Empty: open.
"""


class Advised(msgspec.Struct, frozen=True, kw_only=True):
    """One node to give back, or one purchase, as it was first advised.

    ``target`` is the node, or the offering. ``usd_per_hour`` is of one node, None where it is not known. ``pods`` are
    uids of those that it was to be bought for; of more than a record holds some are left out.
    """

    call: Literal["grow", "release"]
    pool: str
    target: str
    at: datetime
    boot_s: Seconds
    usd_per_hour: UsdPerHour | None = None
    count: int = 1
    pods: tuple[str, ...] = ()
    end: End = ""
    ended_at: datetime | None = None


class OpenAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """The advice of a cluster that is open still, by what it is about."""

    open: dict[str, Advised] = {}
