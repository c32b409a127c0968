"""``pilotlight lift`` and ``manifests placement``: what keeps small work off dear nodes, lifted or made."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.tools.cli.real_cluster import Context, Kubeconfig, settings_for
from pilotlight.units import count_of

DAY_S = 86_400.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(lift)


def affinity(
    policy: Annotated[str, typer.Option(help="Policy file; left out: that of the deployment.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Print an admission policy that narrows GPU pods to their cheapest types, from the policy's pools and prices.

    For clusters of Kubernetes 1.36 and newer, in place of homes: node affinity is added as a pod is
    created, in namespaces with the label pilotlight.dev/placement=affinity. Print it again when pools or prices change.

    Example: [bold]pilotlight manifests placement --policy policy.yaml | kubectl apply -f -[/bold]
    """
    import yaml

    from pilotlight.adapters.clocks import SystemClock
    from pilotlight.adapters.state.memory import MemoryState
    from pilotlight.settings import deployed_settings
    from pilotlight.tools.manifests.affinity_policy import affinity_policy
    from pilotlight.wiring import App

    settings = deployed_settings()
    site = App(msgspec.structs.replace(settings, policy=policy or settings.policy), state=MemoryState(SystemClock()))
    offered, unbuyable = site.price_offerings()
    for finding in unbuyable:
        typer.echo(f"{finding.subject}: {finding.message}", err=True)
    if not offered:
        raise BadInput("the policy has no pool whose type and price are known: there is nothing to narrow pods to")
    made = affinity_policy(offered)
    typer.echo(
        msgspec.json.format(msgspec.json.encode(made)).decode() if as_json else yaml.safe_dump_all(made), nl=False
    )


def lift(
    silent: Annotated[
        float, typer.Option(min=0, max=DAY_S, help="Only where Pilotlight has been silent for so many seconds.")
    ] = 0.0,
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which would be opened; change nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Take our home taint off every node of a cluster; with --silent only where nobody renews its Lease.

    The watchman (pilotlight show infra/kubernetes/placement/watchman.yaml) runs it every two minutes. Nodes that come
    later are born closed as their pool says: take the taint pilotlight.dev/home out of it too.

    Example: [bold]pilotlight lift --context prod --dry-run[/bold]
    """
    from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
    from pilotlight.adapters.cluster.kubernetes.transport import Api, Missing
    from pilotlight.tools.install import watchman

    settings = settings_for(context, kubeconfig)
    api = Api(source_of(settings.api, settings.environ, settings.role_arn))
    try:
        opened = tuple(watchman.lift(api, datetime.now(UTC), silent_s=silent, dry_run=dry_run))
    except Missing as error:
        raise BadInput(
            f"{error}; without the Lease no node is kept closed: pilotlight show "
            "infra/kubernetes/placement/watchman.yaml | kubectl apply -f -"
        ) from None
    if as_json:
        typer.echo(msgspec.json.encode({"opened": opened, "dry_run": dry_run}).decode())
        return
    for name in opened:
        typer.echo(f"{'would open' if dry_run else 'opened'} {name}")
    typer.echo(f"{count_of(len(opened), 'node')} {'would be opened' if dry_run else 'opened'}")
