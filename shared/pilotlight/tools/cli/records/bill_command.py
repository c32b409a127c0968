"""``pilotlight bill``: the cloud's bill held against the meter, by day and pool, and what is learnt from it."""

from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from pilotlight.errors import BadInput
from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.state_option import line_of_records
from pilotlight.units import Usd

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotlight.decide.money.reconciliation import Correction
    from pilotlight.facts.money.bill import MeterDay
    from pilotlight.ports.state import State
    from pilotlight.tools.report.tables.bill_table import Held

LEARN = timedelta(days=28)
NEITHER = "is PILOTLIGHT_BILLS set, and billing_tick called?"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(bill)


def bill(
    month: Annotated[str, typer.Option(help="YYYY-MM; the month that goes on where none is named.")] = "",
    cluster: Annotated[str, typer.Option(help="One of many clusters; all where none is named.")] = "",
    proof: Annotated[
        str,
        typer.Option(help="Instead of days: a month, YYYY-MM, by node, with why its bill differs.", metavar="MONTH"),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Every row, dollars to the billionth.")] = False,
) -> None:
    """Hold a month's bill against the meter, by day and pool, and say how much more or less a pool is billed.

    Reads only the state, and changes nothing: no budget is moved by what is learnt. With --proof it reads the FOCUS
    files that PILOTLIGHT_BILLS names, and tells by node what is metered, billed and effective, and why they differ.
    The parts add up: late start, minimum, rounding, price, discount, commitment, tax, other charges, unexplained.

    Examples: [bold]pilotlight bill --month 2026-10 --json[/bold]; [bold]pilotlight bill --proof 2026-10[/bold]
    """
    if proof:
        _print_proof(proof, month, cluster, as_json=as_json)
        return
    from pilotlight.tools.cli.month_option import chosen_clusters, days_of
    from pilotlight.tools.cli.printing import console, json_text
    from pilotlight.tools.report.tables.bill_table import plain, render
    from pilotlight.wiring import app

    wired = app(deployed_settings())
    first, last = days_of(month, wired.clock.now())
    held = [_held(wired.state, name, first, last) for name in chosen_clusters(cluster, wired.clusters)]
    head = line_of_records(wired.state)
    if as_json:
        typer.echo(json_text([plain(one) for one in held]))
        return
    console().print(head, markup=False)
    if any(one.days or one.awaited for one in held):
        console().print(render(held))
    else:
        typer.echo(f"no day of {first:%Y-%m} is both metered and billed: {NEITHER}")


def _print_proof(proof: str, month: str, cluster: str, *, as_json: bool) -> None:
    from pilotlight.tools.cli.month_option import chosen_clusters, days_of
    from pilotlight.tools.cli.printing import console, json_text
    from pilotlight.tools.cli.records.bill_proof import prove_month
    from pilotlight.tools.report.tables.proof_table import plain, render
    from pilotlight.wiring import app

    if month:
        raise BadInput("--proof names its month: leave --month out")
    wired = app(deployed_settings())
    first, last = days_of(proof, wired.clock.now(), "--proof")
    proved = prove_month(wired, chosen_clusters(cluster, wired.clusters), first, last)
    if as_json:
        typer.echo(json_text(plain(proved) if proved else None))
    elif proved:
        console().print(render(proved))
    else:
        typer.echo(f"no whole day of {first:%Y-%m} is both metered and billed: {NEITHER}")


def _held(state: "State", cluster: str, first: date, last: date) -> "Held":
    from pilotlight.decide.money.counted_days import counted_days
    from pilotlight.decide.money.reconciliation import compare_with_bill, corrections
    from pilotlight.flow.billing import billed_days, meter_nodes
    from pilotlight.tools.report.tables.bill_table import Held

    known = counted_days(
        meter_nodes.days(state, cluster, first - LEARN, last),
        billed_days.days(state, cluster, first - LEARN, last),
    )
    days = compare_with_bill(known.metered, known.billed)
    learnt = corrections(days)
    only = [one for day, one in known.metered.items() if day >= first and day not in known.billed]
    return Held(cluster, tuple(one for one in days if one.day >= first), learnt, awaited_bills(only, learnt))


def awaited_bills(metered: "Iterable[MeterDay]", learnt: "Iterable[Correction]") -> tuple[tuple[str, Usd, Usd], ...]:
    """Of days that are only metered, by pool: what was metered, and what that will be billed at by what is learnt."""
    from pilotlight.decide.money.reconciliation import ALL_POOLS, by_pool

    factors = {one.pool: one.factor for one in learnt}
    whole = factors.get(ALL_POOLS, Decimal(1))
    sums = by_pool(line for day in metered for line in day.lines)
    return tuple((pool, usd, usd * factors.get(pool, whole)) for pool, usd in sorted(sums.items()))
