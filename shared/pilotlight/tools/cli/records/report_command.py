"""``pilotlight report``: what a month cost, whose it was, and how far the cloud's bill agrees."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast, get_args

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.month_option import days_of
from pilotlight.tools.cli.state_option import line_of_records
from pilotlight.tools.cli.whole_file import see_writable
from pilotlight.units import shorten_figure

if TYPE_CHECKING:
    from pilotlight.decide.money.reconciliation import Correction
    from pilotlight.facts.money.bill import Anomaly, MeterDay
    from pilotlight.facts.money.money_policy import CostBasis, UnusedRule
    from pilotlight.facts.offers.paid_capacity import UnusedMonth
    from pilotlight.ports.state import State
    from pilotlight.tools.advice.money.month import Month, Unused
    from pilotlight.tools.advice.money.priced_days import PricedDays


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def report(
    month: Annotated[str, typer.Option(help="YYYY-MM; the month that goes on where none is named.")] = "",
    since: Annotated[str, typer.Option(help="Instead of a month: the first day, as 2026-10-05, UTC.")] = "",
    until: Annotated[str, typer.Option(help="The last day, which counts; left out: today.")] = "",
    by: Annotated[
        str, typer.Option(help="One table by namespace, team, class, pool, machine, pod or label=KEY, as label=app.")
    ] = "",
    team: Annotated[str | None, typer.Option(help="Only what this team held.")] = None,
    cluster: Annotated[str, typer.Option(help="One of many clusters; all where none is named.")] = "",
    per: Annotated[
        list[str] | None, typer.Option(help="A unit and how many there were, for a cost each.", metavar="UNIT=COUNT")
    ] = None,
    prometheus: Annotated[
        str, typer.Option(help="For pods and labels: a Prometheus that has kube-state-metrics.", metavar="URL")
    ] = "",
    auth: Annotated[str, typer.Option(help="google, aws:REGION, env:VARIABLE; left out: by its host.")] = "",
    basis: Annotated[
        str, typer.Option(help="Dollars of a bill that stand for the meter's: list, billed or effective.")
    ] = "effective",
    as_json: Annotated[bool, typer.Option("--json", help="Every figure, dollars to the billionth.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="One row a line; dollars to the cent.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with charts that opens offline.")] = None,
    focus: Annotated[
        Path | None, typer.Option(help="Write rows of FOCUS 1.2, in every basis: FILE.csv or FILE.parquet.")
    ] = None,
) -> None:
    """Report a month or other days: by machine, pool, team and class, with idle and shared time on their own lines.

    Dollars of nodes are the bill's where it tells them by --basis: with discounts and commitments spread over their use
    (effective), as invoiced (billed), or without either (list). Else they are metered, by the policy's prices.

    With --by it is one table, whose rows add up to the same total; --focus writes a file of them by day, node, team,
    namespace and class. A namespace's dollars on a node are divided among its pods by kube-state-metrics' GPU-time.

    Examples: [bold]pilotlight report --month 2026-10 --team research --per epochs=96[/bold];
    [bold]pilotlight report --since 2026-10-05 --until 2026-10-11 --by label=app --prometheus http://prometheus:9090[/bold]
    """
    _check_form(by, prometheus, as_json, as_csv, html, focus, per, basis)
    see_writable(html, focus)
    units, form = tuple(_unit(text) for text in per or ()), "json" if as_json else "csv" if as_csv else ""
    metered = _Metered.read_days(month, since, until, cluster, basis)
    if focus is not None:
        _write_focus(focus, metered, team, prometheus, auth)
    elif by:
        _print_by(by, metered, team, prometheus, auth, form)
    else:
        _print_whole(metered, _report(metered, team)._replace(units=units), team, html, form)
    metered.say_unlit()


def _print_whole(metered: "_Metered", found: "Month", team: str | None, html: Path | None, form: str) -> None:
    if form == "json":
        typer.echo(json.dumps(plain(found), indent=2))
    elif form == "csv":
        from pilotlight.tools.report.tables.month_table import as_csv as csv_of

        typer.echo(csv_of(found), nl=False)
    elif html is not None:
        _write_page(html, found, f"GPU spending, {metered.title}" + (f", team {team}" if team is not None else ""))
    else:
        from pilotlight.tools.cli.printing import console
        from pilotlight.tools.report.tables.month_table import render

        console().print(metered.head, markup=False)
        console().print(render(found))


def _write_focus(path: Path, metered: "_Metered", team: str | None, prometheus: str, auth: str) -> None:
    from pilotlight.facts.money.money_policy import CostBasis
    from pilotlight.tools.cli.records.report_focus import write_focus

    first, last = metered.first, metered.last
    bases = {
        name: {basis: _priced(metered.state, name, days, first, last, basis) for basis in get_args(CostBasis)}
        for name, days in metered.found.items()
    }
    typer.echo(write_focus(path, bases, first, last, team, prometheus, auth))


def _write_page(html: Path, found: "Month", title: str) -> None:
    from pilotlight.tools.report.pages.month_page import page

    try:
        html.write_text(page(found, title=title), "utf-8")
    except OSError as error:
        raise BadInput(f"{html}: {error.strerror}; name a file that can be written") from None
    typer.echo(f"{html} written")


def _check_form(
    by: str, prometheus: str, as_json: bool, as_csv: bool, html: Path | None, focus: Path | None,
    per: list[str] | None, basis: str,
) -> None:  # fmt: skip
    """Raise ``BadInput`` for options that do not go together."""
    from pilotlight.tools.cli.records.report_by import check_by

    if sum([as_json, as_csv, html is not None, focus is not None]) > 1:
        raise BadInput("--json, --csv, --html and --focus are four ways to have it: choose one")
    if by and (html is not None or focus is not None or per):
        raise BadInput("--by is one table: --html, --focus and --per are of the whole report")
    if focus is None:
        check_by(by, prometheus)
        return
    from pilotlight.tools.report.tables.focus_file import check_form

    check_form(focus)
    if per:
        raise BadInput("--focus writes dollars and GPU-hours: --per is of the whole report")
    if basis != "effective":
        raise BadInput("--focus writes every basis, each in its column: leave --basis out")


class _Metered(NamedTuple):
    """Days that were metered, from the first to the last, by cluster, and their state; ``head`` names the clusters."""

    first: date
    last: date
    found: "Mapping[str, Sequence[MeterDay]]"
    state: "State"
    head: str
    by_cluster: "Mapping[str, PricedDays]"
    basis: "CostBasis"
    sharing: "UnusedRule"

    @property
    def days(self) -> "Sequence[MeterDay]":
        """Those of all clusters."""
        return [day for days in self.found.values() for day in days]

    @property
    def priced(self) -> "PricedDays":
        """Those of all clusters, with the dollars that bills tell."""
        from pilotlight.tools.advice.money.priced_days import PricedDays

        return sum(self.by_cluster.values(), PricedDays())

    @classmethod
    def read_days(cls, month: str, since: str, until: str, cluster: str, basis: str) -> "_Metered":
        """Of a month, or of the days that are named. Raises ``BadInput`` where nothing is set up and none were kept."""
        from pilotlight.flow.billing import meter_nodes
        from pilotlight.tools.cli.month_option import chosen_clusters, period_of
        from pilotlight.wiring import app

        chosen = _basis(basis)
        wired = app(deployed_settings())
        first, last = period_of(month, since, until, wired.clock.now())
        names = chosen_clusters(cluster, wired.clusters)
        found = {name: meter_nodes.days(wired.state, name, first, last) for name in names}
        priced = {name: _priced(wired.state, name, days, first, last, chosen) for name, days in found.items()}
        head = line_of_records(wired.state)
        rules = {wired.for_cluster(name).policy.prices.unused_commitments for name in names}
        sharing = rules.pop() if len(rules) == 1 else "nobody"
        return cls(first, last, found, wired.state, head, priced, chosen, sharing)

    def say_unlit(self) -> None:
        """Say where nothing was metered, which an error goes without."""
        if not any(day.lines for day in self.days):
            typer.echo(f"no node was lit in {self.short} by the last billing_tick, which counts each minute", err=True)

    @property
    def whole_month(self) -> bool:
        """Whether it is one month of the calendar."""
        return self.first.day == 1 and self.last == days_of(f"{self.first:%Y-%m}", datetime.now(UTC))[1]

    @property
    def short(self) -> str:
        """The period as it is written on the command line."""
        return f"{self.first:%Y-%m}" if self.whole_month else f"{self.first} to {self.last}"

    @property
    def title(self) -> str:
        """The period for a heading."""
        return f"{self.first:%B %Y}" if self.whole_month else self.short


def _basis(word: str) -> "CostBasis":
    from pilotlight.facts.money.money_policy import CostBasis

    if word not in get_args(CostBasis):
        raise BadInput(f"--basis {word}: write list, billed or effective")
    return cast("CostBasis", word)


def _priced(
    state: "State", cluster: str, metered: "Sequence[MeterDay]", first: date, last: date, basis: "CostBasis"
) -> "PricedDays":
    """A cluster's days with the dollars that its bills tell."""
    from pilotlight.decide.money.counted_days import counted_days
    from pilotlight.flow.billing import billed_days
    from pilotlight.tools.advice.money.priced_days import price_days

    return price_days(metered, counted_days(metered, billed_days.days(state, cluster, first, last)).billed, basis)


