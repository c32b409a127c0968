"""``pilotlight commitments``: what to pay ahead for a year or three, by the hours that nodes were lit."""

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pilotlight.errors import BadInput
from pilotlight.settings import deployed_settings
from pilotlight.units import cents

if TYPE_CHECKING:
    from pilotlight.decide.money.counted_days import CountedDays
    from pilotlight.facts.capacity import Offering
    from pilotlight.ports.state import State
    from pilotlight.tools.advice.commitments import PaidAhead, Term
    from pilotlight.wiring import App


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(commitments)


def commitments(
    rate: Annotated[
        list[str],
        typer.Option(help="Dollars an hour of a machine that is paid ahead.", metavar="MACHINE:TERM=USD"),
    ],
    cluster: Annotated[str, typer.Option(help="One of many clusters; all together where none is named.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Every figure as text.")] = False,
) -> None:
    """Advise what to pay ahead: how many nodes are lit for more than the break-even share of the metered hours.

    Reads the state, the policy and the catalogue; the prices paid ahead are your offer's, and nothing is bought.
    Nodes that commitments of the bill pay already are left out.

    Example: [bold]pilotlight commitments --rate p5.48xlarge:one-year=65.93 --rate p5.48xlarge:three-years=45.66[/bold]
    """
    from pilotlight.tools.cli.month_option import chosen_clusters
    from pilotlight.wiring import app

    wired = app(deployed_settings())
    terms = [_term(text) for text in rate]
    advised = _advised(wired, list(chosen_clusters(cluster, wired.clusters)), terms)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text([_plain(one) for one in advised]))
    else:
        _show(advised)


def _term(text: str) -> "tuple[str, Term]":
    from pilotlight.tools.advice.commitments import Term

    name, _, amount = text.partition("=")
    machine, _, term = name.rpartition(":")
    try:
        usd = Decimal(amount)
    except InvalidOperation:
        usd = Decimal(0)
    if not machine or not term or not usd.is_finite() or usd <= 0:
        raise BadInput(f"--rate {text}: write MACHINE:TERM=USD, as p5.48xlarge:one-year=65.93")
    return machine, Term(term, usd)


def _advised(wired: "App", clusters: list[str], terms: "list[tuple[str, Term]]") -> "list[PaidAhead]":
    from pilotlight.flow.billing import cost_anomalies
    from pilotlight.tools.advice.commitments import advice, nodes, paid_already, together

    sold = [one for name in clusters for one in wired.for_cluster(name).price_offerings()[0]]
    hours = together({name: list(cost_anomalies.hours(wired.state, name)) for name in clusters})
    known = [_counted(wired.state, name) for name in clusters]
    out = []
    for machine, term in terms:
        own = _price(sold, machine, "on-demand")
        if own is None:
            raise BadInput(
                f"--rate {machine}: no pool of the policy sells it on demand at a known price; name a type of a pool"
            )
        spot = _price(sold, machine, "spot")
        lit = nodes(hours, machine, own.gpus)
        already = paid_already(known, machine, own.gpus)
        out.append(advice(machine, own.usd_per_hour, term, lit, spot.usd_per_hour if spot else None, already))
    return out


def _counted(state: "State", cluster: str) -> "CountedDays":
    """Days of late as they were metered and billed."""
    from pilotlight.decide.money.counted_days import counted_days
    from pilotlight.flow.billing import billed_days, meter_nodes
    from pilotlight.flow.billing.billed_days import LOOK_BACK

    now = state.now()
    first, last = (now - LOOK_BACK).date(), now.date()
    return counted_days(meter_nodes.days(state, cluster, first, last), billed_days.days(state, cluster, first, last))


def _price(sold: "list[Offering]", machine: str, capacity_type: str) -> "Offering | None":
    return next((one for one in sold if (one.instance_type, one.capacity_type) == (machine, capacity_type)), None)


def _plain(one: "PaidAhead") -> dict[str, Any]:
    return {
        **one._asdict(),
        "term": one.term._asdict(),
        "already": one.already._asdict(),
        "saved": one.saved,
        "saved_a_year": one.saved_a_year,
        "enough": one.enough,
    }


def _show(advised: "list[PaidAhead]") -> None:
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    figures = ("by the hour", "ahead", "break-even", "nodes", "saved a year")
    table = Sheet(Column("machine", "name"), Column("term", "name"), *(Column(name, "figure") for name in figures))
    for one in advised:
        many, saved = (str(one.commit), cents(one.saved_a_year)) if one.enough else ("-", "-")
        ahead = cents(one.term.usd_per_hour)
        table.add(one.machine, one.term.name, cents(one.usd_per_hour), ahead, f"{one.break_even:.1%}", many, saved)
    out = console()
    out.print(table)
    for one in advised:
        for line in _sum(one):
            out.print(line)


def _sum(one: "PaidAhead") -> list[str]:
    """The sum behind an advice, in words."""
    name = f"{one.machine}, {one.term.name}"
    share = f"{one.term.usd_per_hour} / {one.usd_per_hour} = {one.break_even:.1%}"
    rule = f"{name}: {share}: below that use, by the hour is cheaper"
    already = (
        f"{name}: commitments of the bill pay for {one.already.nodes:.1f} nodes already, at "
        f"{cents(one.already.usd_per_hour)}/h each (effective): they are left out"
        if one.already.nodes
        else ""
    )
    spot = f"{name}: spot is {one.spot:.1%} of the price by the hour" if one.spot is not None else ""
    if one.spot is not None and one.spot < one.break_even:
        spot += ": less than paid ahead, for what may be interrupted"
    if not one.enough:
        few = f"{name}: hours metered: {one.hours}, too few; a week is needed: nothing is advised"
        return [line for line in (rule, spot, already, few) if line]
    uses = ", ".join(f"{use:.1%}" for use in one.uses[:8]) + (", ..." if len(one.uses) > 8 else "")
    seen = f"{name}: in {one.hours} metered hours the first node on was lit for {uses or 'none'} of them"
    paid = (
        f"{name}: {one.commit} ahead would have cost {cents(one.paid_so)} beside {cents(one.paid)} by the hour: "
        f"{cents(one.saved)} less"
    )
    return [line for line in (rule, spot, already, seen, paid) if line]
