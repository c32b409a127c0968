"""Money in the policy file: caps, limits of ten minutes, budgets, prices, and the lines of a bill that count."""

from decimal import Decimal
from typing import Literal

import msgspec

from pilotlight.facts.limits.policy_terms import Dollars, ExactNumber, WrittenName
from pilotlight.facts.workload import WorkloadClass


class Caps(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Caps on what is lit at once over all pools. None is no cap."""

    nodes: int | None = None
    gpus: int | None = None
    usd_per_hour: Dollars | None = None


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on change within ten minutes: nodes and dollars an hour added, nodes removed. None is no limit."""

    nodes_added: int | None = None
    usd_per_hour_added: Dollars | None = None
    nodes_removed: int | None = None


class ApproveOver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A purchase that would light more than this in all waits for a person. None asks nobody."""

    nodes: int | None = None
    usd_per_hour: Dollars | None = None


class BudgetScope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose spending a budget counts: that of one team, one class or one pool. Exactly one of them."""

    team: str | None = None
    workload_class: WorkloadClass | None = msgspec.field(default=None, name="class")
    pool: str | None = None

    def __str__(self) -> str:
        """As people say it: "team research"."""
        named = (("team", self.team), ("class", self.workload_class), ("pool", self.pool))
        return next((f"{kind} {name}" for kind, name in named if name is not None), "nobody")


StepDoes = Literal["notify", "spot-only", "no-new-buys"]


class LadderStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step of a budget's ladder: what is done once a share ``at`` of it is spent (1 is all of it)."""

    at: ExactNumber
    do: StepDoes


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cap on spending: dollars held before each purchase, never above the limit.

    ``usd`` and ``gpu_hours`` count over a ``period`` of the calendar in ``timezone`` (weeks begin on Monday);
    ``usd_per_hour`` is what may be lit at once. ``hard`` is never passed: nodes of classes that may be stopped are
    held for in stretches, the others for their longest run; without it the typical run is held, and what goes beyond
    is reported. The steps of ``ladder`` are taken as spending goes on; in a dry run they are only announced. None
    touches serving. ``queues`` of Kueue admit no more while nothing more is bought: "name" is a ClusterQueue,
    "namespace/name" a LocalQueue. What it counts is kept under ``id``, its name where none is written: one that is
    renamed and keeps its id keeps that.
    """

    name: str  # Name to people.
    id: WrittenName = ""  # Key of its accounts; empty: the name.
    scope: BudgetScope | Literal["all"] = "all"  # Work that it counts.
    usd: Dollars | None = None  # Dollars over a period; None for no such cap.
    gpu_hours: ExactNumber | None = None  # Hours of one GPU over a period; None for no such cap.
    usd_per_hour: Dollars | None = None  # Dollars an hour that may be lit at once; None for no such cap.
    period: Literal["day", "week", "month"] = "month"  # Of the calendar; weeks begin on Monday.
    timezone: str = "UTC"  # Zone of that calendar.
    hard: bool = True  # It is never passed.
    # What is done at which share of it; an unwritten ladder is this one.
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

    accounts: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    tags: dict[str, str] = {}
    shared: ExactNumber = Decimal(0)


class CurrencyRate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Worth of one unit of a currency in dollars from a day (yyyy-mm-dd) on, and who says so."""

    currency: str
    usd: Dollars
    date: str
    source: str


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where prices come from: catalogue files, then ``overrides`` ("instance type/capacity type": $/h).

    ``charges`` are files of what a bill's codes cost, for clouds that bill hours without money; ``currencies`` what
    lines of a bill are worth that are in another currency. ``throughput`` adds GPU models to the catalogue's by class,
    and replaces those that it names, on the same scale.
    """

    files: tuple[str, ...] = ()
    charges: tuple[str, ...] = ()
    overrides: dict[str, Dollars] = {}
    currencies: tuple[CurrencyRate, ...] = ()
    max_age_days: int = 30
    throughput: dict[str, dict[str, float]] = {}
