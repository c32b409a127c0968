"""A cluster at a glance, for a person: whether it works, what is lit and why, what waits and needs whom."""

from datetime import datetime
from decimal import Decimal

import msgspec

from pilotlight.facts.modes import Mode
from pilotlight.facts.workload import Finding
from pilotlight.tools.glance.new_nodes import NewNode
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
    team: str = ""


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

    cluster: str  # Its name.
    at: datetime  # The moment, UTC.
    mode: Mode  # The policy's.
    advice: str = ""  # The mode's advice, in words.
    paused: tuple[PausedPools, ...] = ()  # Pools that a person stopped.
    ticks: tuple[Ticked, ...] = ()  # When each function last came round.
    unseen: str = ""  # Why cluster and cloud could not be looked at; else empty.
    nodes: tuple[LitNode, ...] = ()  # Lit nodes of our pools.
    usd_per_hour: UsdPerHour = Decimal(0)  # Of all that is lit, where prices are known.
    unpriced: int = 0  # Lit nodes whose price is not known.
    waiting: tuple[Waiting, ...] = ()  # Shapes of pods without a node.
    findings: tuple[Finding, ...] = ()  # Of the look's plan.
    budgets: tuple[BudgetLeft, ...] = ()  # Each limit with what is left.
    held: int = 0  # Holds that are open.
    approvals: tuple[ToApprove, ...] = ()  # Purchases that wait for a person.
    new_nodes: tuple[NewNode, ...] = ()  # Pools of whose new nodes anything is learned.
    resting: tuple[Resting, ...] = ()  # Offerings that are not asked for now.
    letters: int | None = None  # Dead letters; None where they are not kept here.
    alerts_waiting: int = 0  # Alerts on their way.
    alerts_given_up: int = 0  # Alerts that no channel took.
    prices_age_s: Seconds | None = None  # Of the oldest price; None where none has a date.
    prices_stale: bool = False  # Older than the policy allows.
    needs: tuple[str, ...] = ()  # Lines that need a person, each with what to do.
