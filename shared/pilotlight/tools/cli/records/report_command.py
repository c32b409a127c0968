"""``pilotlight report``: what a month cost, whose it was, and how far the cloud's bill agrees."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from pilotlight.errors import BadInput, Failed
from pilotlight.settings import deployed_settings
from pilotlight.units import shorten_figure

if TYPE_CHECKING:
    from pilotlight.decide.money.reconciliation import Correction
    from pilotlight.facts.money.bill import Anomaly
    from pilotlight.facts.offers.paid_capacity import UnusedMonth
    from pilotlight.ports.state import State
    from pilotlight.tools.advice.month import Month, Unused


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def report(
    month: Annotated[str, typer.Option(help="YYYY-MM; the month that goes on where none is named.")] = "",
    team: Annotated[str | None, typer.Option(help="Only what this team held.")] = None,
    cluster: Annotated[str, typer.Option(help="One of many clusters; all where none is named.")] = "",
    per: Annotated[
        list[str] | None, typer.Option(help="A unit and how many there were, for a cost each.", metavar="UNIT=COUNT")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Every figure, dollars to the billionth.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="One row a line; dollars to the cent.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with charts that opens offline.")] = None,
) -> None:
    """Report a month: by machine, pool, team and class, with idle and shared time on their own lines.

    Reads only the state. Example: [bold]pilotlight report --month 2026-10 --team research --per epochs=96[/bold]
    """
    if sum([as_json, as_csv, html is not None]) > 1:
        raise BadInput("--json, --csv and --html are three ways to have it: choose one")
    found = _month(month, team, cluster)._replace(units=tuple(_unit(text) for text in per or ()))
    if as_json:
        typer.echo(json.dumps(plain(found), indent=2))
    elif as_csv:
        from pilotlight.tools.report.tables.month_table import as_csv as csv_of

        typer.echo(csv_of(found), nl=False)
    elif html is not None:
        from pilotlight.tools.report.pages.month_page import page

        title = f"GPU spending, {found.first:%B %Y}" + (f", team {team}" if team is not None else "")
        try:
            html.write_text(page(found, title=title), "utf-8")
        except OSError as error:
            raise Failed(f"{html}: {error.strerror}; name a file that can be written") from None
        typer.echo(f"{html} written")
    else:
        from pilotlight.tools.cli.printing import console
        from pilotlight.tools.report.tables.month_table import render

        console().print(render(found))


def _month(text: str, team: str | None, cluster: str) -> "Month":
    from pilotlight.flow.billing import billed_days, meter_nodes
    from pilotlight.tools.advice.month import month
    from pilotlight.tools.cli.month_option import chosen_clusters, days_of
    from pilotlight.wiring import app

    wired = app(deployed_settings())
    first, last = days_of(text, wired.clock.now())
    names = chosen_clusters(cluster, wired.clusters)
    metered = [day for name in names for day in meter_nodes.days(wired.state, name, first, last)]
    billed = [day for name in names for day in billed_days.days(wired.state, name, first, last)]
    teams = sorted({line.team for day in metered for line in day.lines if line.kind == "used" and line.team})
    if not any(day.lines for day in metered):
        typer.echo(f"no node was lit in {first:%Y-%m}, or billing_tick is not called once a minute", err=True)
    elif team is not None and team not in teams:
        typer.echo(f"no line of team {team!r} in {first:%Y-%m}: it has {', '.join(teams) or 'no team'}", err=True)
    found = month(metered, billed, first, last, team=team)
    if team is not None:
        return found
    learnt, odd = _beside(wired.state, names, first, last)
    return found._replace(paid_idle=_paid_idle(wired.state, names, first), learnt=learnt, anomalies=odd)


def _beside(
    state: "State", clusters: Sequence[str], first: date, last: date
) -> "tuple[tuple[tuple[str, Correction], ...], tuple[tuple[str, Anomaly], ...]]":
    """Corrections learnt of the clusters' bills, and their odd hours, by cluster where there are several."""
    from pilotlight.decide.money.reconciliation import compare_with_bill, corrections
    from pilotlight.decide.money.spend import counted_days
    from pilotlight.flow.billing import billed_days, meter_nodes
    from pilotlight.tools.cli.records.bill_command import LEARN

    learnt: list[tuple[str, Correction]] = []
    odd: list[tuple[str, Anomaly]] = []
    for name in clusters:
        said = name if len(clusters) > 1 else ""
        since = first - LEARN
        known = counted_days(meter_nodes.days(state, name, since, last), billed_days.days(state, name, since, last))
        learnt += [(said, one) for one in corrections(compare_with_bill(known.metered, known.billed))]
        odd += [(said, one) for one in anomalies_between(state, name, first, last)]
    return tuple(learnt), tuple(odd)


def _paid_idle(state: "State", clusters: Iterable[str], first: date) -> "tuple[Unused, ...]":
    """Capacity that all these clusters paid for and did not use, by pool."""
    from pilotlight.tools.advice.month import Unused

    sums: dict[str, Unused] = {}
    for each in filter(None, (paid_idle_of_month(state, name, first) for name in clusters)):
        for pool, more in each.pools.items():
            was = sums.get(pool, Unused(pool, Decimal(0), Decimal(0)))
            usd = was.usd + more.usd if was.usd is not None and more.priced else None
            sums[pool] = Unused(pool, was.gpu_hours + more.gpu_hours, usd)
    return tuple(each for _, each in sorted(sums.items()) if each.gpu_hours)


def _unit(text: str) -> tuple[str, Decimal]:
    name, _, number = text.rpartition("=")
    try:
        count = Decimal(number)
    except InvalidOperation:
        count = Decimal(0)
    if not name or not count.is_finite() or count <= 0:
        raise BadInput(f"--per {text}: write a unit and how many there were, as in epochs=96")
    return name, count


def plain(month: "Month") -> dict[str, Any]:
    """The report as JSON values; numbers as text, in which parts add up to their whole."""
    out = {name: _value(getattr(month, name)) for name in month._fields}
    ours = ("idle_share", "efficiency", "spot_share", "idle_at_blended", "idle_hour", "unrecovered")
    return out | {name: _exact(getattr(month, name)) for name in ours}


def _exact(value: Decimal | None) -> str | None:
    return None if value is None else str(shorten_figure(value, places=9))


def _value(value: Any) -> Any:
    match value:
        case Decimal():
            return _exact(value)
        case date():
            return str(value)
        case msgspec.Struct():
            return {name: _value(item) for name, item in msgspec.structs.asdict(value).items()}
        case tuple() if hasattr(value, "_fields"):
            return {name: _value(getattr(value, name)) for name in value._fields}
        case tuple():
            return [_value(item) for item in value]
    return value


def anomalies_between(state: "State", cluster: str, first: date, last: date) -> "Iterator[Anomaly]":
    """The odd hours of the days from the first to the last."""
    from pilotlight.state_schema.billing_records import ANOMALY

    for entry in ANOMALY.scan(state, f"{cluster}/", after=f"{cluster}/{first}"):
        if entry.value.at.date() <= last + timedelta(days=1) and entry.name < f"{cluster}/{last}T~":
            yield entry.value


def paid_idle_of_month(state: "State", cluster: str, first: date) -> "UnusedMonth | None":
    """Unused capacity as it was counted in the month of a day."""
    from pilotlight.state_schema.billing_records import PAID_IDLE

    found = PAID_IDLE.get(state, f"{cluster}/{first:%Y-%m}")
    return found.value if found else None