def _report(metered: _Metered, team: str | None) -> "Month":
    from pilotlight.flow.billing import billed_days
    from pilotlight.tools.advice.money.month import month

    first, last, state, days, names = metered.first, metered.last, metered.state, metered.days, tuple(metered.found)
    billed = [day for name in names for day in billed_days.days(state, name, first, last)]
    teams = sorted({line.team for day in days for line in day.lines if line.kind == "used" and line.team})
    if team is not None and team not in teams and any(day.lines for day in days):
        typer.echo(f"no line of team {team!r} in {metered.short}: it has {', '.join(teams) or 'no team'}", err=True)
    found = month(days, billed, first, last, team=team, priced=metered.priced, sharing=metered.sharing)
    found = found._replace(basis=metered.basis)
    if team is not None:
        return found
    learnt, odd = _beside(state, names, first, last)
    paid_idle = _paid_idle(state, names, first) if metered.whole_month else ()
    return found._replace(paid_idle=paid_idle, learnt=learnt, anomalies=odd)


def _print_by(by: str, metered: _Metered, team: str | None, prometheus: str, auth: str, form: str) -> None:
    from pilotlight.tools.cli.records.report_by import rows_by
    from pilotlight.tools.report.tables.spend_table import Spend, as_csv, plain, table

    first, last, days = metered.first, metered.last, metered.priced.days
    spend = Spend(by, first, last, rows_by(by, days, first, last, team, prometheus, auth))
    if form == "json":
        typer.echo(json.dumps(plain(spend), indent=2))
    elif form == "csv":
        typer.echo(as_csv(spend), nl=False)
    else:
        from pilotlight.tools.cli.printing import console

        console().print(metered.head, markup=False)
        console().print(table(spend))
        if unpriced := sorted({name for day in days for name in day.unpriced}):
            typer.echo(f"in no line, for their price is not known: {', '.join(unpriced)}")


def _beside(
    state: "State", clusters: Sequence[str], first: date, last: date
) -> "tuple[tuple[tuple[str, Correction], ...], tuple[tuple[str, Anomaly], ...]]":
    """Corrections learnt of the clusters' bills, and their odd hours, by cluster where there are several."""
    from pilotlight.decide.money.counted_days import counted_days
    from pilotlight.decide.money.reconciliation import compare_with_bill, corrections
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
    from pilotlight.tools.advice.money.month import Unused

    sums: dict[str, Unused] = {}
    for each in filter(None, (paid_idle_of_month(state, name, first) for name in clusters)):
        for pool, more in each.pools.items():
            was = sums.get(pool, Unused(pool, Decimal(0), Decimal(0)))
            usd = was.usd + more.usd if was.usd is not None and more.priced else None
            sums[pool] = Unused(pool, was.gpu_hours + more.gpu_hours, usd, was.effective + more.effective)
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
