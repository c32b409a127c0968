"""A cluster at a glance, for a person: whether it works, what is lit and why, what waits and needs whom."""

from datetime import datetime
from decimal import Decimal

import msgspec

from pilotlight.facts.capacity import Mode
from pilotlight.facts.workload import Finding
from pilotlight.units import Seconds, UsdPerHour


class Ticked(msgspec.Struct, frozen=True, kw_only=True):
    """When a function last worked on a tick (or on an event, where it buys), and how long ago; None: never.

    One that is not ``scheduled`` works when something comes: then it is the last time that it decided, took or told.
    """

    function: str
    at: datetime | None = None
    age_s: Seconds | None = None
    scheduled: bool = True


class PausedPools(msgspec.Struct, frozen=True, kw_only=True):
    """A pause of a pool, or of all ("*")."""

    pool: str
    reason: str
    by: str
    at: datetime


class LitNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is paid for, and why it is kept or goes."""

    node: str
    pool: str
    usd_per_hour: UsdPerHour | None
    verdict: str
    why: str


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of one shape that have no node yet, and what they wait for."""

    pods: int
    first: str
    verdict: str
    where: str
    why: str


class BudgetLeft(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars left of a limit, and its step in force."""

    budget: str
    measure: str
    limit: Decimal
    left: Decimal
    step: str


class ToApprove(msgspec.Struct, frozen=True, kw_only=True):
    """A purchase that waits for a person. ``decision`` is what to approve, where it is known."""

    pool: str
    nodes: int
    why: str
    decision: str


class Resting(msgspec.Struct, frozen=True, kw_only=True):
    """An offering that was refused and is not asked for until a moment."""

    offering: str
    until: datetime
    why: str


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster at a moment. ``unseen`` says why cluster and cloud could not be looked at; nodes and pods are then
    not known. ``held`` are holds that are open, ``letters`` dead letters where they are kept here, ``prices_age_s`` of
    the oldest price, ``prices_stale`` where that is older than the policy allows. ``needs`` a person, each with what
    to do.
    """

    cluster: str
    at: datetime
    mode: Mode
    advice: str = ""
    paused: tuple[PausedPools, ...] = ()
    ticks: tuple[Ticked, ...] = ()
    unseen: str = ""
    nodes: tuple[LitNode, ...] = ()
    usd_per_hour: UsdPerHour = Decimal(0)
    waiting: tuple[Waiting, ...] = ()
    findings: tuple[Finding, ...] = ()
    budgets: tuple[BudgetLeft, ...] = ()
    held: int = 0
    approvals: tuple[ToApprove, ...] = ()
    resting: tuple[Resting, ...] = ()
    letters: int | None = None
    alerts_waiting: int = 0
    alerts_given_up: int = 0
    prices_age_s: Seconds | None = None
    prices_stale: bool = False
    needs: tuple[str, ...] = ()
