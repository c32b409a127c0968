"""``pilotlight reclaim``: owners whose GPUs do nothing, how far each has come, and what keeps or wakes one."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pilotlight.codec.policy_values import parse_duration
from pilotlight.errors import BadInput
from pilotlight.facts.utilisation.reclaim_steps import Reclaim
from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.act.brake_commands import person
from pilotlight.tools.cli.state_option import line_of_records
from pilotlight.units import an_hour

if TYPE_CHECKING:
    from pilotlight.state_schema.table import Entry
    from pilotlight.wiring import App

Which = Annotated[
    str, typer.Argument(help="The owner as the list names it: ml/Notebook/ada, or ml/ada where that is one.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="The outcome as JSON.")]
ClusterName = Annotated[str, typer.Option(help="One of many clusters; the one that is set where none is named.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Owners of GPUs that do nothing: told, left a grace, put to rest.")
    group.callback()(lambda: None)
    group.command("list")(list_)
    group.command("snooze")(snooze)
    group.command("wake")(wake)
    app.add_typer(group, name="reclaim")


def list_(cluster: ClusterName = "", as_json: AsJson = False) -> None:
    """Show who was told, who is snoozed and who rests, with the evidence. Reads only the state.

    Example: [bold]pilotlight reclaim list[/bold]
    """
    wired, name, head = _wired(cluster)
    found = [entry.value for entry in _entries(wired, name)]
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text({"cluster": name, "owners": found}))
        return
    from pilotlight.tools.cli.printing import console

    console().print(head, markup=False)
    if not found:
        rules = any(one.reclaim for one in wired.for_cluster(name).policy.classes.values())
        why = (
            "no GPUs were found idle" if rules else "no class of the policy has a rule: write classes.notebook.reclaim"
        )
        typer.echo(f"nothing of cluster {name} is told or rests: {why}", err=True)
        return
    _show(found)


def snooze(
    owner: Which,
    for_: Annotated[str, typer.Option("--for", help="How long it is left alone, from now: 8h, 2d.")] = "8h",
    cluster: ClusterName = "",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Leave an owner alone for a while, though its GPUs do nothing.

    Example: [bold]pilotlight reclaim snooze ml/Notebook/ada --for 8h[/bold]
    """
    from pilotlight.tools.cli.act import reclaim_by_hand

    try:
        for_s = parse_duration(for_)
    except ValueError as error:
        raise BadInput(f"--for {for_!r} {error}") from None
    wired, name, head = _wired(cluster)
    entry = _entry(wired, name, owner)
    until = reclaim_by_hand.snooze(wired.for_cluster(name).deps, entry, for_s, person() or "a person", dry_run=dry_run)
    one = entry.value.owner
    outcome = {"owner": one.key, "snoozed_until": until, "dry_run": dry_run}
    _say(outcome, as_json, head, f"{one} is left alone until {_moment(until)}")


def wake(owner: Which, cluster: ClusterName = "", dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Give an owner that rests the count of pods that it had.

    Example: [bold]pilotlight reclaim wake ml/Notebook/ada[/bold]
    """
    from pilotlight.tools.cli.act import reclaim_by_hand

    wired, name, head = _wired(cluster)
    entry = _entry(wired, name, owner)
    count = reclaim_by_hand.wake(wired.for_cluster(name).deps, entry, person() or "a person", dry_run=dry_run)
    one = entry.value.owner
    _say({"owner": one.key, "count": count, "dry_run": dry_run}, as_json, head, f"{one} is woken to {count}")


def _wired(cluster: str) -> "tuple[App, str, str]":
    """The deployment, the cluster's name, and the line that an answer begins with."""
    from pilotlight.tools.cli.month_option import chosen_clusters
    from pilotlight.wiring import app

    wired = app(deployed_settings())
    if cluster:
        chosen_clusters(cluster, wired.clusters)
    return wired, cluster or wired.settings.cluster_name, line_of_records(wired.state)


def _entries(wired: "App", cluster: str) -> "list[Entry[Reclaim]]":
    from pilotlight.state_schema.alert_records import RECLAIM

    return list(RECLAIM.scan(wired.state, f"{cluster}/"))


def _entry(wired: "App", cluster: str, owner: str) -> "Entry[Reclaim]":
    """The record of an owner by its key, or by "namespace/name" where only one is so named."""
    entries = _entries(wired, cluster)
    found = [
        entry
        for entry in entries
        if owner in (entry.value.owner.key, f"{entry.value.owner.namespace}/{entry.value.owner.name}")
    ]
    if len(found) == 1:
        return found[0]
    keys = ", ".join(entry.value.owner.key for entry in found or entries) or "none"
    raise BadInput(f"no one owner {owner!r} of cluster {cluster} is told or rests; there are: {keys}")


def _show(found: list[Reclaim]) -> None:
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    table = Sheet(
        Column("owner", "name"),
        Column("team", "name"),
        Column("is", "name"),
        Column("$/h", "figure"),
        Column("evidence", "words"),
    )
    for one in found:
        table.add(one.owner.key, one.team, _stands(one), an_hour(one.usd_per_hour), one.evidence)
    console().print(table)


def _stands(one: Reclaim) -> str:
    match one.stage:
        case "resting" | "going":
            return f"at rest since {_moment(one.at)}, had {one.count}"
        case "telling":
            return f"being told since {_moment(one.at)}"
        case "advised":
            return "advice: its pool is not in mode act"
    if one.snoozed_until is not None and one.due_at == one.snoozed_until:
        return f"snoozed until {_moment(one.snoozed_until)}"
    return f"told, rests at {_moment(one.due_at)}"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _say(outcome: dict[str, Any], as_json: bool, head: str, text: str) -> None:
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(outcome))
    else:
        typer.echo(head)
        typer.echo(f"would be: {text}" if outcome["dry_run"] else text)
