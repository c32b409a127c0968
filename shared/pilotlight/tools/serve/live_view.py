"""The view that the live page shows of one cluster at a moment; ADR 33 says how it travels."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

import msgspec

from pilotlight.facts.capacity import Mode
from pilotlight.tools.glance.glance import Resting, Ticked
from pilotlight.units import Seconds, Usd, UsdPerHour

TileState = Literal["working", "idle", "booting", "closed", "not-ready", "going"]
"""``closed``: nothing new may bind to it. ``going``: it is released now, or somebody takes it."""


class Tile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node. ``used`` are GPUs in use, ``pods`` the first of those on it that hold a GPU, each with what it holds,
    ``more`` how many others do."""

    pool: str
    type: str = ""
    capacity: str = ""
    zone: str = ""
    state: TileState
    gpus: float = 0
    used: float = 0
    usd: UsdPerHour | None = None
    pods: tuple[str, ...] = ()
    more: int = 0
    why: str = ""


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
    unpriced: int = 0
    week: tuple[GpuDay, ...] = ()
    budgets: tuple[BudgetLine, ...] = ()


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """One decision: what was done, line by line, and why. ``command`` shows all of it."""

    id: str
    at: datetime
    flow: str
    why: str
    did: tuple[str, ...] = ()
    open: bool = False
    command: str = ""


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


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster. ``nodes`` are by name; ``paid`` and ``used`` count GPUs, with those that boot."""

    cluster: str
    clusters: tuple[str, ...] = ()
    at: datetime
    every_s: Seconds = 5.0
    mode: Mode = "observe"
    advice: str = ""
    unseen: str = ""
    paid: float = 0
    used: float = 0
    booting: float = 0
    usd_per_hour: UsdPerHour = Decimal(0)
    money: Spending = Spending()
    nodes: dict[str, Tile] = {}
    waiting: tuple[Wait, ...] = ()
    todo: tuple[Todo, ...] = ()
    paused: tuple[Todo, ...] = ()
    decisions: tuple[Decided, ...] = ()
    resting: tuple[Resting, ...] = ()
    ticks: tuple[Ticked, ...] = ()
    holds: int = 0
    letters: int | None = None
    alerts_waiting: int = 0
    alerts_given_up: int = 0
    prices_age_s: Seconds | None = None
