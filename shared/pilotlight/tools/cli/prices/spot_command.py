"""``pilotlight spot``: what spot of each type and zone is worth for a job, by what is known of it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight.codec.policy_values import parse_duration
from pilotlight.errors import BadInput
from pilotlight.facts.offers.cloud_shop import SpotPrices
from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.settings import Settings, deployed_settings, read
from pilotlight.tools.cli.real_cluster import Kubeconfig, Named, settings_for
from pilotlight.tools.replay.traces.spot_availability import named_apart, read_zone
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.tools.advice.spot_table_rows import SpotJob, SpotRow, SpotShare
    from pilotlight.wiring import App

WEEK = timedelta(days=7)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(spot)


def spot(
    run: Annotated[str, typer.Option(help="The job's run, as 24h.", metavar="DURATION")] = "24h",
    checkpoint: Annotated[str, typer.Option(help="How often it saves; 0 for never.", metavar="DURATION")] = "30m",
    takes: Annotated[str, typer.Option(help="Time that a checkpoint takes.", metavar="DURATION")] = "1m",
    zones: Annotated[list[str] | None, typer.Option(help="When spot was up in a zone: an availability file.")] = None,
    region: Annotated[str, typer.Option(help="Ask AWS for a week's prices there, as eu-west-1.")] = "",
    context: Named = "",
    kubeconfig: Kubeconfig = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with every figure.")] = False,
) -> None:
    """Show of each spot type and zone its price, how often it is up, how long it stays, and what a useful hour costs.

    A zone's file counts first, then the cluster's own history, then the catalogue. Changes nothing.

    Example: [bold]pilotlight spot --run 24h --checkpoint 30m --zones us-east-1a.json[/bold]
    """
    from pilotlight.tools.advice.spot_table_rows import SpotJob
    from pilotlight.wiring import App

    job = SpotJob(
        run_s=_seconds("--run", run, least=60),
        checkpoint_s=_seconds("--checkpoint", checkpoint),
        takes_s=_seconds("--takes", takes),
    )
    records = [read_zone(read(name), name) for name in zones or ()]
    settings = settings_for(context, kubeconfig) if context or kubeconfig else deployed_settings()
    app = App(settings)
    found = {name: _rows(app.for_cluster(name), records, region, job) for name in app.clusters}
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        shares = {name: _shares(app.for_cluster(name)) for name in found}
        typer.echo(json_text({"job": job, "clusters": found, "shares": shares}))
        return
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.spot_table import share_line, table

    for name, rows in found.items():
        console().print(table(name, rows, job))
        for share in _shares(app.for_cluster(name)):
            console().print(share_line(share))


def _rows(site: "App", records: Sequence[ZoneHistory], region: str, job: "SpotJob") -> "tuple[SpotRow, ...]":
    from pilotlight.flow.records import ledger
    from pilotlight.tools.advice.spot_table_rows import spot_rows

    if not any(pool.capacity_type == "spot" for pool in site.policy.pools.values()):
        raise BadInput(_none_sold(site))
    sold = [offering for offering in site.deps.offerings if offering.capacity_type == "spot"]
    if not sold:
        raise BadInput(_none_sold(site))
    lives = ledger.recall(site.state, site.settings.cluster_name).memory.lives
    names = sorted({offering.instance_type for offering in sold})
    prices = _prices(site, names, region) if region else _kept_prices(site)
    return spot_rows(sold, lives, named_apart(records), prices, job)


def _none_sold(site: "App") -> str:
    """Why there is no row."""
    named = sorted({pool.instance_type for pool in site.policy.pools.values() if pool.capacity_type == "spot"})
    if not named:
        return "the policy has no spot pool: add one with capacity_type: spot under pools"
    return (
        f"no spot price of {', '.join(named)} in catalogue {site.catalog.name}: name one that has it in "
        "PILOTLIGHT_CATALOG or prices.files, or set prices.overrides: {TYPE/spot: USD-PER-HOUR}"
    )


def _shares(site: "App") -> "tuple[SpotShare, ...]":
    """Share of each team's and class's work that is on spot; the cluster is asked only where the policy limits it."""
    from pilotlight.decide.offers.spot_share import limits, spot_shares
    from pilotlight.tools.advice.spot_table_rows import share_rows

    policy = site.deps.policy
    return share_rows(spot_shares(policy, site.deps.cluster.observe())) if limits(policy) else ()


def _kept_prices(site: "App") -> dict[str, SpotPrices]:
    """Spot's prices by zone that the state keeps."""
    from pilotlight.state_schema.billing_records import PRICES

    kept = PRICES.get(site.state, site.settings.cluster_name)
    zones = kept.value.zones if kept is not None else {}
    return {name: SpotPrices(now=one.now, least=one.least, most=one.most) for name, one in zones.items()}


def _prices(site: "App", names: Sequence[str], region: str) -> dict[str, SpotPrices]:
    from pilotlight.connections import shop_at
    from pilotlight.ports.clouds import SpotShop

    settings: Settings = site.settings
    pools = site.deps.policy.pools.values()
    on_aws = all(pool.cloud == "eks" for pool in pools if pool.capacity_type == "spot")
    shop = shop_at(msgspec.structs.replace(settings, pools=f"asg:{region}")) if on_aws else None
    if not isinstance(shop, SpotShop):
        raise BadInput("--region: the cloud that sells these pools tells no prices of the past; leave it out")
    return dict(shop.spot_prices(names, site.state.now() - WEEK))


def _seconds(option: str, text: str, least: Seconds = 0.0) -> Seconds:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise BadInput(f"{option} {text!r} {error}") from None
    if seconds < least:
        raise BadInput(f"{option} is {text}: give at least {least:.0f}s")
    return seconds
