"""Where budgets stand, as a table: what is held, billed and metered, what the period will end with, and the step."""

from collections.abc import Iterable
from decimal import Decimal

import msgspec
from rich.text import Text

from pilotlight.facts.money.budgets import Meter, Rung, Spent
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import cents

WARM, HOT = Decimal("0.5"), Decimal("0.8")


class BudgetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One limit of one budget. ``spent`` is None for a rate, of which only ``held`` counts. ``unpriced`` are the nodes
    of its period whose price is not known: what is metered is a least.
    """

    cluster: str
    meter: Meter
    held: Decimal
    spent: Spent | None = None
    rung: Rung | None = None
    unpriced: int = 0


_COLUMNS = (
    Column("budget"),
    Column("limit", "figure"),
    Column("settled and held", "figure"),
    Column("billed", "figure"),
    Column("metered", "figure"),
    Column("used", "figure"),
    Column("period ends with"),
    Column("runs out"),
    Column("step"),
)


def table(rows: Iterable[BudgetRow]) -> Sheet:
    """The table; the cluster's name only where there are several."""
    found = list(rows)
    many = len({row.cluster for row in found}) > 1
    made = Sheet(*([Column("cluster", "name")] if many else []), *_COLUMNS)
    for row in found:
        made.add(*([row.cluster] if many else []), *_cells(row))
    return made


def _cells(row: BudgetRow) -> list[str | Text]:
    meter, spent = row.meter, row.spent
    basis = f", {meter.budget.basis}" if meter.budget.basis is not None and meter.measure == "usd" else ""
    name = f"{meter.budget.name} ({meter.budget.scope}{basis})"
    limit = f"{_amount(meter, meter.limit)} a{'n hour' if meter.end is None else ' ' + meter.budget.period}"
    if spent is None:
        return [name, limit, _amount(meter, row.held), "", "", _share(row.held, meter.limit), "", "", ""]
    out, used_up = spent.forecast.runs_out, spent.total >= meter.limit
    return [
        name,
        limit,
        _amount(meter, row.held),
        _amount(meter, spent.billed),
        f"{'at least ' if row.unpriced else ''}{_amount(meter, spent.metered)}",
        _share(spent.total, meter.limit),
        f"{'at least ' if row.unpriced else ''}{_ends_with(spent)}",
        Text("used up" if used_up else f"{out:%a %d %b %H:%M}", style="red")
        if out or used_up
        else Text("-", style="dim"),
        _step(row),
    ]


def _ends_with(spent: Spent) -> str:
    coming = spent.forecast
    likely = _amount(spent.meter, coming.likely)
    if coming.low is None or coming.high is None:
        by = "as held" if coming.likely == spent.held > spent.total else "today's pace"
        return f"{likely} ({by})"
    return f"{likely} ({_amount(spent.meter, coming.low)} to {_amount(spent.meter, coming.high)})"


def _share(used: Decimal, limit: Decimal) -> Text:
    share = used / limit if limit else Decimal(1)
    style = "green" if share < WARM else "yellow" if share < HOT else "bold red"
    return Text(f"{float(share):.0%}".replace("%", " %"), style=style)


def _step(row: BudgetRow) -> Text:
    """The step in force. In a dry run it is what would be."""
    if row.rung is None or not row.rung.at or row.rung.start != row.meter.start:
        return Text("-", style="dim")
    does = next((step.do for step in row.meter.budget.ladder if step.at == row.rung.at), "")
    if row.meter.budget.ladder_dry_run and does != "notify":
        return Text(f"would: {does}", style="yellow")
    return Text(does, style="yellow" if does == "notify" else "bold red")


def _amount(meter: Meter, figure: Decimal) -> str:
    return f"{figure:,.1f} GPU-h" if meter.measure == "gpu_hours" else cents(figure)
