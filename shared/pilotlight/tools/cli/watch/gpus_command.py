"""``pilotlight gpus``: what GPUs are free, where, and at what price more could be bought."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from pilotlight.errors import BadInput
from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.real_cluster import Kubeconfig, Named, settings_for
from pilotlight.tools.cli.served import header
from pilotlight.tools.cli.state_option import cluster_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotlight.flow.deps import Deps
    from pilotlight.tools.glance.gpu_rows import GpuRow
    from pilotlight.wiring import App


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(gpus)


def gpus(
    model: Annotated[str, typer.Option("--model", help="Only this GPU, as T4 or A100; in any case of letters.")] = "",
    free: Annotated[bool, typer.Option("--free", help="Only where one is free now.")] = False,
    context: Named = "",
    kubeconfig: Kubeconfig = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with every figure.")] = False,
) -> None:
    """Show the GPUs that are free on lit nodes and those that could be bought, by pool, type and zone, with the price.

    Closed ones are free and no other pod gets them: their node is not ready, goes, or is kept for the pod it was bought
    for. Asks the cloud, the cluster and the state; changes nothing.

    Examples: [bold]pilotlight gpus --free[/bold]; [bold]pilotlight gpus --model a100 --json[/bold]
    """
    from pilotlight.flow.abreast import abreast
    from pilotlight.wiring import App

    named = bool(context or kubeconfig)
    head = "" if named else cluster_line()
    app = App(settings_for(context, kubeconfig) if named else deployed_settings())
    found = abreast({name: partial(_rows, app.for_cluster(name)) for name in app.clusters}, app.settings.wait_s)
    for each in found.values():
        if isinstance(each, Exception):
            raise each
    every = {name: each for name, each in found.items() if not isinstance(each, Exception)}
    rows = {name: _chosen(each, model, free) for name, each in every.items()}
    if model and not any(_chosen(each, model, False) for each in every.values()):
        there = sorted({row.gpu_model for each in every.values() for row in each if row.gpu_model})
        raise BadInput(f"--model {model}: no pool has it; there are {', '.join(there) or 'none'}")
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(rows))
        return
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.gpus_table import summary, table

    said = head or header(app.settings, app.settings.state, here=True)
    console().print(said, markup=False)
    for name, shown in rows.items():
        console().print(table(name, shown))
        console().print(summary(shown), markup=False)


def _chosen(rows: "Iterable[GpuRow]", model: str, free: bool) -> "tuple[GpuRow, ...]":
    """The rows of a GPU model, and those alone that have one free or a part of one."""
    return tuple(
        row
        for row in rows
        if (not model or row.gpu_model.casefold() == model.casefold()) and (not free or row.free or row.parts)
    )


def _rows(site: "App") -> "tuple[GpuRow, ...]":
    from pilotlight.flow.records import ledger
    from pilotlight.tools.glance.gpu_rows import gpu_rows

    deps = site.deps
    if not deps.policy.pools:
        raise BadInput("the policy has no pools: write one under pools, or have pilotlight init write them")
    memory = ledger.recall(site.state, site.settings.cluster_name).memory
    view, clouds = deps.cluster.observe(), deps.pools.describe()
    stopped = {pool: why for pool in deps.policy.pools if (why := _stopped(deps, pool))}
    return gpu_rows(deps.policy, deps.offerings, clouds, view.nodes, memory, site.state.now(), stopped)


def _stopped(deps: "Deps", pool: str) -> str:
    """Why nothing is bought in a pool by itself, or nothing."""
    from pilotlight.flow.records.brake_records import pause_reason

    mode, paused = deps.mode_of(pool), pause_reason(deps.state, deps.name, pool)
    return paused or ("" if mode in ("act", "scale-up") else f"in mode {mode} nothing is bought by itself")
