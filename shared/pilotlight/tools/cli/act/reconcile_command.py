"""``pilotlight reconcile``: what a tick would do on a real cluster now, with what is remembered; or does it."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from pilotlight.errors import BadInput
from pilotlight.tools.cli.real_cluster import Context, Kubeconfig, settings_for
from pilotlight.tools.cli.terminal import console_of

if TYPE_CHECKING:
    from pilotlight.flow.answer import Answer
    from pilotlight.wiring import App


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reconcile)


def reconcile(
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and say it; change nothing.")] = False,
    policy: Annotated[str, typer.Option(help="Policy file; left out: PILOTLIGHT_POLICY, or the built-in one.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="The answer as JSON.")] = False,
) -> None:
    """Do once what a tick of capacity_reconcile does, over the deployment's state. The mode says what it may do.

    Example: [bold]pilotlight reconcile --context prod --dry-run[/bold]
    """
    from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
    from pilotlight.facts.messages import Tick
    from pilotlight.flow.reconcile import reconcile as flow
    from pilotlight.wiring import App

    settings = settings_for(context, kubeconfig, policy=policy)
    if settings.api:  # A cluster that cannot be reached makes no state.
        source_of(settings.api, settings.environ, settings.role_arn).access()
    app = App(settings)
    if len(app.clusters) > 1:
        raise BadInput(f"name one cluster: set PILOTLIGHT_CLUSTER to one of {', '.join(app.clusters)}")
    deps = app.deps
    now = deps.clock.now()
    tick = Tick(cluster=deps.name, identity=f"command-{now:%Y%m%dT%H%M%S}", at=now)
    answer = flow(deps, tick, dry_run=dry_run)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(answer, "number"))
    else:
        _print_text(app, answer, now, named=bool(context or kubeconfig))


def _print_text(app: "App", answer: "Answer", now: datetime, *, named: bool) -> None:
    from pilotlight.tools.cli.served import header
    from pilotlight.tools.cli.start.plan_command import plan_source
    from pilotlight.tools.report.texts.plan_text import lines

    console = console_of(highlight=False, soft_wrap=True)
    if answer.plan is not None:
        for line in lines(answer.plan, now, plan_source(app, app.settings.state, named=named)):
            console.print(line)
        return
    console.print(header(app.settings, app.settings.state, here=named), markup=False)
    console.print(answer.why)
    for done in answer.did:
        console.print(f"  {done}")
    if answer.decision:
        name = app.settings.cluster_name
        console.print(f"  decision {answer.decision}; see: PILOTLIGHT_CLUSTER={name} pilotlight why {answer.decision}")
