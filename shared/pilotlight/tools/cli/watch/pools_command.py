"""``pilotlight pools``: every pool with its size, what is on its way, its price, who scales it, and its last error."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.settings import Settings, deployed_settings
from pilotlight.tools.cli.real_cluster import Kubeconfig, Named, settings_for
from pilotlight.tools.cli.served import header
from pilotlight.tools.cli.state_option import cluster_line
from pilotlight.tools.glance.pool_row import PoolRow
from pilotlight.units import clock_seconds

if TYPE_CHECKING:
    from pilotlight.wiring import App


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(pools)


def pools(
    context: Named = "",
    kubeconfig: Kubeconfig = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with every figure.")] = False,
) -> None:
    """Show of every pool its size, what is on its way or stands by, its price, mode, max, owner and last error.

    Below stands what the images that new nodes pull cost a week, and what a pre-pull by a DaemonSet, a disk snapshot or
    a lazy snapshotter would save.

    Asks the cloud, the cluster and the state of the deployment, or of the cluster that is named; changes nothing.

    Example: [bold]pilotlight pools --json[/bold]
    """
    from pilotlight.flow.abreast import abreast
    from pilotlight.wiring import App

    head = "" if context or kubeconfig else cluster_line()
    app = App(_settings(context, kubeconfig))
    found = abreast({name: partial(_rows, app.for_cluster(name)) for name in app.clusters}, app.settings.wait_s)
    for each in found.values():
        if isinstance(each, Exception):
            raise each
    rows = {name: each for name, each in found.items() if not isinstance(each, Exception)}
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(rows))
        return
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.pools_table import images_table, table

    said = head or header(app.settings, app.settings.state, here=True)
    console().print(said, markup=False)
    for name, each in rows.items():
        console().print(table(name, each))
        for part in images_table(name, each):
            console().print(part)


def _settings(context: str, kubeconfig: str) -> Settings:
    """The deployment's, as the environment says it; or those of a cluster that is named here."""
    return settings_for(context, kubeconfig) if context or kubeconfig else deployed_settings()


def _rows(site: "App") -> tuple[PoolRow, ...]:
    from pilotlight.decide.nodes.other_autoscalers import other_autoscalers
    from pilotlight.flow.records import flight_log, ledger
    from pilotlight.flow.records.brake_records import pause_reason
    from pilotlight.tools.glance.pool_lookup import pool_rows

    deps = site.deps
    if not deps.policy.pools:
        raise BadInput("the policy has no pools: write one under pools, or have pilotlight init write them")
    name, state = site.settings.cluster_name, site.state
    flights = [entry for _, entry in flight_log.in_flight(state, name)]
    memory = ledger.recall(state, name).memory
    now, view, clouds = state.now(), deps.cluster.observe(), deps.pools.describe()
    others = other_autoscalers(deps.policy, view, clouds, now)
    rows = pool_rows(deps.policy, deps.offerings, clouds, memory, flights, others, mode=deps.mode, now=now)
    rows = tuple(msgspec.structs.replace(row, paused=pause_reason(state, name, row.pool)) for row in rows)
    if not memory.first_work.images:
        return rows
    from pilotlight.tools.advice.image_worth import image_worths

    prices = {row.pool: row.usd_per_hour for row in rows if row.usd_per_hour is not None}
    worths = list(image_worths(deps.policy, memory, prices, clock_seconds(now)))
    own = {row.pool: tuple(one for one in worths if one.pool == row.pool) for row in rows}
    return tuple(msgspec.structs.replace(row, images=own[row.pool]) for row in rows)
