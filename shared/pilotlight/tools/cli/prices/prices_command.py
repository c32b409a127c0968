"""``pilotlight prices``: a price file as the cloud tells its prices today."""

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.errors import BadInput, Failed
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.catalog import Catalog, DiskPrice, InstanceType, Price
from pilotlight.facts.offers.cloud_shop import ToldPrices
from pilotlight.ports.clouds import CloudAccount, DiskShop
from pilotlight.settings import deployed_settings, read
from pilotlight.tools.cli.whole_file import see_writable

CLOUDS = {"eks": "asg"}
"""The clouds that tell prices, by their name in catalogues: what their addresses begin with."""


class Change(NamedTuple):
    """A price that is written. ``was`` is None where the file had none."""

    instance_type: str
    capacity_type: CapacityType
    was: Price | None
    now: Price


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(prices)


def prices(
    file: Annotated[Path, typer.Argument(help="A price file, as prices.files of a policy names it.")],
    region: Annotated[str, typer.Option(help="Region of the prices, as eu-west-1.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written; write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Write today's prices into a price file: AWS's Price List on demand and of disks, the dearest zone's on spot.

    A price of the file that the cloud does not tell is named, keeps its figure and its date, and the command ends with
    1: what is old stays old. Comments of the file are lost.

    Example: [bold]pilotlight prices aws-us-east-1.yaml --region us-east-1 --dry-run[/bold]
    """
    see_writable(None if dry_run else file)
    catalog = read_catalog(read(str(file)), str(file))
    told, disks = _told(catalog, region, file)
    changes, missing = compare_prices(catalog, told.prices)
    missing += [f"disks/{name}" for name in catalog.disks if name not in disks]
    if not dry_run:
        _write(file, catalog_text(catalog, region, changes, disks, datetime.now(UTC)))
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        rows = [change._asdict() for change in changes]
        typer.echo(json_text({"changes": rows, "disks": disks, "not_told": missing, "written": not dry_run}))
    else:
        for change in changes:
            typer.echo(_line(change))
        for name, disk in disks.items():
            typer.echo(_disk_line(name, catalog.disks.get(name), disk))
        typer.echo("dry run: nothing is written" if dry_run else f"wrote {file}")
    if missing:
        why = "; ".join(told.refused) or "is the type sold there?"
        raise Failed(f"{region} tells no price of {', '.join(missing)}: kept as it was; {why}")


def compare_prices(
    catalog: Catalog, told: Mapping[str, Mapping[CapacityType, Price]]
) -> tuple[list[Change], list[str]]:
    """Changes of each price of a file, with spot where it is told anew; and those that nobody tells."""
    changes, missing = [], []
    for name, kind in catalog.instance_types.items():
        news = told.get(name, {})
        changes += [Change(name, sold, kind.prices.get(sold), price) for sold, price in news.items()]
        missing += [f"{name}/{sold}" for sold in kind.prices if sold not in news]
    return changes, missing


def catalog_text(
    catalog: Catalog, region: str, changes: list[Change], disks: Mapping[str, DiskPrice], now: datetime
) -> str:
    """The file's new text, which is of that region from now on: what has its default is left out."""
    import yaml

    body = msgspec.to_builtins(catalog)
    del body["elsewhere"]
    plain = msgspec.to_builtins(InstanceType(cloud="", gpu_model="", gpus=0, prices={}))
    kinds = body["instance_types"]
    for name, entry in kinds.items():
        given = ("cloud", "gpu_model", "gpus", "prices")
        kinds[name] = {key: value for key, value in entry.items() if key in given or value != plain[key]}
    for change in changes:
        kinds[change.instance_type]["prices"][change.capacity_type] = msgspec.to_builtins(change.now)
    body["disks"] |= msgspec.to_builtins(dict(disks))
    body["region"] = region
    body["as_of"] = f"{now:%Y-%m-%dT00:00:00Z}"
    head = f"# Prices as the cloud told them on {now:%Y-%m-%d} (pilotlight prices); each has its own date.\n"
    return head + str(yaml.safe_dump(body, sort_keys=False, width=120))


def _told(catalog: Catalog, region: str, file: Path) -> tuple[ToldPrices, Mapping[str, DiskPrice]]:
    from pilotlight.adapters.clocks import SystemClock
    from pilotlight.adapters.pools.asg import open_shop
    from pilotlight.tools.cli.prices.sizes_command import CLOUDS as BILLS
    from pilotlight.tools.cli.proxied_http import ProxiedSite

    if catalog.region not in ("", region):
        raise BadInput(f"{file} has the prices of {catalog.region}: name that region, or another region's file")
    clouds = {kind.cloud for kind in catalog.instance_types.values()}
    if len(clouds) != 1 or not clouds <= CLOUDS.keys():
        named = ", ".join(sorted(clouds)) or "no cloud"
        raise BadInput(f"{file} has types of {named}: only a file of types of {', '.join(CLOUDS)} can be refreshed")
    settings, kind = deployed_settings(), CLOUDS[clouds.pop()]
    clock, environ, role = SystemClock(), settings.environ, settings.role_arn
    shop = open_shop(region, CloudAccount({}, clock, lambda: "", environ, role=role), ProxiedSite)
    disks = shop.disk_prices(list(catalog.disks) or BILLS[kind].disks) if isinstance(shop, DiskShop) else {}
    return shop.prices(list(catalog.instance_types)), disks


def _disk_line(name: str, old: DiskPrice | None, new: DiskPrice) -> str:
    was = f"${old.usd_per_gib_month} of {old.date}" if old else "no price"
    return f"disks/{name}: {was} -> ${new.usd_per_gib_month} of {new.date} ({new.source})"


def _line(change: Change) -> str:
    was = f"${change.was.usd_per_hour} of {change.was.date}" if change.was else "no price"
    price = f"${change.now.usd_per_hour} of {change.now.date} ({change.now.source})"
    return f"{change.instance_type}/{change.capacity_type}: {was} -> {price}"


def _write(file: Path, text: str) -> None:
    """All of it or nothing: the file is put in its place when it is whole and can be read again."""
    read_catalog(text.encode(), str(file))
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise BadInput(f"{file}: {error.strerror}; name a file that can be written") from None
