"""A period's cost and usage as rows of FOCUS 1.2, which FinOps tools read: https://focus.finops.org/focus-specification

A row is what one owner held of one node on one UTC day at one price; idle and shared time, and commitments that nobody
used, have rows of their own. Days have one price, that of the report's basis: all four costs are that.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple

from msgspec.structs import replace

from pilotlight.facts.labels import POOL, TEAM, WORKLOAD_CLASS
from pilotlight.facts.money.bill import CostLine, MeterDay
from pilotlight.tools.advice.money.month import Amount
from pilotlight.tools.report.tables.month_table import plain_name
from pilotlight.units import shorten_figure

ZERO = Decimal(0)
Kind = Literal["text", "decimal", "time"]

TEXTS = (
    "BillingAccountId", "BillingAccountName", "BillingAccountType", "BillingCurrency", "ChargeCategory", "ChargeClass",
    "ChargeDescription", "ChargeFrequency", "ConsumedUnit", "InvoiceId", "InvoiceIssuerName", "PricingCategory",
    "PricingUnit", "ProviderName", "PublisherName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory",
    "ServiceName", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId",
    "SubAccountName", "SubAccountType", "Tags",
    "x_CapacityType", "x_GpuModel", "x_LineKind", "x_Namespace", "x_Pod", "x_Pool", "x_Team", "x_WorkloadClass",
)  # fmt: skip
COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
PRICES = ("ListUnitPrice", "ContractedUnitPrice")
QUANTITIES = ("ConsumedQuantity", "PricingQuantity")
TIMES = ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")

COLUMNS: Mapping[str, Kind] = {
    **dict.fromkeys((*COSTS, *PRICES, *QUANTITIES, "x_GpuHours"), "decimal"),
    **dict.fromkeys(TIMES, "time"),
    **dict.fromkeys(TEXTS, "text"),
}
"""FOCUS's columns that are written, then ours, which it calls ``x_``."""

OURS = "Pilotlight"
PRICING = {"on-demand": "Standard", "spot": "Dynamic"}
SAYS = {"used": "held by", "idle": "lit and held by nobody", "shared": "boot, minimum or increment, nobody's"}
SAYS |= {"commitment": "a commitment that was paid for and not used, or its plan's own price"}

Part = tuple[MeterDay, CostLine, str, Amount]


class _Row(NamedTuple):
    """What is the same in all that one row sums up."""

    start: datetime
    end: datetime
    line: CostLine
    pod: str
    price: Decimal | None


def focus_rows(cluster: str, parts: Iterable[Part]) -> Iterator[dict[str, str]]:
    """The rows of a cluster, each by the names of ``COLUMNS``; a column without a value is left out.

    A part is a line of the meter's day, with the pod that held it and its amount. Their sums are the rows' sums.
    """
    sums: dict[_Row, Amount] = defaultdict(Amount)
    for day, line, pod, amount in parts:
        sums[_row(day, line, pod)] += amount
    for row, amount in sums.items():
        if any(amount):
            found = _columns(cluster, row, amount)
            yield {name: plain_name(value) if name in TEXTS else value for name, value in found.items() if value}


def _row(day: MeterDay, line: CostLine, pod: str) -> _Row:
    """The row of a line: a day that is cut at a midnight of some zone is one, a price that changes makes another."""
    start = datetime(day.day.year, day.day.month, day.day.day, tzinfo=UTC)
    end = min(max(day.until, start + timedelta(seconds=1)), start + timedelta(days=1))
    bare = replace(line, begin=None, gpu_hours=ZERO, usd=ZERO)
    price = shorten_figure(line.usd / line.gpu_hours, 9) if line.gpu_hours else None
    return _Row(start, end, bare, pod, price)


def _columns(cluster: str, row: _Row, amount: Amount) -> dict[str, str]:
    line, usd = row.line, f"{amount.usd:f}"
    machine = line.instance_type or line.pool
    quantity, unit, price = _priced(amount)
    sku = f"{machine}/{line.capacity_type}" if price else ""
    return {
        **dict.fromkeys(COSTS, usd),
        **(dict.fromkeys(PRICES, f"{price:f}") if price else {}),
        **dict.fromkeys(QUANTITIES, f"{quantity:f}"),
        **_periods(row),
        "BillingAccountId": cluster,
        "BillingAccountName": cluster,
        "BillingAccountType": "Cluster",
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "ChargeDescription": _description(row, machine),
        "ChargeFrequency": "Usage-Based",
        "ConsumedUnit": unit,
        "InvoiceIssuerName": OURS,
        "PricingCategory": PRICING.get(line.capacity_type, "Other"),
        "PricingUnit": unit,
        "ProviderName": OURS,
        "PublisherName": OURS,
        "ResourceId": line.node,
        "ResourceName": line.node,
        "ResourceType": "Node" if line.node else "",
        "ServiceCategory": "Compute",
        "ServiceName": "GPU nodes",
        "ServiceSubcategory": "Virtual Machines",
        "SkuId": sku,
        "SkuMeter": "GPU time" if sku else "",
        "SkuPriceDetails": json.dumps({"InstanceType": line.instance_type}) if sku and line.instance_type else "",
        "SkuPriceId": f"{sku}/{price:f}" if price else "",
        "SubAccountId": line.project,
        "SubAccountName": line.project,
        "SubAccountType": "Namespace" if line.project else "",
        "Tags": _tags(line),
        "x_CapacityType": line.capacity_type,
        "x_GpuHours": f"{amount.gpu_hours:f}",
        "x_GpuModel": line.gpu_model,
        "x_LineKind": line.kind,
        "x_Namespace": line.project,
        "x_Pod": row.pod,
        "x_Pool": line.pool,
        "x_Team": line.team,
        "x_WorkloadClass": line.workload_class,
    }


def _priced(amount: Amount) -> tuple[Decimal, str, Decimal]:
    """How many of which unit, and what one costs. Dollars without GPU-hours are of one thing."""
    if not amount.gpu_hours:
        return Decimal(1), "Units", amount.usd
    return amount.gpu_hours, "GPU-Hours", shorten_figure(amount.usd / amount.gpu_hours, 12)


def _periods(row: _Row) -> dict[str, str]:
    first = row.start.replace(day=1)
    after = (first + timedelta(days=32)).replace(day=1)
    return {
        name: f"{at:%Y-%m-%dT%H:%M:%SZ}" for name, at in zip(TIMES, (first, after, row.start, row.end), strict=True)
    }


def _description(row: _Row, machine: str) -> str:
    line = row.line
    held = ", ".join(part for part in (line.team, line.project, line.workload_class, row.pod) if part)
    return f"{machine} {line.capacity_type}: {SAYS[line.kind]}{f' {held}' if held else ''}"


def _tags(line: CostLine) -> str:
    tags = {TEAM[0]: line.team, POOL: line.pool, WORKLOAD_CLASS[0]: line.workload_class}
    return json.dumps({key: value for key, value in tags.items() if value})
