"""Capacity that is paid for whether it runs or not: reservations, blocks of time, commitments."""

from datetime import datetime
from decimal import Decimal

import msgspec

from pilotlight.units import Usd, UsdPerHour, cents, count_of


class Paid(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of one pool that cost nothing more: ``count`` in all, ``free`` of them unused.

    It is there from ``starts`` until ``ends``, None for no such moment; from ``ends`` on the cloud ``takes`` the nodes,
    or asks a price for them. ``zone`` is empty where any will do. ``instances`` run on it, where that is told.
    """

    name: str
    count: int
    free: int
    zone: str = ""
    starts: datetime | None = None
    ends: datetime | None = None
    takes: bool = False
    instances: tuple[str, ...] = ()

    def lasts(self, now: datetime) -> bool:
        """True while it is there."""
        return (self.starts is None or self.starts <= now) and (self.ends is None or now < self.ends)

    def serves(self, zone: str) -> bool:
        """True where a node of a zone may run on it; without a zone the node's is open."""
        return not zone or self.zone in ("", zone)


class PaidIdle(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a pool that are paid for and run nowhere, with their GPUs.

    ``worth`` is what they are paid: by a bill, amortised, where it is ``effective``; else what they cost on demand.
    """

    pool: str
    instance_type: str
    nodes: int
    count: int
    gpus: int
    worth: UsdPerHour | None = None
    effective: bool = False
    until: datetime | None = None

    def __str__(self) -> str:
        """As people read it: "3 of 4 x p5.48xlarge in pool h100: 24 GPUs, $165.12/h on demand"."""
        basis = "effective" if self.effective else "on demand"
        worth = f", {cents(self.worth)}/h {basis}" if self.worth is not None else ""
        until = f", until {self.until:%Y-%m-%d %H:%M}" if self.until else ""
        which = f"{self.nodes} of {self.count} x {self.instance_type} in pool {self.pool}"
        return f"{which}: {count_of(self.gpus, 'GPU')}{worth}{until}"


class UnusedPool(msgspec.Struct, frozen=True, kw_only=True):
    """Capacity of a pool that was paid for and ran nowhere in a month: GPU-hours and dollars, as ``PaidIdle`` has them.

    ``gpus`` and ``worth`` (dollars an hour) are what goes on now. ``priced`` is false where some of it had no known
    price: then it is worth more than ``usd``. ``by_bill`` says whose ``worth`` is; ``effective`` of the dollars
    are a bill's.
    """

    gpus: int = 0
    worth: UsdPerHour | None = None
    gpu_hours: Decimal = Decimal(0)
    usd: Usd = Decimal(0)
    priced: bool = True
    by_bill: bool = False
    effective: Usd = Decimal(0)


class UnusedMonth(msgspec.Struct, frozen=True, kw_only=True):
    """Capacity that was paid for and unused in a month, by pool, as far as ``until``."""

    until: datetime
    pools: dict[str, UnusedPool] = {}
