"""A period's cost and usage as rows of FOCUS 1.2, which FinOps tools read: https://focus.finops.org/focus-specification

A row is what one owner held of one node on one UTC day at one price; idle and shared time, and commitments that nobody
used, have rows of their own. Each cost is the report's in its basis: BilledCost as billed, EffectiveCost as effective,
ListCost and ContractedCost as list, for no bill that is read tells a negotiated price. All commitments of a cluster are
one that is told in dollars.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple

from msgspec.structs import replace

from pilotlight.facts.labels import POOL, TEAM, WORKLOAD_CLASS
from pilotlight.facts.money.bill import CostLine, MeterDay
from pilotlight.facts.money.money_policy import CostBasis
from pilotlight.tools.advice.money.month import Amount
from pilotlight.tools.advice.money.priced_days import COMMITMENTS, Covered
from pilotlight.tools.report.tables.month_table import plain_name
from pilotlight.units import shorten_figure

ZERO = Decimal(0)
NANO = Decimal("1e-9")
Kind = Literal["text", "decimal", "time"]

TEXTS = (
    "BillingAccountId", "BillingAccountName", "BillingAccountType", "BillingCurrency", "ChargeCategory", "ChargeClass",
    "ChargeDescription", "ChargeFrequency", "CommitmentDiscountCategory", "CommitmentDiscountId",
    "CommitmentDiscountName", "CommitmentDiscountStatus", "CommitmentDiscountType", "CommitmentDiscountUnit",
    "ConsumedUnit", "InvoiceId", "InvoiceIssuerName", "PricingCategory",
    "PricingUnit", "ProviderName", "PublisherName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory",
    "ServiceName", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId",
    "SubAccountName", "SubAccountType", "Tags",
    "x_CapacityType", "x_GpuModel", "x_LineKind", "x_Namespace", "x_Pod", "x_Pool", "x_Team", "x_WorkloadClass",
)  # fmt: skip
COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
PRICES = ("ListUnitPrice", "ContractedUnitPrice")
QUANTITIES = ("CommitmentDiscountQuantity", "ConsumedQuantity", "PricingQuantity")
TIMES = ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")

COLUMNS: Mapping[str, Kind] = {
    **dict.fromkeys((*COSTS, *PRICES, *QUANTITIES, "x_GpuHours"), "decimal"),
    **dict.fromkeys(TIMES, "time"),
    **dict.fromkeys(TEXTS, "text"),
}
"""FOCUS's columns that are written, then ours, which it calls ``x_``."""

OURS = "Pilotlight"
PRICING = {"on-demand": "Standard", "spot": "Dynamic"}
SAYS = {
    "used": "held by",
    "idle": "lit and held by nobody",
    "shared": "boot, minimum or increment, nobody's",
    "commitment": "commitment that no node used",
}

Part = tuple[MeterDay, CostLine, str, Amount]


class _Row(NamedTuple):
    """What is the same in all that one row sums up."""

    start: datetime
    end: datetime
    line: CostLine
    pod: str


class _Costs(NamedTuple):
    """A row's amounts in each basis, and what of the effective one commitments paid."""

    listed: Amount = Amount()
    billed: Amount = Amount()
    effective: Amount = Amount()
    covered: Decimal = ZERO

    def __add__(self, other: object) -> "_Costs":
        assert isinstance(other, _Costs)
        return _Costs(
            self.listed + other.listed,
            self.billed + other.billed,
            self.effective + other.effective,
            self.covered + other.covered,
        )


def focus_rows(
    cluster: str, parts: Mapping[CostBasis, Iterable[Part]], covered: Iterable[Covered] = ()
) -> Iterator[dict[str, str]]:
    """The rows of a cluster, each by the names of ``COLUMNS``; a column without a value is left out.

    A part is a line of the meter's day, with the pod that held it and its amount. Their sums are the rows' sums, in
    each basis.
    """
    rows: dict[tuple[_Row, Decimal], _Costs] = defaultdict(_Costs)
    for row, costs in _costs(parts, covered):
        bare = replace(row.line, begin=None)
        rows[row._replace(line=bare), shorten_figure(costs.listed.rate, 9)] += costs
    for (row, _), costs in rows.items():
        if any((*costs.effective, costs.billed.usd, costs.listed.usd)):
            found = _columns(cluster, row, costs)
            yield {name: plain_name(value) if name in TEXTS else value for name, value in found.items() if value}


def _costs(parts: Mapping[CostBasis, Iterable[Part]], covered: Iterable[Covered]) -> Iterator[tuple[_Row, _Costs]]:
    """Rows of the same owner, node and day; a day that is cut at a midnight, or where a price changes, is several."""
    sums: dict[_Row, dict[CostBasis, Amount]] = defaultdict(dict)
    whole: dict[tuple[date, CostLine], Decimal] = defaultdict(Decimal)
    paid: dict[tuple[date, CostLine], Decimal] = defaultdict(Decimal)
    for basis, told in parts.items():
        for day, line, pod, amount in told:
            row = _row(day, line, pod)
            sums[row][basis] = sums[row].get(basis, Amount()) + amount
            whole[day.day, row.line] += amount.usd if basis == "effective" else ZERO
    for on, line, usd in covered:
        paid[on, _bare(line)] += usd
    for row, of in sums.items():
        listed, billed, effective = (of.get(basis, Amount()) for basis in ("list", "billed", "effective"))
        key = row.start.date(), row.line
        own = (paid[key] * effective.usd / whole[key]).quantize(NANO) if whole[key] else ZERO
        yield row, _Costs(listed, billed, effective, own)


