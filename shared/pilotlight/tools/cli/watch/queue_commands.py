"""``pilotlight queues``: how long the policy's queues are and how many workers they ask for; and the same for KEDA."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pilotlight.errors import BadInput, Unavailable
from pilotlight.settings import deployed_settings
from pilotlight.tools.serve import request_gate

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from pilotlight.facts.demand.worker_queues import Workers
    from pilotlight.flow.deps import Deps
    from pilotlight.wiring import App


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("queues")(queues)


def queues(as_json: Annotated[bool, typer.Option("--json", help="As JSON, with every figure.")] = False) -> None:
    """Show how long the policy's queues are, and how many workers they ask for. Changes nothing.

    Example: [bold]pilotlight queues[/bold]
    """
    from pilotlight.wiring import App

    app = App(deployed_settings())
    named = [cluster for cluster in app.clusters if app.for_cluster(cluster).policy.queues]
    rows = [row for cluster in named for row in _rows(app.for_cluster(cluster).deps)]
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(rows))
    elif not rows:
        typer.echo("the policy names no queues: add some under queues, whose keys pilotlight schema lists")
    else:
        _show(rows)
    if any(row["workers"] is None for row in rows):
        raise typer.Exit(1)


def _rows(deps: "Deps") -> Iterator[dict[str, Any]]:
    from pilotlight.decide.demand.queue_demand import growth_per_s, workers_in
    from pilotlight.flow.observe.queue_lengths import look_at_queues

    seen = look_at_queues(deps, remember=False)
    unread = {finding.subject.partition(" ")[2]: finding.message for finding in seen.findings}
    for name, history in seen.histories.items():
        rules = deps.policy.queues[name]
        asked = None if name in unread else workers_in(rules, history, deps.now(), rules.load)
        yield {
            "cluster": deps.name,
            "queue": name,
            "length": history.readings[-1].length if asked else None,
            "growth_per_s": growth_per_s(history),
            "workers": asked.count if asked else None,
            "why": asked.why if asked else unread.get(name, "nothing young is known of it"),
        }


def _show(rows: Iterable[dict[str, Any]]) -> None:
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    table = Sheet(Column("queue", "name"), Column("length", "figure"), Column("workers", "figure"), Column("why"))
    for row in rows:
        known = row["workers"] is not None
        table.add(row["queue"], f"{row['length']:g}" if known else "", str(row["workers"]) if known else "", row["why"])
    console().print(table)


def pages(app: "App") -> "dict[str, WSGIApplication]":
    """``/keda/<queue>`` of every queue. Raises ``BadInput`` where two clusters have a queue of one name."""
    found: dict[str, WSGIApplication] = {}
    for cluster in app.clusters:
        for name in app.for_cluster(cluster).policy.queues:
            if f"/keda/{name}" in found:
                raise BadInput(f"queue {name} is in two clusters' policies: KEDA asks by its name, so give it two")
            found[f"/keda/{name}"] = _page(app, cluster, name)
    return found


def _page(app: "App", cluster: str, name: str) -> "WSGIApplication":
    def answer(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        found = _asked(app.for_cluster(cluster).deps, name)
        if found is None:
            raise Unavailable(f"queue {name} cannot be read: KEDA keeps what runs, or takes its fallback")
        return request_gate.answer(start, 200, {"value": found.count, "why": found.why})

    return answer


def _asked(deps: "Deps", name: str) -> "Workers | None":
    """The workers that a queue asks for by the time their model is loaded; None where nothing young is known."""
    from pilotlight.decide.demand.queue_demand import workers_in
    from pilotlight.flow.observe.queue_lengths import look_at_queues

    history = look_at_queues(deps, (name,)).histories[name]
    rules = deps.policy.queues[name]
    return workers_in(rules, history, deps.now(), rules.load)
