"""The view that the live page shows of one cluster at a moment; ADR 33 says how it travels."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

import msgspec

from pilotlight.facts.modes import Mode
from pilotlight.facts.money.bill import LineKind
from pilotlight.tools.glance.glance import Resting, Ticked
from pilotlight.units import Seconds, Usd, UsdPerHour

TileState = Literal["working", "idle", "booting", "closed", "not-ready", "going"]
"""``closed``: nothing new may bind to it. ``going``: it is released now, or somebody takes it."""


class Tile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node. ``used`` are GPUs in use, ``pods`` the first of those on it that hold a GPU, each with what it holds,
    ``more`` how many others do."""

    pool: str  # The node's pool.
    type: str = ""  # Instance type.
    capacity: str = ""  # Capacity type.
    zone: str = ""  # The cloud's zone.
    state: TileState  # Of the node.
    gpus: float = 0  # Of the node.
    used: float = 0  # GPUs in use.
    usd: UsdPerHour | None = None  # An hour; None: no price known.
    pods: tuple[str, ...] = ()  # The first that hold a GPU, each with what it holds.
    more: int = 0  # How many others do.
    teams: tuple[str, ...] = ()  # Teams that pay for pods on it.
    why: str = ""  # The state's reason, in words.


class HalfHour(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Half an hour: dollars an hour at its end, and the nodes that decisions bought and released in it."""

    at: datetime
    usd: UsdPerHour = Decimal(0)
    bought: int = 0
    released: int = 0


class TeamSpend(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars of one team (``kind`` "used"), or of idle or shared time, today and this month."""

    team: str
    kind: LineKind
    today: Usd
    month: Usd


class GpuDay(msgspec.Struct, frozen=True, kw_only=True):
    """GPU-hours of one UTC day: paid for, and held by teams; and what they cost."""

    day: date
    paid: float
    used: float
    usd: Usd


class BudgetLine(msgspec.Struct, frozen=True, kw_only=True):
    """A budget in its running period. ``step`` is the one in force. ``hours``: its figures are GPU-hours."""

    budget: str
    period: str
    spent: Decimal
    held: Decimal
    limit: Decimal
    likely: Decimal
    step: str = ""
    hours: bool = False


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars that the meter counted today and this month (UTC), the last seven days, and where budgets stand."""

    today: Usd = Decimal(0)
    month: Usd = Decimal(0)
    likely: Usd = Decimal(0)  # The month's at its end, as it goes now.
    unpriced: int = 0  # Nodes that are in no sum, for want of a price.
    teams: tuple[TeamSpend, ...] = ()  # The dearest of the month first.
    week: tuple[GpuDay, ...] = ()
    budgets: tuple[BudgetLine, ...] = ()  # Those with a period.
    at_once: int = 0  # Budgets of dollars an hour, beside them.


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """One decision: what was done, line by line, and why. ``command`` shows all of it."""

    id: str
    at: datetime
    flow: str
    why: str
    did: tuple[str, ...] = ()
    open: bool = False
    command: str = ""
    teams: tuple[str, ...] = ()  # Of its pods.
    pools: tuple[str, ...] = ()  # Of its calls.


class Todo(msgspec.Struct, frozen=True, kw_only=True):
    """A line that needs a person, or a pause that one set: its words, and the command to copy, where there is one."""

    text: str
    command: str = ""


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of one shape without a node: how many, the first, what becomes of them, and the command that says why."""

    pods: int
    first: str
    verdict: str
    where: str
    why: str
    command: str
    team: str = ""
    pool: str = ""


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster. ``nodes`` are by name; ``paid`` and ``used`` count GPUs, with those that boot."""

    cluster: str  # This one's name.
    clusters: tuple[str, ...] = ()  # All names, to choose from.
    at: datetime  # The look's moment, UTC.
    every_s: Seconds = 5.0  # Seconds between looks.
    pretend: bool = False  # A world of serve's own: no cloud is asked.
    mode: Mode = "observe"  # The policy's.
    advice: str = ""  # The mode's advice, in words.
    unseen: str = ""  # Why it could not be looked at; else empty.
    paid: float = 0  # GPUs lit or booting.
    used: float = 0  # GPUs in use.
    booting: float = 0  # GPUs of nodes that boot.
    usd_per_hour: UsdPerHour = Decimal(0)  # Of all that is lit, where prices are known.
    unpriced: int = 0  # Lit nodes whose price is not known.
    money: Spending = Spending()  # Of the running month.
    nodes: dict[str, Tile] = {}  # By name.
    waiting: tuple[Wait, ...] = ()  # Pods without a node, by shape.
    waits_since: datetime | None = None  # When the oldest of them was made.
    waited: int = 0  # Pods that a node was bought for and that were bound today (UTC).
    wait_p95_s: Seconds | None = None  # The wait of the 95th of 100 of them; None where there is none.
    strip: tuple[HalfHour, ...] = ()  # The last 24 hours, the oldest first.
    todo: tuple[Todo, ...] = ()  # What needs a person, the most urgent first.
    paused: tuple[Todo, ...] = ()  # Pauses that a person set.
    decisions: tuple[Decided, ...] = ()  # The newest first.
    resting: tuple[Resting, ...] = ()  # Offerings that are not asked for now.
    ticks: tuple[Ticked, ...] = ()  # When each function last came round.
    holds: int = 0  # Holds that are open.
    letters: int | None = None  # Dead letters; None where they are not kept here.
    alerts_waiting: int = 0  # Alerts on their way.
    alerts_given_up: int = 0  # Alerts that no channel took.
    prices_age_s: Seconds | None = None  # Of the oldest price; None where none has a date.
