"""``pilotlight sizes``: what Civo rents in a region, and a price file to write your prices into."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.facts.shop import Size
from pilotlight.settings import deployed

YOURS = "YOUR-PRICE"
"""No number, so that a file with a price left out is refused, and never bought at."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(sizes)


def sizes(
    named: Annotated[list[str] | None, typer.Argument(help="These sizes; left out: all with GPUs.")] = None,
    region: Annotated[str, typer.Option(help="As LON1; left out: that of PILOTLIGHT_POOLS.")] = "",
    catalog: Annotated[bool, typer.Option(help="A price file of them, with your prices left to write.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say what Civo rents in a region, by CIVO_TOKEN. Its API tells no prices: they are yours to write.

    Example: [bold]pilotlight sizes g4g.40.kube.small --region LON1 --catalog > prices.yaml[/bold]
    """
    from pilotlight.connections import shop_at

    settings = deployed()
    where = region or settings.pools.removeprefix("civo:").partition("/")[0]
    shop = shop_at(settings, region)
    if shop is None:
        raise BadInput("name a region: --region LON1")
    found = {size.name: size for size in shop.sizes()}
    missing = [name for name in named or () if name not in found]
    if missing:
        raise BadInput(f"{missing[0]} is no size of {where}; pilotlight sizes --region {where} lists them")
    chosen = [found[name] for name in named] if named else [size for size in found.values() if size.gpus]
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(chosen)).decode())
    elif catalog:
        typer.echo(_file(where, chosen, datetime.now(UTC)), nl=False)
    else:
        _show(where, chosen)


def _file(region: str, chosen: Sequence[Size], now: datetime) -> str:
    """A catalogue file that is refused until its prices are numbers."""
    import yaml

    body = {
        "name": f"civo-{region.lower()}",
        "as_of": f"{now:%Y-%m-%dT00:00:00Z}",
        "notes": "Sizes as Civo's API tells them; prices by hand. Civo bills by the hour.",
        "throughput_source": "none given; GPU models are not compared by speed",
        "instance_types": {size.name: _entry(size, f"{now:%Y-%m-%d}") for size in chosen},
    }
    head = f"# {YOURS}: dollars an hour, of your contract or civo.com/pricing; source: where you read it.\n"
    return head + yaml.safe_dump(body, sort_keys=False, width=120)


def _entry(size: Size, today: str) -> dict[str, object]:
    return {
        "cloud": "civo",
        "gpu_model": size.gpu_model or "GPU",
        "gpus": size.gpus,
        "cpu": str(size.cores),
        "memory": f"{size.memory_mib}Mi",
        "ephemeral": f"{size.disk_gb}G",
        "minimum_s": 3600,
        "increment_s": 3600,
        "prices": {"on-demand": {"usd_per_hour": YOURS, "source": "YOUR-SOURCE", "date": today}},
    }


def _show(region: str, chosen: Sequence[Size]) -> None:
    from pilotlight.cli.printing import console
    from pilotlight.report.sheet import Column, Sheet

    figures = ("GPUs", "cores", "RAM MiB", "disk GB")
    heads = (Column(h, "figure" if h in figures else "words") for h in ("GPUs", "GPU", *figures[1:], "can be chosen"))
    table = Sheet(Column("size", "name"), *heads, title=f"Civo, {region}")
    for size in chosen:
        amounts = (size.cores, size.memory_mib, size.disk_gb)
        chosable = "yes" if size.sold else "no"
        table.add(size.name, str(size.gpus), size.gpu_model, *(f"{n:,}" for n in amounts), chosable)
    out = console()
    out.print(table)
    out.print("Civo's API tells no price: pilotlight sizes NAME --catalog > prices.yaml, and write yours into it.")
