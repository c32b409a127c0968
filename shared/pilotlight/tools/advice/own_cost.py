"""Pilotlight's own cost of a month where infra/terraform runs it: a sum of uses x prices, free tiers taken off."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from pilotlight.units import shorten_figure

Cloud = Literal["google", "aws"]

DAYS = Decimal("30.4375")
"""Days of a month: a year of 365.25 days by twelve."""
HOURS = DAYS * 24
MINUTES = HOURS * 60
KIB_PER_GIB = Decimal(2**20)
TICKS_PER_DAY = 2 * 24 * 60
"""Of one cluster: two a minute, one of them to count money (infra/terraform/modules/plan)."""
BILL_TICKS_PER_DAY = 6 * 24
"""More of one cluster where a bill is read: one every ten minutes."""
BILL_READS_PER_DAY = 24
"""Of a bill in a warehouse's table: once an hour."""
LOOKED_BACK = 35
"""Days at most that each minute's budgets look back on."""
JOBS = 2
SECRETS = 2
"""Of one cluster: schedules, and a kubeconfig with a token for the cloud."""


class UnitPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars of one unit, and how many a month cost nothing."""

    usd: Decimal
    free_per_month: Decimal
    source: str


class Use(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Amount that one delivery takes, or that is there at once."""

    amount: Decimal
    source: str


class OwnPrices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price file (data/prices/self.yaml, self-aws.yaml), dated."""

    as_of: str
    region: str
    prices: dict[str, UnitPrice]
    uses: dict[str, Use]


class OwnLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the month: ``used`` units, of which ``paid`` are over the free tier."""

    what: str
    used: Decimal
    paid: Decimal
    usd: Decimal
    source: str


class Fleet(NamedTuple):
    """Clusters, their nodes lit in the mean, all together, budgets of each, and days that they have run."""

    clusters: int = 1
    nodes: int = 0
    budgets: int = 0
    days: int = LOOKED_BACK


def own_cost(
    found: OwnPrices,
    events_per_day: int,
    fleet: Fleet = Fleet(),  # noqa: B008  It is a value.
    *,
    addresses: int = 1,
    bill_gib: Decimal | None = None,
    cloud: Cloud = "google",
) -> list[OwnLine]:
    """The lines of a month, dearest first. ``addresses`` is 0 where no network is made (GKE's DNS endpoint, AWS).

    Every event and every tick is one delivery. ``bill_gib`` is what a query of the bill's table scans, 0 for a bill in
    files, None without one. An unknown price or use raises ``KeyError``: it is never $0.
    """
    clusters, ticks = fleet.clusters, TICKS_PER_DAY + (0 if bill_gib is None else BILL_TICKS_PER_DAY)
    deliveries = (Decimal(events_per_day) + ticks * clusters) * DAYS
    each = {name: use.amount for name, use in found.uses.items()}
    stored = partial(_stored, each, events_per_day * DAYS, fleet)
    looked_back = partial(_looked_back, each, fleet, ("day",) if bill_gib is None else ("day", "billed_day"))
    used = {
        "request": deliveries,
        "gib_second": deliveries * each["cpu_seconds"] * each["gib"],
        "scanned_gib": (bill_gib or Decimal(0)) * BILL_READS_PER_DAY * DAYS * clusters,
        "secret_version": Decimal(SECRETS * clusters),
    }
    if cloud == "aws":
        used |= {
            "read_unit": stored("read_units") + looked_back("read_units"),
            "write_unit": stored("write_units"),
            "scheduled_call": ticks * clusters * DAYS,
            "queue_request": deliveries * each["queue_requests"] + MINUTES * each["queues"] * each["polls"],
        }
    else:
        used |= {
            "cpu_second": deliveries * each["cpu_seconds"],
            "document_read": stored("reads") + looked_back("reads"),
            "document_write": stored("writes"),
            "document_delete": events_per_day * DAYS * each["document_deletes"]
            + MINUTES * clusters * each["minute_deletes"],
            "published_gib": deliveries * each["published_kib"] / KIB_PER_GIB,
            "scheduled_job": Decimal((JOBS + (bill_gib is not None)) * clusters),
            "nat_instance_hour": each["nat_instances"] * HOURS if addresses else Decimal(0),
            "address_hour": addresses * HOURS,
        }
    lines = (_line(name, amount, found.prices[name]) for name, amount in used.items())
    return sorted(lines, key=lambda line: -line.usd)


def _stored(each: Mapping[str, Decimal], events: Decimal, fleet: Fleet, what: str) -> Decimal:
    """Store operations of a kind in a month, but for earlier days (bench/money/own_operations.py)."""
    a_cluster = each[f"minute_{what}"] + fleet.budgets * each[f"budget_{what}"]
    a_minute = fleet.clusters * a_cluster + fleet.nodes * each[f"node_{what}"]
    return events * each[f"document_{what}"] + MINUTES * a_minute


def _looked_back(each: Mapping[str, Decimal], fleet: Fleet, kinds: Sequence[str], what: str) -> Decimal:
    """Records of earlier days that are read in a month, as metered and as billed: ``each`` is a minute's mean."""
    a_day = [fleet.clusters * each[f"{kind}_{what}"] + fleet.nodes * each[f"{kind}_node_{what}"] for kind in kinds]
    return MINUTES * min(fleet.days, LOOKED_BACK) * sum(a_day, Decimal(0))


def _line(name: str, used: Decimal, price: UnitPrice) -> OwnLine:
    paid = max(Decimal(0), used - price.free_per_month)
    usd = shorten_figure(paid * price.usd)  # As it is printed: lines add up to their sum.
    return OwnLine(what=name, used=used, paid=paid, usd=usd, source=price.source)
