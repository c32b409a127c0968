"""Dollars of a period by one attribute: as a table, as CSV and as JSON values, in cents that add up to the total."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple

from rich.text import Text

from pilotlight.tools.advice.money.month import Amount, cents
from pilotlight.tools.advice.money.spend_by import SpendRow
from pilotlight.tools.report.tables.month_table import TENTH, plain_name
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import CENT, shorten_figure

BESIDE = {
    "idle": "(idle: lit, held by nobody)",
    "shared": "(shared: boots, minimums)",
    "commitment": "(commitments: used by no node)",
}


class Spend(NamedTuple):
    """The rows of a period; ``by`` is what they are by."""

    by: str
    first: date
    last: date
    rows: Sequence[SpendRow]

    @property
    def total(self) -> Amount:
        """All rows."""
        return sum((row.amount for row in self.rows), Amount())


def table(spend: Spend) -> Sheet:
    """For a terminal."""
    total = spend.total
    title = f"{spend.first} to {spend.last}: ${total.usd:,.2f} for {total.gpu_hours:,.1f} GPU-hours, by what each held"
    sheet = Sheet(Column(spend.by, "name"), Column("GPU-hours", "figure"), Column("dollars", "figure"), title=title)
    for name, hours, usd in _shown(spend):
        sheet.add(Text(name), f"{hours:,.1f} h", f"${usd:,.2f}")
    return sheet


def as_csv(spend: Spend) -> str:
    """One row a line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((spend.by, "gpu_hours", "usd"))
    writer.writerows((plain_name(name), f"{hours:f}", f"{usd:f}") for name, hours, usd in _shown(spend))
    return out.getvalue()


def plain(spend: Spend) -> dict[str, Any]:
    """As JSON values, dollars to the billionth; the parts add up to their whole."""
    rows = [{"kind": row.kind, "name": row.name, **_amount(row.amount)} for row in spend.rows]
    return {"first": str(spend.first), "last": str(spend.last), "by": spend.by, **_amount(spend.total), "rows": rows}


def _amount(amount: Amount) -> dict[str, str]:
    return {"gpu_hours": str(shorten_figure(amount.gpu_hours, 9)), "usd": str(shorten_figure(amount.usd, 9))}


def _shown(spend: Spend) -> Iterator[tuple[str, Decimal, Decimal]]:
    usd = _steps(spend, lambda amount: amount.usd, CENT)
    hours = _steps(spend, lambda amount: amount.gpu_hours, TENTH)
    for row, its_hours, its_usd in zip(spend.rows, hours, usd, strict=True):
        yield BESIDE.get(row.kind) or row.name or "(none)", its_hours, its_usd


def _steps(spend: Spend, figure: Callable[[Amount], Decimal], step: Decimal) -> list[Decimal]:
    """A figure of every row in steps: those of a kind add up to the kind's, as the month's report has it."""
    kinds = {kind: [figure(row.amount) for row in rows] for kind, rows in groupby(spend.rows, lambda row: row.kind)}
    wholes = cents([sum(parts, Decimal(0)) for parts in kinds.values()], figure(spend.total), step)
    return [one for parts, whole in zip(kinds.values(), wholes, strict=True) for one in cents(parts, whole, step)]
