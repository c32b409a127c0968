"""``pilotlight cost-of-self``: what Pilotlight itself costs a month on Google Cloud or AWS."""

from decimal import Decimal
from typing import Annotated

import msgspec
import typer

from pilotlight import typed_json
from pilotlight.errors import BadInput
from pilotlight.settings import default_file, read
from pilotlight.tools.advice.money.month import cents
from pilotlight.tools.advice.own_cost import LOOKED_BACK, Cloud, Fleet, OwnLine, OwnPrices, own_cost

PRICES = {"google": "data/prices/self.yaml", "aws": "data/prices/self-aws.yaml"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("cost-of-self")(cost_of_self)


def cost_of_self(
    events_per_day: Annotated[int, typer.Option(min=0, help="Events beside the ticks: pending pods, notices, alerts.")],
    clusters: Annotated[int, typer.Option(min=1, help="Clusters looked after; each ticks every minute.")] = 1,
    nodes: Annotated[int, typer.Option(min=0, help="GPU nodes lit in the mean, in all clusters together.")] = 10,
    budgets: Annotated[int, typer.Option(min=0, help="Budgets of a cluster.")] = 1,
    days: Annotated[
        int, typer.Option(min=0, help="Days it has run: one minute of each hour reads up to 35 of them.")
    ] = LOOKED_BACK,
    bill_gib: Annotated[
        float | None, typer.Option(min=0, help="GiB that a query of the bill's table scans; 0 for a bill in files.")
    ] = None,
    addresses: Annotated[int, typer.Option(min=0, help="Fixed addresses on Google; 0 with GKE's DNS endpoint.")] = 1,
    cloud: Annotated[Cloud, typer.Option(help="Where its functions and its state are.")] = "google",
    prices: Annotated[str, typer.Option(help="A price file; left out: the one that comes with it.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say what Pilotlight itself costs a month, deployed by its Terraform, at dated list prices.

    Example: [bold]pilotlight cost-of-self --events-per-day 2000 --nodes 40[/bold]
    """
    where = prices or str(default_file(PRICES[cloud]))
    found = _prices(where, PRICES[cloud])
    try:
        lines = own_cost(
            found,
            events_per_day,
            Fleet(clusters, nodes, budgets, days),
            addresses=addresses,
            bill_gib=None if bill_gib is None else Decimal(str(bill_gib)),
            cloud=cloud,
        )
    except KeyError as error:
        raise BadInput(f"{where}: {error} is missing; an unknown price is not $0: write it") from None
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        body = {
            "usd_per_month": sum(line.usd for line in lines),
            "as_of": found.as_of,
            "region": found.region,
            "lines": lines,
        }
        typer.echo(json_text(body))
        return
    _show(found, lines)


def _prices(where: str, like: str) -> OwnPrices:
    import yaml

    from pilotlight.codec.bounded_yaml import load

    try:
        value = load(read(where))
        return typed_json.convert(value, OwnPrices, strict=False)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, msgspec.ValidationError) as error:
        raise BadInput(f"{where}: {error}; write it as {like} is") from None


def _show(found: OwnPrices, lines: list[OwnLine]) -> None:
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    heads = (Column(name, "figure") for name in ("used", "over the free tier", "dollars"))
    table = Sheet(Column("what"), *heads, title=f"Pilotlight itself, a month, prices of {found.as_of}, {found.region}")
    total = sum((line.usd for line in lines), Decimal(0))
    for line, usd in zip(lines, cents([line.usd for line in lines], total), strict=True):
        table.add(line.what.replace("_", " "), f"{line.used:,.0f}", f"{line.paid:,.0f}", f"${usd:,.2f}")
    table.add("all of it", "", "", f"${total:,.2f}", style="bold")
    out = console()
    out.print(table)
    assumed = [line.what.replace("_", " ") for line in lines if line.source.startswith("assumed")]
    uses = [name.replace("_", " ") for name, use in found.uses.items() if use.source.startswith("assumed")]
    out.print(f"Assumed, not read from a page: {', '.join([*assumed, *uses])}. --json gives every source.")
