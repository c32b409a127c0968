"""``pilotlight sizes``: what a cloud rents in a region, and a price file to write your prices into."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import typer
from msgspec.structs import replace

from pilotlight.errors import BadInput
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.catalog import DiskPrice, Price
from pilotlight.facts.offers.cloud_shop import Size
from pilotlight.settings import Settings, deployed_settings


class Bills(NamedTuple):
    """A cloud's way to bill: its title, its name in catalogues, its steps in seconds, and disks with a price."""

    title: str
    cloud: str
    minimum_s: int
    increment_s: int
    disks: tuple[str, ...] = ()


CLOUDS = {"civo": Bills("Civo", "civo", 3600, 3600), "asg": Bills("AWS", "eks", 60, 1, ("gp3", "gp2"))}

_AWS_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
"""As eu-west-1; Civo's are as LON1."""

Known = Mapping[str, Mapping[CapacityType, Price]]
"""Prices that the cloud itself tells, by size."""

YOURS = "YOUR-PRICE"
"""No number, so that a file with a price left out is refused, and never bought at."""
_YOURS = {"usd_per_hour": YOURS, "source": "YOUR-SOURCE"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(sizes)


def sizes(
    named: Annotated[list[str] | None, typer.Argument(help="These sizes; left out: all with GPUs.")] = None,
    region: Annotated[str, typer.Option(help="As LON1 or eu-west-1; left out: that of PILOTLIGHT_POOLS.")] = "",
    catalog: Annotated[bool, typer.Option(help="A price file of them, with your prices left to write.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say what the cloud of PILOTLIGHT_POOLS rents in a region, or else the cloud whose region it is: AWS by its
    credentials, Civo by CIVO_TOKEN.

    Prices are yours to write, but for those that AWS tells: on demand, spot and disks, of that region and day.

    Example: [bold]pilotlight sizes g4g.40.kube.small --region LON1 --catalog > prices.yaml[/bold]
    """
    from pilotlight.connections import shop_at

    settings, bills, where = _cloud(deployed_settings(), region)
    shop = shop_at(settings, region)
    if shop is None:
        raise BadInput("name a region: --region LON1")
    chosen = _chosen(shop.sizes(), named or [], where)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(chosen))
    elif catalog:
        from pilotlight.ports.clouds import DiskShop

        known = shop.prices([size.name for size in chosen]).prices
        disks = shop.disk_prices(bills.disks) if isinstance(shop, DiskShop) else {}
        typer.echo(_file(bills, where, chosen, known, disks, datetime.now(UTC)), nl=False)
    else:
        _show(bills, where, chosen)


def _cloud(settings: Settings, region: str) -> tuple[Settings, Bills, str]:
    """The cloud of PILOTLIGHT_POOLS, or else the one whose region it is: with settings that name it."""
    kind, _, rest = settings.pools.partition(":")
    if kind in CLOUDS:
        return settings, CLOUDS[kind], region or rest.partition("/")[0]
    kind = "asg" if _AWS_REGION.fullmatch(region) else "civo"
    return replace(settings, pools=f"{kind}:{region}" if region else ""), CLOUDS[kind], region


def _chosen(sizes: Sequence[Size], named: Sequence[str], where: str) -> list[Size]:
    """The sizes of these names; without one, all that have GPUs."""
    found = {size.name: size for size in sizes}
    if missing := [name for name in named if name not in found]:
        raise BadInput(f"{missing[0]} is no size of {where}; pilotlight sizes --region {where} lists them")
    return [found[name] for name in named] or [size for size in found.values() if size.gpus]


def _file(
    bills: Bills, region: str, chosen: Sequence[Size], known: Known, disks: Mapping[str, DiskPrice], now: datetime
) -> str:
    """A catalogue file that is refused until its prices are numbers."""
    import msgspec
    import yaml

    body = {
        "name": f"{bills.cloud}-{region.lower()}",
        "as_of": f"{now:%Y-%m-%dT00:00:00Z}",
        **({"region": region} if bills.disks else {}),
        "notes": f"Sizes as {bills.title}'s API tells them; prices by hand where it told none.",
        "throughput_source": "none given; GPU models are not compared by speed",
        **({"disks": msgspec.to_builtins(dict(disks))} if disks else {}),
        "instance_types": {
            size.name: _entry(bills, size, known.get(size.name, {}), f"{now:%Y-%m-%d}") for size in chosen
        },
    }
    head = f"# {YOURS}: dollars an hour, of your contract or {bills.title}'s list; source: where you read it.\n"
    left = any("on-demand" not in known.get(size.name, {}) for size in chosen)
    return (head if left else "") + str(yaml.safe_dump(body, sort_keys=False, width=120))


def _entry(bills: Bills, size: Size, known: Mapping[CapacityType, Price], today: str) -> dict[str, object]:
    return {
        "cloud": bills.cloud,
        "gpu_model": size.gpu_model or "GPU",
        "gpus": size.gpus,
        **({"gpu_memory_gib": size.gpu_memory_gib} if size.gpu_memory_gib else {}),
        "cpu": str(size.cores),
        "memory": f"{size.memory_mib}Mi",
        **({"ephemeral": f"{size.disk_gb}G"} if size.disk_gb else {}),
        "minimum_s": bills.minimum_s,
        "increment_s": bills.increment_s,
        "prices": {
            "on-demand": _YOURS | {"date": today},
            **{
                kind: {"usd_per_hour": str(price.usd_per_hour), "source": price.source, "date": price.date}
                for kind, price in known.items()
            },
        },
    }


def _show(bills: Bills, region: str, chosen: Sequence[Size]) -> None:
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    figures = ("GPUs", "cores", "RAM MiB", "disk GB")
    heads = (Column(h, "figure" if h in figures else "words") for h in ("GPUs", "GPU", *figures[1:], "can be chosen"))
    table = Sheet(Column("size", "name"), *heads, title=f"{bills.title}, {region}")
    for size in chosen:
        amounts = (size.cores, size.memory_mib, size.disk_gb)
        chosable = (", ".join(size.zones) or "yes") if size.sold else "no"
        table.add(size.name, str(size.gpus), size.gpu_model, *(f"{n:,}" for n in amounts), chosable)
    out = console()
    out.print(table)
    file = "pilotlight sizes NAME --catalog > prices.yaml"
    if bills.disks:
        out.print(f"{file} writes their prices of today, as {bills.title} tells them.")
    else:
        out.print(f"{bills.title} tells no price here: {file}, and write yours into it.")
