"""Budgets at work: a limit over a window, what is held and settled against it, and the node that holds it."""

from datetime import datetime
from decimal import Context, Decimal, localcontext
from functools import cached_property
from typing import Literal

import msgspec

from pilotlight.facts.messages import Outgoing
from pilotlight.facts.money.money_policy import Budget, BudgetScope, StepDoes
from pilotlight.units import Seconds, UsdPerHour

Measure = Literal["usd", "gpu_hours", "usd_per_hour"]
EXACT = Context(prec=100)
"""Digits enough that a sum of amounts, which have 28 each, is the same in every order."""
ENDLESS = "endless"
"""End of a window without one, in keys: after every date."""


class Meter(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One limit of one budget over one window. Dollars an hour are a rate, not a sum: their ``end`` is None."""

    budget: Budget
    measure: Measure
    limit: Decimal
    start: datetime
    end: datetime | None = None

    @cached_property
    def key(self) -> str:
        """Unique over all budgets and windows, in the order of their ends: "20261121T0500/research/usd/20261120T0500".
        One scan finds the windows of all budgets that have not ended, and none of those before.
        """
        end = f"{self.end:%Y%m%dT%H%M}" if self.end is not None else ENDLESS
        return f"{end}/{self.budget.account}/{self.measure}/{self.start:%Y%m%dT%H%M}"


class Account(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Sums that count against a meter, or a part of it. Changed by compare-and-set only, and an id moves one way in it.

    ``held`` by hold id, ``settled`` at real cost. ``done`` is what ids were settled at: they were held once and never
    come back; one is forgotten once its hold says that every account of its life has it.

    A meter with more holds than a record takes has ``parts``, as its first one says. ``moved`` is the room a part has
    from the others (the first one's is the limit and what it has moved), ``giving`` what it gave up for another part
    by the name of that transfer, ``taken`` the names of those it has added.
    """

    settled: Decimal = Decimal(0)
    held: dict[str, Decimal] = {}
    done: dict[str, Decimal] = {}
    parts: int = 1
    moved: Decimal = Decimal(0)
    giving: dict[str, "Transfer"] = {}
    taken: tuple[str, ...] = ()

    @property
    def total(self) -> Decimal:
        """Settled and held: the exact sum, rounded once."""
        known: Decimal | None = self.__dict__.get("exact")
        if known is None:
            with localcontext(EXACT):
                self.__dict__["exact"] = known = self.settled + sum(self.held.values(), Decimal(0))
        return +known

    def with_held(self, id: str, usd: Decimal) -> "Account":
        """The account with so much held for an id. Its total is worked out from this one's: it may hold for 1,500."""
        after = msgspec.structs.replace(self, held={**self.held, id: usd})
        known: Decimal | None = self.__dict__.get("exact")
        if known is not None:
            after.__dict__["exact"] = EXACT.add(known, EXACT.subtract(usd, self.held.get(id, Decimal(0))))
        return after


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """Room on its way to the part of a number."""

    to: int
    room: Decimal


class Payer(msgspec.Struct, frozen=True, kw_only=True):
    """A team and class whose pods hold a ``part`` of a node: all the parts of a node make 1."""

    team: str
    workload_class: str
    part: Decimal


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Terms on which a node is bought, as far as budgets ask."""

    pool: str  # The policy's pool.
    team: str = ""  # The team that pays.
    workload_class: str = ""  # That of its pods.
    usd_per_hour: UsdPerHour  # Of the node.
    gpus: int  # Devices of the node.
    boot_s: Seconds  # Seconds until it takes pods.
    idle_s: Seconds  # Seconds that it may idle.
    run_s: Seconds  # Longest run, in seconds.
    run_source: str  # Where that figure comes from.
    typical_s: Seconds  # Run that budgets with ``hard: false`` hold, in seconds.
    stretch_s: Seconds = 0  # Held at first by hard budgets whose cap may stop the node; 0: the whole run is held.
    stop_s: Seconds = 0  # Seconds that its pods take to stop in order, where known.
    calls_s: Seconds = 0  # Seconds of the calls, beside a whole run, of nodes that may end with it.
    minimum_s: Seconds = 0  # Seconds that are billed at least.
    increment_s: Seconds = 1  # Seconds by which it is billed then.
    owners: tuple[Payer, ...] = ()  # Who pays for which part, where that is not ``team`` alone.


class Priced(msgspec.Struct, frozen=True, kw_only=True):
    """Price of an hour up to a moment."""

    until: datetime
    usd_per_hour: UsdPerHour


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """One node's claim on every meter that applies to it, from before it is bought until its cost is settled.

    Held while ``instance`` is empty, bought once it is known (by the look of ``matched_at``), stopped once ``ended_at``
    is, ``closed`` once all of its ``accounts`` have settled it. Each account is listed before anything is held there.
    Hard budgets hold its node up to ``until``; a pod that binds before ``binds_until`` is covered for its whole run.
    ``frozen``: that could not be moved on, the node is cordoned. ``stopping``: its node is being stopped in order.
    ``void``: nothing was bought for it, so that it costs nothing. ``earlier`` are the prices before that of its terms,
    the oldest first: a price that changes counts from the end of what was held at the old one. ``classes`` and
    ``teams``: what each of its pods (by uid) was when it was first seen there: a label that changes later changes no
    stop, and moves no cost.
    ``told``: the meter was told of its prices, as they are. ``visited_since``: since then only pods that no budget pays
    for were on its node, if any.
    """

    id: str  # "<decision>.<call>.<node>".
    decision: str  # The one that buys it.
    terms: Terms  # What it is bought for.
    since: datetime  # When it was held.
    binds_until: datetime  # A pod that binds before is covered for its whole run.
    until: datetime  # Hard budgets hold its node up to here.
    instance: str = ""  # Empty until it is bought.
    matched_at: datetime | None = None  # The look that matched it to its instance.
    after: str = ""  # Hold that it took its instance over from: that one ends at the same look.
    accounts: tuple[str, ...] = ()  # Each is listed before anything is held there.
    ended_at: datetime | None = None  # When its node stopped.
    void: bool = False  # Nothing was bought for it: it costs nothing.
    closed: bool = False  # All of its accounts have settled it.
    frozen: bool = False  # It could not be moved on: the node is cordoned.
    stopping: bool = False  # Its node is being stopped in order.
    earlier: tuple[Priced, ...] = ()  # Prices before that of its terms, the oldest first.
    classes: dict[str, str] = {}  # Class that each pod (by uid) had when it was first seen there.
    teams: dict[str, str] = {}  # Team that each pod (by uid) had then.
    told: bool = False  # The meter was told of its prices, as they are.
    visited_since: datetime | None = None  # Only pods that no budget pays for were on its node since then, if any.


class HeldPrice(msgspec.Struct, frozen=True, kw_only=True):
    """The prices at which a node is held, by time: the meter counts with the same."""

    usd_per_hour: UsdPerHour
    earlier: tuple[Priced, ...] = ()


class Charged(msgspec.Struct, frozen=True, kw_only=True):
    """Until when an instance was charged by a hold that has ended: nobody charges that time again."""

    hold: str
    until: datetime


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """A meter, and how far it is used: settled and held."""

    meter: Meter
    total: Decimal


class Refusals(msgspec.Struct, frozen=True, kw_only=True):
    """When a Workload was refused of late, and the nodes of ``offering`` that there was no money for.

    ``untold``: the refusal that took it out of its queue, until its owners are told why.
    """

    times: tuple[datetime, ...] = ()
    offering: str = ""
    nodes: tuple[Terms, ...] = ()
    untold: datetime | None = None


class StepInForce(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a budget's ladder that is in force ``until`` its period ends; ``why`` has the figures."""

    budget: str
    scope: BudgetScope | Literal["all"]
    do: StepDoes
    why: str
    until: datetime


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """Where a budget stands on its ladder in the period from ``start``: ``at`` is its step's share, 0 for none.

    ``step`` is what acts; None while nothing does, as in a dry run.
    """

    start: datetime
    at: Decimal = Decimal(0)
    since: datetime | None = None
    step: StepInForce | None = None


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """Where each budget stands, and the alerts of the last change until they are sent. ``ladder/<cluster>``."""

    rungs: dict[str, Rung] = {}
    untold: tuple[Outgoing, ...] = ()


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Forecast of a period's end. ``low`` to ``high`` holds it four times in five; None where too few days are known.

    ``runs_out`` is when the limit will be reached, where that is within the period and not so already.
    """

    likely: Decimal
    low: Decimal | None = None
    high: Decimal | None = None
    runs_out: datetime | None = None


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """A limit, and how far it is used up: ``billed`` by the cloud, and ``metered`` for the time no bill covers yet.

    ``billed`` is in the budget's basis; ``sunk`` of it is of commitments, which no purchase that is refused saves.
    ``held`` is what the limit's account has settled and held: what purchases are judged by.
    """

    meter: Meter
    billed: Decimal
    metered: Decimal
    sunk: Decimal = Decimal(0)
    held: Decimal = Decimal(0)
    forecast: Forecast

    @property
    def total(self) -> Decimal:
        """Billed and metered."""
        return self.billed + self.metered

    @property
    def share(self) -> Decimal:
        """The part of the limit that is spent: 1 is all of it. A limit of nothing is spent."""
        return self._share(self.total)

    @property
    def marginal_share(self) -> Decimal:
        """The same without what is sunk: the part that refusing purchases could have saved."""
        return self._share(self.total - self.sunk)

    def _share(self, amount: Decimal) -> Decimal:
        return amount / self.meter.limit if self.meter.limit else Decimal(1)


class Money(msgspec.Struct, frozen=True, kw_only=True):
    """The balances a plan is made with, of windows ahead too where something is held.

    ``look_again_at`` is when the hold of a lit node must next be moved on. ``typical`` is the median run of a class,
    where it is known; ``steps`` are those of the budgets' ladders in force. ``frozen`` are nodes, by name, that nothing
    may bind to until there is room; true for an empty one for whose idling nothing more is held. ``capped`` are those
    of them whose idling a hard budget ends. ``lit`` counts the nodes that are held for. ``visited`` are nodes, by name,
    that only pods without money were on since then: they idle, whoever visits them.
    """

    balances: tuple[Balance, ...] = ()
    look_again_at: datetime | None = None
    typical: dict[str, Seconds] = {}
    steps: tuple[StepInForce, ...] = ()
    frozen: dict[str, bool] = {}
    capped: frozenset[str] = frozenset()
    lit: int = 0
    visited: dict[str, datetime] = {}


NO_BUDGETS = Money()
