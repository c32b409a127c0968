"""``pilotlight budget``: where the budgets stand."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pilotlight.facts.policy import Policy
from pilotlight.ports.state import State
from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.state_option import cluster_line, line_of_records
from pilotlight.units import count_of, shorten_figure

if TYPE_CHECKING:
    from pilotlight.tools.report.tables.budget_table import BudgetRow
    from pilotlight.wiring import App


@dataclass(frozen=True)
class _Kept:
    """Budgets of a cluster, read without reaching the cluster."""

    name: str
    state: State
    policy: Policy


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(budget)


def budget(as_json: Annotated[bool, typer.Option("--json", help="As JSON, with every figure.")] = False) -> None:
    """Show of every budget what is held, billed and metered, how the period will end, and the ladder's step in force.

    Reads only the policy and the state. Purchases are judged by "settled and held", the ladder by billed and metered.
    Billed dollars are in the basis that a budget names; steps that refuse purchases leave out commitments.

    Example: [bold]pilotlight budget --json[/bold]
    """
    from pilotlight.wiring import app

    wired = app(deployed_settings())
    now = wired.clock.now()
    rows = [row for cluster in wired.clusters for row in _standings(wired.for_cluster(cluster), now)]
    head = cluster_line(known=True) if rows else line_of_records(wired.state)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text([_as_json(row) for row in rows]))
        return
    from pilotlight.tools.cli.printing import console

    console().print(head, markup=False)
    if not rows:
        if wired.settings.policy:
            typer.echo("the policy has no budgets: add some under budgets, as - {name: month, usd: 2000}")
        else:
            typer.echo("no policy is named, and the built-in one has no budgets: name yours by --policy")
        return
    from pilotlight.tools.report.tables.budget_table import table

    console().print(table(rows))
    if unpriced := max(row.unpriced for row in rows):
        typer.echo(f"{count_of(unpriced, 'node')} of unknown price: what is metered is a least; see pilotlight status")


def _standings(wired: "App", now: datetime) -> Iterator["BudgetRow"]:
    """Every limit of a cluster's budgets."""
    from pilotlight.decide.money.budget_limits import meters
    from pilotlight.flow.billing.billing_tick import budget_standings
    from pilotlight.flow.budgets import budget_accounts, budget_holds
    from pilotlight.tools.report.tables.budget_table import BudgetRow

    kept = _Kept(wired.settings.cluster_name, wired.state, wired.policy)
    spent = {one.meter.key: one for one in budget_standings(kept, now)}
    rungs = budget_holds.read_ladder(kept.state, kept.name)[0].rungs
    found = meters(kept.policy.budgets, now)
    held = budget_accounts.totals(kept, found)
    for meter in found:
        yield BudgetRow(
            cluster=kept.name,
            meter=meter,
            held=held[meter.key],
            spent=spent.get(meter.key),
            rung=rungs.get(meter.budget.account),
            unpriced=len(_unpriced(kept, meter.start.date(), now.date())) if meter.end else 0,
        )


def _unpriced(kept: _Kept, first: date, last: date) -> set[str]:
    """Nodes of a span of days whose price was not known when they were counted."""
    from pilotlight.flow.billing import meter_nodes

    return {node for day in meter_nodes.days(kept.state, kept.name, first, last) for node in day.unpriced}


def _as_json(row: "BudgetRow") -> dict[str, Any]:
    meter, spent = row.meter, row.spent
    in_period = row.rung is not None and row.rung.start == meter.start
    return {
        "cluster": row.cluster,
        "budget": meter.budget.name,
        "scope": str(meter.budget.scope),
        "measure": meter.measure,
        "period": meter.budget.period if meter.end else None,
        "start": meter.start if meter.end else None,
        "end": meter.end,
        "limit": meter.limit,
        "settled_and_held": row.held,
        "basis": meter.budget.basis,
        "billed": spent.billed if spent else None,
        "on_commitments": spent.sunk if spent else None,
        "metered": spent.metered if spent else None,
        "unpriced": row.unpriced,
        "used": shorten_figure(spent.share if spent else row.held / meter.limit if meter.limit else Decimal(1)),
        "forecast": spent.forecast if spent else None,
        "ladder_at": row.rung.at if row.rung and in_period else 0,
        "in_force": row.rung.step.do if row.rung and row.rung.step and in_period else None,
    }
