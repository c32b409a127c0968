"""Budgets at work: a limit over a window, what is held and settled against it, and the node that holds it."""

from datetime import datetime
from decimal import Decimal
from typing import Literal

import msgspec

from pilotlight.facts.policy import Budget
from pilotlight.units import Seconds, UsdPerHour

Measure = Literal["usd", "gpu_hours", "usd_per_hour"]


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """One limit of one budget over one window. Dollars an hour are a rate, not a sum: their ``end`` is None."""

    budget: Budget
    measure: Measure
    limit: Decimal
    start: datetime
    end: datetime | None = None

    @property
    def key(self) -> str:
        """Unique over all budgets and windows: "research/usd/20261120T0500"."""
        return f"{self.budget.name}/{self.measure}/{self.start:%Y%m%dT%H%M}"


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What counts against a meter: ``settled`` at real cost, ``held`` by hold id. Changed by compare-and-set only."""

    settled: Decimal = Decimal(0)
    held: dict[str, Decimal] = {}

    @property
    def total(self) -> Decimal:
        """Settled and held."""
        return self.settled + sum(self.held.values(), Decimal(0))


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a node is bought for, as far as budgets ask.

    ``run_s`` is the longest run of that, ``run_source`` where the figure comes from; ``typical_s`` is the run that
    budgets with ``hard: false`` hold. ``minimum_s`` and ``increment_s`` are the cloud's billing steps.
    """

    pool: str
    team: str = ""
    workload_class: str = ""
    usd_per_hour: UsdPerHour
    gpus: int
    boot_s: Seconds
    idle_s: Seconds
    run_s: Seconds
    run_source: str
    typical_s: Seconds
    minimum_s: Seconds = 0
    increment_s: Seconds = 1


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """One node's claim on every meter that applies to it, from before it is bought until its cost is settled.

    Held while ``instance`` is empty, bought once it is known, stopped once ``ended_at`` is. A pod that binds before
    ``binds_until`` is covered for its whole run. ``frozen``: that moment could not be moved on, the node is cordoned.
    """

    id: str
    decision: str
    terms: Terms
    since: datetime
    binds_until: datetime
    instance: str = ""
    ended_at: datetime | None = None
    frozen: bool = False


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """How far a meter is used: settled and held."""

    meter: Meter
    total: Decimal


class Runs(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of pods that were watched: since when by uid, with the class, and how long the last of a class took."""

    begun: dict[str, tuple[str, datetime]] = {}
    lengths: dict[str, tuple[Seconds, ...]] = {}


class Money(msgspec.Struct, frozen=True, kw_only=True):
    """The balances a plan is made with. ``look_again_at`` is when the hold of a lit node must next be moved on.

    ``typical`` is the median run of a class, where it is known.
    """

    balances: tuple[Balance, ...] = ()
    look_again_at: datetime | None = None
    typical: dict[str, Seconds] = {}


NO_BUDGETS = Money()
