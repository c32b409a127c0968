"""Money in the policy file: caps, limits of ten minutes, budgets, prices, and the lines of a bill that count."""

from decimal import Decimal
from typing import Literal

import msgspec

from pilotlight.facts.limits.policy_terms import Dollars, ExactNumber, WrittenName
from pilotlight.facts.workload import WorkloadClass

CostBasis = Literal["list", "billed", "effective"]
"""What money is counted by: FOCUS's ListCost, BilledCost, or EffectiveCost, with commitments spread over their use."""


UnusedRule = Literal["nobody", "held", "committed"]
"""By what teams share commitments that no node used: by what they held, or by what they used of commitments."""


class LitCaps(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Caps on what is lit at once over all pools. None is no cap."""

    nodes: int | None = None  # Nodes lit at once.
    gpus: int | None = None  # GPUs lit at once.
    usd_per_hour: Dollars | None = None  # Dollars an hour of all that is lit at once.


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on change within ten minutes: nodes and dollars an hour added, nodes removed. None is no limit."""

    nodes_added: int | None = None  # Nodes added within ten minutes.
    usd_per_hour_added: Dollars | None = None  # Dollars an hour added within ten minutes.
    nodes_removed: int | None = None  # Nodes removed within ten minutes.


class ApproveOver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A purchase that would light more than this in all waits for a person. None asks nobody."""

    nodes: int | None = None  # Nodes lit at once.
    usd_per_hour: Dollars | None = None  # Dollars an hour lit at once.


class Caps(LitCaps, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Caps of the cluster: on what is lit at once, what changes within ten minutes, and what nobody is asked for."""

    ten_minutes: Limits = Limits()  # On what changes within ten minutes.
    approve_over: ApproveOver = ApproveOver()  # Purchases beyond it wait for a person.


class BudgetScope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose spending a budget counts: that of one team, one class or one pool. Exactly one of them."""

    team: str | None = None  # Work of this team.
    workload_class: WorkloadClass | None = msgspec.field(default=None, name="class")  # Work of this class.
    pool: str | None = None  # Nodes of this pool.

    def __str__(self) -> str:
        """As people say it: "team research"."""
        named = (("team", self.team), ("class", self.workload_class), ("pool", self.pool))
        return next((f"{kind} {name}" for kind, name in named if name is not None), "nobody")


StepDoes = Literal["notify", "spot-only", "no-new-buys"]


class LadderStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step of a budget's ladder: what is done once a share ``at`` of it is spent (1 is all of it)."""

    at: ExactNumber  # Share of the budget; 1 is all of it.
    do: StepDoes  # The step from there on.


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cap on spending: dollars held before each purchase, never above the limit.

    ``usd`` and ``gpu_hours`` count over a ``period`` of the calendar in ``timezone`` (weeks begin on Monday); dollars
    of period "hour" are what may be lit at once. ``hard`` is never passed: nodes of classes that may be stopped are
    held for in stretches, the others for their longest run; without it the typical run is held, and what goes beyond
    is reported. The steps of ``ladder`` are taken as spending goes on; in a dry run they are only announced. None
    touches serving, and those that refuse purchases leave out commitments, which are paid either way. ``basis`` says
    which dollars of a bill count; without one they are those billed, and lines at $0 leave their node metered.
    ``queues`` of Kueue admit no more while nothing more is bought: "name" is a ClusterQueue, "namespace/name" a
    LocalQueue. What it counts is kept under ``id``, its name where none is written: one that is renamed and keeps its
    id keeps that.
    """

    name: str  # Name to people.
    id: WrittenName = ""  # Key of its accounts; empty: the name.
    scope: BudgetScope | Literal["all"] = "all"  # Work that it counts.
    usd: Dollars | None = None  # Dollars over a period; None for no such cap.
    gpu_hours: ExactNumber | None = None  # Hours of one GPU over a period; None for no such cap.
    period: Literal["hour", "day", "week", "month"] = "month"  # Of the calendar; "hour": what is lit at once.
    timezone: str = "UTC"  # Zone of that calendar.
    hard: bool = True  # It is never passed.
    basis: CostBasis | None = None  # Dollars of a bill's lines that count; None: billed, above $0.
    # Steps at shares of it; an unwritten ladder is this one.
    ladder: tuple[LadderStep, ...] = (
        LadderStep(at=Decimal("0.5"), do="notify"),
        LadderStep(at=Decimal("0.8"), do="spot-only"),
        LadderStep(at=Decimal(1), do="no-new-buys"),
    )
    ladder_dry_run: bool = True  # Steps are announced, not taken.
    queues: tuple[str, ...] = ()  # Queues of Kueue that admit no more while nothing is bought.

    @property
    def account(self) -> str:
        """Name that its accounts are kept under."""
        return self.id or self.name


class BillScope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lines of a bill are this cluster's: those of its ``accounts`` and ``services`` (none named: of all) with
    all of its ``tags``, where "{cluster}" stands for the cluster's name. Of lines in them that lack these tags
    ``shared`` is this cluster's part; 0 leaves them out.
    """

    accounts: tuple[str, ...] = ()  # Accounts; none named: all.
    services: tuple[str, ...] = ()  # Services; none named: all.
    tags: dict[str, str] = {}  # Tags that a line has.
    shared: ExactNumber = Decimal(0)  # Part of lines without these tags.


class CurrencyRate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Worth of one unit of a currency in dollars from a day (yyyy-mm-dd) on, and who says so."""

    currency: str  # Its code.
    usd: Dollars  # Dollars that one unit is worth.
    date: str  # Day from which on, as 2026-11-01.
    source: str  # The figure's source.


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where prices come from: catalogue files, then ``overrides`` ("instance type/capacity type": $/h).

    ``charges`` are files of what a bill's codes cost, for clouds that bill hours without money; ``currencies`` what
    lines of a bill are worth that are in another currency. ``throughput`` adds GPU models to the catalogue's by class,
    and replaces those that it names, on the same scale. ``unused_commitments`` are shared in reports by the dollars
    that teams "held", or by those of commitments "committed" to their nodes.
    """

    files: tuple[str, ...] = ()  # Catalogue files, beside the policy.
    charges: tuple[str, ...] = ()  # Files of what a bill's codes cost.
    overrides: dict[str, Dollars] = {}  # Dollars an hour by "TYPE/CAPACITY".
    currencies: tuple[CurrencyRate, ...] = ()  # Rates of other currencies.
    max_age_days: int = 30  # Days after which a price is told as old.
    throughput: dict[str, dict[str, float]] = {}  # Speed by class and GPU model.
    unused_commitments: UnusedRule = "nobody"  # Rule by which teams share commitments that no node used.
