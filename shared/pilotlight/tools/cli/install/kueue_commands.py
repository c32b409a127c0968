"""``pilotlight kueue``: our admission check on Kueue's queues, put there and taken out again."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight.errors import Failed
from pilotlight.tools.cli.real_cluster import Context, Kubeconfig, settings_for

if TYPE_CHECKING:
    from pilotlight.adapters.cluster.kubernetes.transport import Api
    from pilotlight.tools.install.queue_checks import Queue

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be changed; change nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Kueue's queues that wait for our answer before work starts.")
    group.callback()(_group)
    group.command()(take)
    group.command()(handback)
    app.add_typer(group, name="kueue")


def _group() -> None:
    """Kueue's queues that wait for our answer before work starts."""


def take(
    queues: Annotated[list[str], typer.Argument(help="ClusterQueues, by name.", metavar="QUEUE...")],
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Put the admission check "pilotlight" on ClusterQueues: their work starts when its nodes are paid for and ready.

    Its account needs the rights of pilotlight connect --kueue. While Pilotlight is away nothing of these queues is
    admitted: `pilotlight kueue handback` takes the check out.

    Example: [bold]pilotlight kueue take research --context prod --dry-run[/bold]
    """
    from pilotlight.tools.install import queue_checks

    _print(queue_checks.take(_api(context, kubeconfig), queues, datetime.now(UTC), dry_run=dry_run), dry_run, as_json)


def handback(
    context: Context = "", kubeconfig: Kubeconfig = "", dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Take our check off every ClusterQueue and Workload: Kueue admits by quota alone again.

    Work that waits for a time of ours is freed first, what was taken out of its queue is put back, and what a budget
    stopped is opened. Needs no Pilotlight that runs. An unchanged object is named; run it again for that.

    Example: [bold]pilotlight kueue handback --context prod[/bold]
    """
    from pilotlight.tools.install import queue_checks

    _print(queue_checks.hand_back(_api(context, kubeconfig), dry_run=dry_run), dry_run, as_json)


def _api(context: str, kubeconfig: str) -> "Api":
    from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
    from pilotlight.adapters.cluster.kubernetes.transport import Api

    settings = settings_for(context, kubeconfig)
    return Api(source_of(settings.api, settings.environ))


def _print(queues: "Iterable[Queue]", dry_run: bool, as_json: bool) -> None:
    done = list(queues)
    if as_json:
        told = [each._asdict() for each in done]
        typer.echo(msgspec.json.encode({"queues": told, "dry_run": dry_run}).decode())
    else:
        for each in done:
            typer.echo(f"{'would be: ' if dry_run else ''}{each.kind} {each.name} {_says(each)}")
        if not done:
            typer.echo("no ClusterQueue has our check")
    if failed := [each for each in done if each.failed]:
        many = f"{len(failed)} object{'s' if len(failed) > 1 else ''}"
        raise Failed(f"{many} could not be changed, and all others were: run it again, it takes up there")


def _says(each: "Queue") -> str:
    if each.failed:
        return f"could not be changed: {each.failed}"
    if each.freed:
        return "waits for no time of ours any more"
    if each.opened:
        where = (
            "is in its queue again" if each.kind == "Workload" else "has its stopPolicy of before a budget stopped it"
        )
        return where
    verb = "waits for our answer" if each.ours else "waits for our answer no more"
    return verb + ", as before" * (not each.changed)
