"""``pilotlight targets``: a report card of how GPUs are used and how long pods wait."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.state_option import cluster_line, line_of_records

if TYPE_CHECKING:
    from pilotlight.tools.advice.targets import Graded, PodsUse

DAY_S = 86_400.0
STEP_S = 300.0
MIB_PER_GIB = 1024


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(targets)


def targets(
    month: Annotated[str, typer.Option(help="YYYY-MM; the month that goes on where none is named.")] = "",
    cluster: Annotated[str, typer.Option(help="One of many clusters; all where none is named.")] = "",
    prometheus: Annotated[str, typer.Option(help="One with dcgm-exporter's series; its last day.", metavar="URL")] = "",
    device_gib: Annotated[float, typer.Option(min=1, help="Memory of a device, for the share that is used.")] = 80.0,
    auth: Annotated[str, typer.Option(help="google, aws:REGION, env:VARIABLE; left out: by its host.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON; met is null where it is not known.")] = False,
) -> None:
    """Grade fleet use, pods' memory and idling, and waits, by the targets of a guide to GPU scheduling.

    Use of the month comes from the state, waits from all that were counted, what pods did from telemetry.

    Example: [bold]pilotlight targets --prometheus http://prometheus:9090 --device-gib 80[/bold]
    """
    from pilotlight.flow.billing import meter_nodes
    from pilotlight.state_schema.decision_records import MEMORY
    from pilotlight.tools.advice.money.month import month as report_of
    from pilotlight.tools.advice.targets import PodsUse, card
    from pilotlight.tools.cli.month_option import chosen_clusters, days_of
    from pilotlight.wiring import app

    wired = app(deployed_settings())
    names = chosen_clusters(cluster, wired.clusters)
    first, last = days_of(month, wired.clock.now())
    head = cluster_line(known=True) if prometheus else line_of_records(wired.state)
    metered = [day for name in names for day in meter_nodes.days(wired.state, name, first, last)]
    found = report_of(metered, [], first, last)
    held = found.used.gpu_hours / found.total.gpu_hours if found.total.gpu_hours else None
    memories = [entry.value.tally for name in names if (entry := MEMORY.get(wired.state, name)) is not None]
    graded = card(held, _use(prometheus, auth, device_gib) if prometheus else PodsUse(), memories)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text([one._asdict() for one in graded]))
    else:
        _show(graded, head)


def _use(url: str, auth: str, device_gib: float) -> "PodsUse":
    from pilotlight.adapters.prometheus_api import PrometheusApi
    from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry
    from pilotlight.tools.advice.targets import pods_use

    now = time.time()
    api = PrometheusApi(url, deployed_settings().environ, auth)
    return pods_use(PrometheusTelemetry(api).read(now - DAY_S, now, STEP_S), device_gib * MIB_PER_GIB)


def _show(graded: "tuple[Graded, ...]", head: str) -> None:
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    table = Sheet(
        Column("target", "name"), Column("wanted", "name"), Column("there is", "figure"), Column("met"), Column("how")
    )
    words = {True: "yes", False: "no", None: "not known"}
    for one in graded:
        table.add(one.name, one.wanted, one.value, words[one.met], one.how)
    console().print(head, markup=False)
    console().print(table)