def _row(day: MeterDay, line: CostLine, pod: str) -> _Row:
    start = datetime(day.day.year, day.day.month, day.day.day, tzinfo=UTC)
    end = min(max(day.until, start + timedelta(seconds=1)), start + timedelta(days=1))
    return _Row(start, end, _bare(line), pod)


def _bare(line: CostLine) -> CostLine:
    return replace(line, gpu_hours=ZERO, usd=ZERO)


def _columns(cluster: str, row: _Row, costs: _Costs) -> dict[str, str]:
    line = row.line
    machine = line.instance_type or line.pool
    quantity, unit, price = _priced(costs.listed)
    commitment = _commitment(cluster, row, costs)
    used = commitment.get("ChargeCategory") is None and commitment.get("CommitmentDiscountStatus") != "Unused"
    details = json.dumps({"InstanceType": line.instance_type}) if line.instance_type and line.node else ""
    return {
        "BilledCost": f"{costs.billed.usd:f}",
        "EffectiveCost": f"{costs.effective.usd:f}",
        **dict.fromkeys(("ListCost", "ContractedCost"), f"{costs.listed.usd:f}"),
        **dict.fromkeys(PRICES, f"{price:f}"),
        "PricingQuantity": f"{quantity:f}",
        "PricingUnit": unit,
        **({"ConsumedQuantity": f"{quantity:f}", "ConsumedUnit": unit} if used else {}),
        **_periods(row),
        "BillingAccountId": cluster,
        "BillingAccountName": cluster,
        "BillingAccountType": "Cluster",
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "ChargeDescription": _description(row, machine),
        "ChargeFrequency": "Usage-Based",
        "PricingCategory": PRICING.get(line.capacity_type, "Other"),
        **dict.fromkeys(("InvoiceIssuerName", "ProviderName", "PublisherName"), OURS),
        **dict.fromkeys(("ResourceId", "ResourceName"), line.node),
        "ResourceType": "Node" if line.node else "",
        "ServiceCategory": "Compute",
        "ServiceName": "GPU nodes",
        "ServiceSubcategory": "Virtual Machines",
        "SkuId": machine,
        "SkuMeter": "GPU time" if unit != UNITS else "Whole charge",
        "SkuPriceDetails": details,
        "SkuPriceId": f"{machine}/{line.capacity_type or line.kind}/{price:f}",
        "SubAccountId": line.project,
        "SubAccountName": line.project,
        "SubAccountType": "Namespace" if line.project else "",
        "Tags": _tags(line),
        "x_CapacityType": line.capacity_type,
        "x_GpuHours": f"{costs.effective.gpu_hours:f}",
        "x_GpuModel": line.gpu_model,
        "x_LineKind": line.kind,
        "x_Namespace": line.project,
        "x_Pod": row.pod,
        "x_Pool": line.pool,
        "x_Team": line.team,
        "x_WorkloadClass": line.workload_class,
        **commitment,
    }


def _commitment(cluster: str, row: _Row, costs: _Costs) -> dict[str, str]:
    """Columns of a row that commitments pay, of what nothing used of them, or of their own price."""
    fee = row.line.instance_type == COMMITMENTS["fee"]
    if row.line.kind != "commitment" and not costs.covered:
        return {}
    if fee:
        own = {"ChargeCategory": "Purchase", "ChargeFrequency": "Recurring", "PricingCategory": "Standard"}
        quantity = costs.billed.usd
    else:
        unused = row.line.kind == "commitment"
        own = {"PricingCategory": "Committed", "CommitmentDiscountStatus": "Unused" if unused else "Used"}
        quantity = costs.effective.usd if unused else costs.covered
    return {
        **own,
        "CommitmentDiscountCategory": "Spend",
        "CommitmentDiscountId": f"{cluster}/commitments",
        "CommitmentDiscountName": f"commitments of {cluster}",
        "CommitmentDiscountQuantity": f"{quantity:f}",
        "CommitmentDiscountType": "All commitments",
        "CommitmentDiscountUnit": "USD",
    }


UNITS = "Units"


def _priced(listed: Amount) -> tuple[Decimal, str, Decimal]:
    """How many of which unit, and what one costs, which is never below zero. Dollars without hours are of one thing."""
    if not listed.gpu_hours or listed.usd < 0:
        return Decimal(-1 if listed.usd < 0 else 1), UNITS, abs(listed.usd)
    return listed.gpu_hours, "GPU-Hours", shorten_figure(listed.rate, 12)


def _periods(row: _Row) -> dict[str, str]:
    first = row.start.replace(day=1)
    after = (first + timedelta(days=32)).replace(day=1)
    return {
        name: f"{at:%Y-%m-%dT%H:%M:%SZ}" for name, at in zip(TIMES, (first, after, row.start, row.end), strict=True)
    }


def _description(row: _Row, machine: str) -> str:
    line = row.line
    if line.kind == "commitment":
        return "price of commitments" if line.instance_type == COMMITMENTS["fee"] else SAYS[line.kind]
    held = ", ".join(part for part in (line.team, line.project, line.workload_class, row.pod) if part)
    return f"{machine} {line.capacity_type}: {SAYS[line.kind]}{f' {held}' if held else ''}"


def _tags(line: CostLine) -> str:
    tags = {TEAM[0]: line.team, POOL: line.pool, WORKLOAD_CLASS[0]: line.workload_class}
    return json.dumps({key: value for key, value in tags.items() if value})
