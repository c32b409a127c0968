"""``pilotlight status``: every cluster at a glance; exit code 1 when something needs a person."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from pilotlight.errors import BadInput, PilotlightError
from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.state_option import cluster_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pilotlight.tools.glance.glance import Glance
    from pilotlight.wiring import App

EXIT_NEEDED = 1
EVERY_S = 5.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(status)


def status(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with every figure.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and look again every five seconds, until Ctrl-C.")
    ] = False,
) -> None:
    """Show each cluster at a glance: pauses, ticks, what is lit and why, what waits and for what, budgets, approvals.

    Asks the cluster, the cloud and the state; changes nothing. Exit code 1 when something needs a person, which is said
    first.

    Example: [bold]pilotlight status --watch[/bold]
    """
    from pilotlight.wiring import App

    if as_json and watch:
        raise BadInput("--json says it once and --watch goes on: choose one")
    head = cluster_line()
    app = App(deployed_settings())
    if watch:
        _watch(app)
        return
    seen = _glances(app)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(seen))
    else:
        from pilotlight.tools.cli.printing import console

        console().print(head, markup=False)
        for line in _lines(seen):
            console().print(line)
    if any(one.needs for one in seen):
        raise typer.Exit(EXIT_NEEDED)


def _glances(app: "App") -> "list[Glance]":
    """Every cluster's, side by side: one that hangs does not delay another."""
    from pilotlight.flow.abreast import abreast
    from pilotlight.tools.glance.look_at_cluster import glance

    found = abreast({name: partial(glance, app.for_cluster(name)) for name in app.clusters}, app.settings.wait_s)
    for each in found.values():
        if isinstance(each, Exception):
            raise each
    return [each for each in found.values() if not isinstance(each, Exception)]


def _lines(seen: "list[Glance]") -> "Iterator[RenderableType]":
    from pilotlight.tools.report.texts.glance_text import lines

    for one in seen:
        yield from lines(one)


def _watch(app: "App") -> None:
    """A live screen until Ctrl-C; where there is no terminal, one look under the other."""
    from threading import Event

    from rich.console import Group
    from rich.live import Live

    from pilotlight.tools.cli.printing import console

    if not console().is_terminal:
        while True:
            console().print(Group(*_seen_or_why(app)))
            Event().wait(EVERY_S)
    with Live(console=console(), screen=True, auto_refresh=False) as live:
        while True:
            live.update(Group(*_seen_or_why(app)), refresh=True)
            Event().wait(EVERY_S)


def _seen_or_why(app: "App") -> "Iterator[RenderableType]":
    """A look; one that fails ends no watch."""
    from rich.text import Text

    try:
        yield from _lines(_glances(app))
    except PilotlightError as error:
        yield Text(f"cannot be looked at: {error}; again in {EVERY_S:g} s", style="bold red")
